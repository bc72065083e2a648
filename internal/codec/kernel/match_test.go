//go:build unix

package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// sentPoint is a point as a batch or an entry carries it.
func sentPoint(dst []byte, entry bool, slot uint64, name []byte, word uint64) []byte {
	if entry {
		dst = binary.BigEndian.AppendUint64(append(dst, 5), slot)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(name)))
	dst = append(dst, name...)
	if entry {
		dst = binary.BigEndian.AppendUint32(dst, 8)
	}
	return binary.BigEndian.AppendUint64(dst, word)
}

// expect lays names out one behind the other.
func expect(names ...[]byte) (all []byte, spans []Span) {
	for _, n := range names {
		from := uint32(len(all))
		all = append(all, n...)
		spans = append(spans, Span{from, uint32(len(all))})
	}
	return all, spans
}

// sameMatch matches both ways, the bytes and the names each before a page that may
// not be touched, and returns what was found.
func sameMatch(t *testing.T, entry bool, room int, names []byte, spans []Span,
	buf []byte) ([]uint64, int) {
	t.Helper()
	what, prefix, suffix := MatchBatch, 0, 0
	if entry {
		what, prefix, suffix = MatchEntries, entryPrefix, entrySuffix
	}
	mem := fence()
	copyEnd := func(i int, b []byte) []byte {
		at := mem[i][len(mem[i])-len(b):]
		copy(at, b)
		return at
	}
	buf, names = copyEnd(0, buf), copyEnd(1, names)
	got, want := make([]uint64, room+1), make([]uint64, room+1)
	points, size := what(got[:room], names, spans, buf)
	n, used := matchGo(want[:room], names, spans, buf, prefix, suffix)
	if points != n || size != used || !slices.Equal(got, want) {
		t.Fatalf("entry %v, %d bytes, room for %d: %d points in %d bytes, want %d in %d: %x, want %x",
			entry, len(buf), room, points, size, n, used, got, want)
	}
	return got[:points], size
}

// Names of every length up to 100 bytes match, and do not with any one bit of the
// point's bytes changed, but for those of the value.
func TestMatchSeesEveryBit(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	for _, entry := range []bool{false, true} {
		for length := 1; length <= 100; length++ {
			name := make([]byte, length)
			for i := range name {
				name[i] = byte(r.Uint32())
			}
			names, spans := expect([]byte("before"), name, name)
			word := r.Uint64()>>8 | 1<<56
			first := sentPoint(nil, entry, 77, name, word)
			whole := sentPoint(bytes.Clone(first), entry, 77, name, word+1)
			got, size := sameMatch(t, entry, 9, names, spans[1:], whole)
			if !slices.Equal(got, []uint64{word, word + 1}) || size != len(whole) {
				t.Fatalf("name of %d bytes: %x of %d bytes, want both of %d", length, got, size, len(whole))
			}
			for bit := range (len(whole) - len(first) - 8) * 8 {
				at := len(first) + bit/8
				whole[at] ^= 1 << (bit % 8)
				if got, _ := sameMatch(t, entry, 9, names, spans[1:], whole); len(got) != 1 {
					t.Fatalf("name of %d bytes, bit %d changed: %d points, want 1", length, bit, len(got))
				}
				whole[at] ^= 1 << (bit % 8)
			}
			for cut := range whole {
				if got, size := sameMatch(t, entry, 9, names, spans[1:], whole[:cut]); len(got) != cut/len(
					first) || size != len(got)*len(first) {
					t.Fatalf("%d of %d bytes: %d points of %d bytes", cut, len(whole), len(got), size)
				}
			}
		}
	}
}

