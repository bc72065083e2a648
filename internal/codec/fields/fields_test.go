package fields

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// What encoding/binary appends is read again, field by field, and of a cut copy the fields that
// are whole.
func TestFieldsAreReadInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var src []byte
		var ends []int
		var check []func(r *Reader) bool
		field := func(want func(r *Reader) bool) {
			ends, check = append(ends, len(src)), append(check, want)
		}
		for range rapid.IntRange(1, 12).Draw(t, "fields") {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				v := rapid.Byte().Draw(t, "byte")
				src = append(src, v)
				field(func(r *Reader) bool { return r.U8() == v })
			case 1:
				v := rapid.Uint64().Draw(t, "fixed")
				src = binary.LittleEndian.AppendUint64(src, v)
				field(func(r *Reader) bool { return r.U64() == v })
			case 2:
				v := rapid.Uint64().Draw(t, "uvarint")
				src = binary.AppendUvarint(src, v)
				field(func(r *Reader) bool { return r.Uvarint() == v })
			case 3:
				v := rapid.Uint64().Draw(t, "limited")
				src = binary.AppendUvarint(src, v)
				field(func(r *Reader) bool { return r.UpTo(v) == v })
			case 4:
				v := rapid.Int64().Draw(t, "varint")
				src = binary.AppendVarint(src, v)
				field(func(r *Reader) bool { return r.Varint() == v })
			case 5:
				v := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "bytes")
				src = append(binary.AppendUvarint(src, uint64(len(v))), v...)
				field(func(r *Reader) bool { return bytes.Equal(r.Bytes(len(v)), v) })
			}
		}
		cut := rapid.IntRange(0, len(src)).Draw(t, "cut")
		r := Reader{Src: src[:cut]}
		for i, end := range ends {
			ok := check[i](&r)
			switch {
			case end <= cut && (!ok || r.Bad || len(r.Src) != cut-end):
				t.Fatalf("field %d of %x is not read: %+v", i, src, r)
			case end > cut && (!r.Bad || len(r.Src) > 0 || r.IsDone()):
				t.Fatalf("field %d of %x, cut at %d, is read: %+v", i, src, cut, r)
			}
		}
		if cut == len(src) != r.IsDone() {
			t.Fatalf("%x, cut at %d: %+v", src, cut, r)
		}
	})
}

// Each malformed field is noticed, and nothing is read from it on.
func TestMalformedFields(t *testing.T) {
	long := bytes.Repeat([]byte{0xff}, 9)
	for name, tt := range map[string]struct {
		src  []byte
		read func(r *Reader) bool // reports whether it is not zero
	}{
		"no byte":            {nil, func(r *Reader) bool { return r.U8() != 0 }},
		"short number":       {long[:7], func(r *Reader) bool { return r.U64() != 0 }},
		"no uvarint":         {nil, func(r *Reader) bool { return r.Uvarint() != 0 }},
		"open uvarint":       {long, func(r *Reader) bool { return r.Uvarint() != 0 }},
		"uvarint of 65 bits": {append(long[:9:9], 2), func(r *Reader) bool { return r.Uvarint() != 0 }},
		"varint of 65 bits":  {append(long[:9:9], 2), func(r *Reader) bool { return r.Varint() != 0 }},
		"too many":           {[]byte{5, 1}, func(r *Reader) bool { return r.UpTo(4) != 0 }},
		"fewer bytes":        {[]byte{1, 2}, func(r *Reader) bool { return r.Take(3) != nil }},
		"a negative length":  {[]byte{1, 2}, func(r *Reader) bool { return r.Take(-1) != nil }},
		"more than allowed":  {[]byte{2, 1, 1}, func(r *Reader) bool { return r.Bytes(1) != nil }},
		"more than is left":  {[]byte{3, 1, 1}, func(r *Reader) bool { return r.Bytes(9) != nil }},
		"a vast length": {append(long[:9:9], 1), func(r *Reader) bool {
			return r.Bytes(math.MaxInt) != nil
		}},
		"failed by its user": {[]byte{1}, func(r *Reader) bool {
			r.Check(true)
			bad := r.Bad
			r.Check(false)
			return bad
		}},
	} {
		r := Reader{Src: append(tt.src[:len(tt.src):len(tt.src)], 0)[:len(tt.src)]}
		if tt.read(&r) || !r.Bad || r.IsDone() {
			t.Errorf("%s: %+v", name, r)
		}
		if r.U8() != 0 || r.U64() != 0 || r.Uvarint() != 0 || r.Varint() != 0 || r.UpTo(9) != 0 ||
			len(r.Take(1))+len(r.Bytes(9))+len(r.Rest()) > 0 || !r.Bad {
			t.Errorf("%s: it is read on: %+v", name, r)
		}
	}
}

