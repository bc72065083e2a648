package collectd

import (
	"crypto/aes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"dalmatiner/internal/codec/point"
)

// part returns a part of a packet.
func part(kind uint16, body ...byte) []byte {
	out := binary.BigEndian.AppendUint16(nil, kind)
	out = binary.BigEndian.AppendUint16(out, uint16(len(body)+partHeader))
	return append(out, body...)
}

func textPart(kind uint16, text string) []byte { return part(kind, append([]byte(text), 0)...) }

func numberPart(kind uint16, n uint64) []byte {
	return part(kind, binary.BigEndian.AppendUint64(nil, n)...)
}

// values are the four types of the protocol: 2^64-1 as a counter, 1.5, -3 and 7.
func valuesPart() []byte {
	body := []byte{0, 4, typeCounter, typeGauge, typeDerive, typeAbsolute}
	body = binary.BigEndian.AppendUint64(body, math.MaxUint64)
	body = binary.LittleEndian.AppendUint64(body, math.Float64bits(1.5))
	body = binary.BigEndian.AppendUint64(body, math.MaxUint64-2)
	return part(partValues, binary.BigEndian.AppendUint64(body, 7)...)
}

// seen notes what a packet has.
type seen []string

func (s *seen) values(r *reading) error {
	*s = append(*s, fmt.Sprintf("%s/%s-%s/%s-%s %d %x", r.host, r.plugin, r.instance, r.kind,
		r.kindInstance, r.ns, r.words))
	return nil
}

func (s *seen) notice(n *notice) error {
	*s = append(*s, fmt.Sprintf("%s: %d %s", n.host, n.severity, n.text))
	return nil
}

func plain() []byte {
	return slices.Concat(textPart(partHost, "h"), numberPart(partTimeHR, 1<<30*1_700_000_000+1<<29),
		textPart(partPlugin, "p"), textPart(partInstance, "i"), textPart(partKind, "t"),
		textPart(partKindInstance, "ti"), part(0x7777, 1, 2), valuesPart(),
		numberPart(partTime, 1_700_000_001), textPart(partInstance, ""),
		part(partValues, append([]byte{0, 1, typeGauge}, binary.LittleEndian.AppendUint64(nil,
			math.Float64bits(math.NaN()))...)...),
		numberPart(partSeverity, 2), textPart(partMessage, "hot"))
}

func signed(password, name string, rest []byte) []byte {
	mac := hmac.New(sha256.New, []byte(password))
	mac.Write([]byte(name))
	mac.Write(rest)
	return append(part(partSignature, append(mac.Sum(nil), name...)...), rest...)
}

func encrypted(password, name string, parts []byte) []byte {
	key := sha256.Sum256([]byte(password))
	block, _ := aes.NewCipher(key[:])
	sum := sha1.Sum(parts)
	text := append(sum[:], parts...)
	stream := []byte("0123456789abcdef")
	body := binary.BigEndian.AppendUint16(nil, uint16(len(name)))
	body = append(append(body, name...), stream...)
	for i := range text {
		if i%16 == 0 {
			block.Encrypt(stream, stream)
		}
		text[i] ^= stream[i%16]
	}
	return part(partEncrypted, append(body, text...)...)
}