// Only words that are stored as they come are taken, and no more than fit.
func TestMatchTakesWordsAsTheyAre(t *testing.T) {
	names, spans := expect([]byte("a name"), []byte("another"))
	for _, entry := range []bool{false, true} {
		for tag := range uint64(256) {
			buf := sentPoint(sentPoint(nil, entry, 1, []byte("a name"), 1<<56), entry, 1, []byte("another"),
				tag<<56|99)
			want := 1
			if tag == 1 || tag >= 4 {
				want = 2
			}
			if got, _ := sameMatch(t, entry, 2, names, spans, buf); len(got) != want {
				t.Errorf("type %#x: %d points, want %d", tag, len(got), want)
			}
			if got, _ := sameMatch(t, entry, 1, names, spans, buf); len(got) != 1 {
				t.Errorf("%d points where one fits", len(got))
			}
			if got, _ := sameMatch(t, entry, 2, names, spans[:1], buf); len(got) != 1 {
				t.Errorf("%d points where one is expected", len(got))
			}
			if got, _ := sameMatch(t, entry, 0, names, spans, buf); len(got) != 0 {
				t.Errorf("%d points where none fits", len(got))
			}
		}
	}
}

// A column without a series is no point's.
func TestMatchStopsAtAFreeColumn(t *testing.T) {
	names, spans := expect([]byte("x"), nil)
	for _, entry := range []bool{false, true} {
		buf := sentPoint(sentPoint(nil, entry, 1, []byte("x"), 1<<56), entry, 1, nil, 1<<56)
		if got, _ := sameMatch(t, entry, 2, names, spans, buf); len(got) != 1 {
			t.Errorf("%d points, want 1", len(got))
		}
		if got, size := sameMatch(t, entry, 2, nil, spans[1:], buf[:len(buf)/2]); len(got) != 0 ||
			size != 0 {
			t.Errorf("%d points without a name", len(got))
		}
	}
}

// FuzzMatch gives any bytes to both forms: names cut out of the same bytes, so
// that some are met.
func FuzzMatch(f *testing.F) {
	for _, entry := range []bool{false, true} {
		f.Add(entry, uint8(1), uint8(2), sentPoint(sentPoint(nil, entry, 1, []byte("a"), 1<<63), entry, 1,
			[]byte("bc"), 1<<56))
		f.Add(entry, uint8(28), uint8(28), sentPoint(sentPoint(nil, entry, 1, make([]byte, 28), 1<<63),
			entry, 1,
			make([]byte, 28), 1<<56))
		f.Add(entry, uint8(40), uint8(7), sentPoint(nil, entry, 1<<60, bytes.Repeat([]byte("ab"), 20), 0))
	}
	f.Fuzz(func(t *testing.T, entry bool, first, second uint8, buf []byte) {
		if len(buf) > 4096 {
			return
		}
		at := 2
		if entry {
			at += entryPrefix
		}
		name := func(from, n int) []byte {
			from = min(from, len(buf))
			return buf[from:min(len(buf), from+n)]
		}
		a := name(at, int(first))
		b := name(2*at+len(a)+8, int(second))
		if entry {
			b = name(2*at+len(a)+entrySuffix+8, int(second))
		}
		names, spans := expect(a, b, a)
		sameMatch(t, entry, 3, bytes.Clone(names), spans, bytes.Clone(buf))
	})
}

func BenchmarkMatch(b *testing.B) {
	const n = 256
	words := make([]uint64, n)
	for _, entry := range []bool{false, true} {
		for _, length := range []int{12, 28, 60} {
			var list [][]byte
			var buf []byte
			for i := range n {
				name := fmt.Appendf(nil, "%0*d", length, i)
				list = append(list, name)
				buf = sentPoint(buf, entry, 7, name, 1<<56|uint64(i))
			}
			names, spans := expect(list...)
			what, prefix, suffix := MatchBatch, 0, 0
			kind := fmt.Sprintf("batch/name=%d", length)
			if entry {
				what, prefix, suffix, kind = MatchEntries, entryPrefix, entrySuffix,
					fmt.Sprintf("entries/name=%d", length)
			}
			benchBoth(b, kind, n, func() {
				what(words, names, spans, buf)
			}, func() { matchGo(words, names, spans, buf, prefix, suffix) })
		}
	}
}