// What is returned shares memory with Src, but cannot grow into what follows.
func TestBytesEndWhereTheyEnd(t *testing.T) {
	src := []byte{2, 'a', 'b', 'c', 'd'}
	r := Reader{Src: src}
	_ = append(r.Bytes(9), 'x')
	_ = append(r.Take(1), 'y')
	if rest := r.Rest(); string(src) != "\x02abcd" || string(rest) != "d" || !r.IsDone() {
		t.Errorf("%q is left of %q", rest, src)
	}
}

// FuzzReader reads fields as the fuzzer says, and as a naive reader reads them that counts
// in big numbers.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6}, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
		17, 18})
	f.Add([]byte{2}, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2})
	f.Add([]byte{6, 0}, []byte{0x82, 0, 1})
	f.Fuzz(func(t *testing.T, kinds, src []byte) {
		r, at, bad := Reader{Src: src}, 0, false
		for _, k := range kinds {
			var got, want uint64
			var part, wantPart []byte
			most := uint64(k >> 3)
			switch k & 7 {
			case 0:
				got, want = uint64(r.U8()), fixed(src, &at, &bad, 1)
			case 1:
				got, want = r.U64(), fixed(src, &at, &bad, 8)
			case 2:
				got, want = r.Uvarint(), naive(src, &at, &bad, math.MaxUint64)
			case 3:
				got, want = r.UpTo(most), naive(src, &at, &bad, most)
			case 4:
				v := naive(src, &at, &bad, math.MaxUint64)
				if want = v / 2; v%2 == 1 {
					want = -want - 1
				}
				got = uint64(r.Varint())
			case 5:
				part, wantPart = r.Take(int(most)), take(src, &at, &bad, most)
			default:
				part, wantPart = r.Bytes(int(most)), take(src, &at, &bad, naive(src, &at, &bad, most))
			}
			if got != want || !bytes.Equal(part, wantPart) || r.Bad != bad || !bad &&
				len(r.Src) != len(src)-at {
				t.Fatalf("kind %d: %d %x, want %d %x; %+v at %d, bad %v", k, got, part, want, wantPart, r, at,
					bad)
			}
		}
	})
}

func take(src []byte, at *int, bad *bool, n uint64) []byte {
	if *bad = *bad || n > uint64(len(src)-*at); *bad {
		return nil
	}
	*at += int(n)
	return src[*at-int(n) : *at]
}

func fixed(src []byte, at *int, bad *bool, n uint64) (v uint64) {
	for i, b := range take(src, at, bad, n) {
		v += uint64(b) << (8 * i)
	}
	return v
}

func naive(src []byte, at *int, bad *bool, most uint64) uint64 {
	v := new(big.Int)
	for i := uint(0); ; i++ {
		b := take(src, at, bad, 1)
		if *bad = *bad || i >= binary.MaxVarintLen64; *bad {
			return 0
		}
		v.Add(v, new(big.Int).Lsh(big.NewInt(int64(b[0]&0x7f)), 7*i))
		if b[0] < 0x80 {
			break
		}
	}
	if *bad = v.Cmp(new(big.Int).SetUint64(most)) > 0; *bad {
		return 0
	}
	return v.Uint64()
}