func TestPackets(t *testing.T) {
	us, err := NewUsers([]byte("# users\nu: secret\n\nv:other"))
	if err != nil {
		t.Fatal(err)
	}
	words := func(name string, ns int64) string {
		return fmt.Sprintf("%s %d %x", name, ns, []uint64{point.FromFloat(1 << 64),
			point.FromFloat(1.5), point.FromInt(-3), point.FromInt(7)})
	}
	all := seen{
		words("h/p-i/t-ti", 1700000000500000000),
		"h/p-/t-ti 1700000001000000000 [0]", "h: 2 hot"}
	spoilt := signed("secret", "u", plain())
	spoilt[len(spoilt)-2] ^= 1
	for _, c := range []struct {
		what     string
		src      []byte
		users    *Users
		required Security
		want     seen
		refused  int
		err      error
	}{
		{"plain", plain(), nil, None, all, 0, nil},
		{"plain where signed is asked for", plain(), us, Sign, nil, 3, nil},
		{"signed", signed("secret", "u", plain()), us, Sign, all, 0, nil},
		{"signed, nobody known", signed("secret", "u", plain()), nil, None, all, 0, nil},
		{"signed where encrypted is asked for", signed("secret", "u", plain()), us, Encrypt, nil, 3, nil},
		{"signed by another", signed("secret", "x", plain()), us, None, nil, 0, errUser},
		{"a host ahead of a signature", append(textPart(partHost, "other"),
			signed("secret", "u", valuesPart())...), us, Sign, seen{words("/-/-", 0)}, 0, nil},
		{"changed", spoilt, us, None, nil, 0, errSignature},
		{"encrypted", encrypted("other", "v", plain()), us, Encrypt, all, 0, nil},
		{"encrypted, then plain", append(encrypted("other", "v", plain()), valuesPart()...), us, Sign,
			all, 1, nil},
		{"encrypted wrongly", encrypted("x", "v", plain()), us, Encrypt, nil, 0, errChecksum},
		{"encrypted, nobody known", encrypted("x", "v", plain()), nil, None, nil, 0, errUser},
		{"nested", encrypted("other", "v", encrypted("other", "v", plain())), us, None, nil, 0,
			errNested},
		{"cut off", append(plain(), 0, 1, 0), nil, None, all, 0, errPart},
		{"a long part", append(plain(), 0, 1, 0, 9, 1), nil, None, all, 0, errPart},
		{"no zero byte", append(plain(), part(partHost, 'h')...), nil, None, all, 0, errPart},
		{"few values", append(part(partValues, 0, 1, 1), plain()...), nil, None, all, 1, nil},
		{"a strange value", append(part(partValues, 0, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8), plain()...), nil,
			None, all, 1, nil},
		{"a late time", numberPart(partTime, math.MaxUint64), nil, None, nil, 0, errTime},
		{"a late exact time", numberPart(partTimeHR, math.MaxUint64), nil, None, nil, 0, errTime},
	} {
		var got seen
		refused := 0
		p := packet{users: c.users, required: c.required}
		err := p.parse(c.src, &got, func(error) { refused++ })
		if !errors.Is(err, c.err) || refused != c.refused || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %d refused, %v; want %q, %d, %v", c.what, got, refused, err, c.want,
				c.refused, c.err)
		}
	}
}

func TestTypes(t *testing.T) {
	types, err := NewTypes([]byte("# mine\nload a:GAUGE:0:U\tb:GAUGE:0:U\nx\tone:GAUGE:0:U, two:DERIVE:U:U\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind string
		n    int
		want string
	}{
		{"if_octets", 2, "[rx tx]"}, {"if_octets", 1, "[value]"}, {"cpu", 1, "[value]"},
		{"load", 2, "[a b]"}, {"x", 2, "[one two]"}, {"unknown", 3, "[value0 value1 value2]"},
		{"duration", 1, "[seconds]"}, {"vf_multicast", 1, "[vf_value]"},
	} {
		if got := fmt.Sprintf("%s", types.names([]byte(c.kind), c.n)); got != c.want {
			t.Errorf("%d of %s: %s, want %s", c.n, c.kind, got, c.want)
		}
	}
	for _, bad := range []string{"x", "x y", "x :GAUGE"} {
		if _, err := NewTypes([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// FuzzPacket: no packet breaks the parser.
func FuzzPacket(f *testing.F) {
	us, err := NewUsers([]byte("u: secret"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain())
	f.Add(signed("secret", "u", plain()))
	f.Add(encrypted("secret", "u", plain()))
	p := packet{users: us}
	f.Fuzz(func(_ *testing.T, src []byte) {
		_ = p.parse(slices.Clone(src), new(seen), func(error) {}) // any error will do
	})
}

// BenchmarkPacket is the time of a packet of 40 values until they are taken apart.
func BenchmarkPacket(b *testing.B) {
	src := slices.Concat(textPart(partHost, "host"), numberPart(partTimeHR, 1<<60),
		textPart(partPlugin, "interface"), textPart(partKind, "if_octets"))
	for i := range 10 {
		src = append(append(src, textPart(partInstance, fmt.Sprint("eth", i))...), valuesPart()...)
	}
	p, to, refuse := packet{}, discard(0), func(error) {}
	b.ReportAllocs()
	for b.Loop() {
		if err := p.parse(src, &to, refuse); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(to), "ns/point")
}

// discard counts values.
type discard int

func (d *discard) values(r *reading) error { *d += discard(len(r.words)); return nil }
func (d *discard) notice(*notice) error    { return nil }
