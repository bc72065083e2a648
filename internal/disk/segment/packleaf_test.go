package segment

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawLeaf is a leaf with any places.
func drawLeaf(t *rapid.T) leaf {
	var b leafBuilder
	lengths := rapid.OneOf(rapid.Just(uint16(12)), rapid.Uint16Range(1, 900),
		rapid.Uint16Range(1, maxChunk))
	gap := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, 3), rapid.Int64Range(1, 1<<24))
	lowest := rapid.SampledFrom([]int64{math.MinInt64, -5, 0, 2083334,
		math.MaxInt64 - math.MaxUint32}).Draw(t, "lowest")
	e := entry{block: rapid.Uint32Range(0, 5).Draw(t, "block")}
	rows := rapid.IntRange(1, 40).Draw(t, "rows")
	for row := range rows {
		h := testHash(uint64(row))
		e.chunk = lowest
		for range rapid.IntRange(1, 20).Draw(t, "entries") {
			switch rapid.IntRange(0, 9).Draw(t, "place") {
			case 0:
				e.block, e.off = rapid.Uint32().Draw(t, "block"), rapid.Uint16().Draw(t, "off")
			case 1:
				e.block, e.off = e.block+1, 0
			case 2:
			case 3:
				if len(b.entries) > 0 {
					f := rapid.SampledFrom(b.entries).Draw(t, "shared")
					e.block, e.off = f.block, f.off
				}
			default:
				e.off += e.length
			}
			e.length = lengths.Draw(t, "length")
			if !b.fits(7, &h, e.chunk) {
				return leaf(b.appendTo(nil))
			}
			b.add(7, &h, e)
			e.chunk += gap.Draw(t, "gap")
		}
	}
	return leaf(b.appendTo(nil))
}

func TestStoredLeafIsTheLeaf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLeaf(t)
		packed, plain := l.appendPacked([]byte("xy"))
		if plain > len(packed)-2 || plain < len(Hash{})*l.rows() {
			t.Fatalf("%d of %d bytes are plain", plain, len(packed)-2)
		}
		got, err := unpackLeaf([]byte("xy"), packed[2:])
		if err != nil || !bytes.Equal(got[2:], l) {
			t.Fatalf("%v\n% x, want\n% x", err, got, []byte(l))
		}
	})
}

// FuzzUnpackLeaf: whatever a stored leaf says, what comes out stays inside of itself and is
// stored as bytes that give it again.
func FuzzUnpackLeaf(f *testing.F) {
	for _, s := range []model{*testModel(5, 3, 10), *testModel(40, 1, 3000)} {
		var b leafBuilder
		for i, p := range s.order() {
			h := p.hash
			b.add(1, &h, entry{chunk: p.chunk, block: uint32(i / 7), off: uint16(i % 7 * 100), length: 100})
		}
		packed, _ := leaf(b.appendTo(nil)).appendPacked(nil)
		f.Add(packed)
		f.Add(packed[:len(packed)-1])
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		l, err := unpackLeaf(nil, src)
		if err != nil {
			return
		}
		if len(l) > leafBody {
			t.Fatalf("a leaf of %d bytes", len(l))
		}
		for row := range l.rows() {
			if l.rowFirst(row) >= l.rowPast(row) || l.rowPast(row) > l.entries() {
				t.Fatalf("row %d has the entries %d to %d of %d", row, l.rowFirst(row), l.rowPast(row),
					l.entries())
			}
			for i := l.rowFirst(row) + 1; i < l.rowPast(row); i++ {
				if uint64(l.entry(i).chunk)-uint64(l.lowest()) <= uint64(l.entry(i-1).chunk)-uint64(
					l.lowest()) {
					t.Fatalf("entry %d does not ascend", i)
				}
			}
		}
		packed, _ := l.appendPacked(nil)
		if again, err := unpackLeaf(nil, packed); err != nil || !bytes.Equal(again, l) {
			t.Fatalf("stored again it is another leaf: %v", err)
		}
	})
}
