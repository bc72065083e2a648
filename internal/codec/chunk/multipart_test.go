package chunk

import (
	"errors"
	"math"
	"slices"
	"testing"

	"dalmatiner/internal/codec/point"
	"pgregory.net/rapid"
)

// cutParts encodes the parts of words between the cuts on their own.
func cutParts(e *Encoder, words []uint64, cuts []int) (pieces [][]byte) {
	for i, from := range cuts {
		to := len(words)
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		if p := e.Append(nil, from, words[from:to]); len(p) > 0 {
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// everyLane cuts at multiples of height.
func everyLane(height int) (cuts []int) {
	for at := 0; at < Slots; at += height {
		cuts = append(cuts, at)
	}
	return cuts
}

// sameAsWhole checks headers and words of a multi-part chunk against the naive ones.
func sameAsWhole(t failer, src []byte, words []uint64) {
	t.Helper()
	checkHeader(t, src, 0, words)
	var got [Slots]uint64
	if err := DecodeRange(got[:], src, 0); err != nil {
		t.Fatalf("decode: %v", err)
	}
	if !slices.Equal(got[:], words) {
		t.Fatalf("the words of the multi-part chunk are not those of its pieces")
	}
}

// genChunk draws the words of a whole chunk: stretches of different data.
func genChunk(t *rapid.T) []uint64 {
	words := make([]uint64, Slots)
	for range rapid.IntRange(1, 4).Draw(t, "stretches") {
		off, part := genPart(t)
		copy(words[off:], part)
	}
	return words
}

// Whatever is accepted has the header that its words have, bit for bit (I4);
// integers are always accepted, floats whenever every lane is a piece.
func TestMultiPartEqualsTheWhole(t *testing.T) {
	var e Encoder
	rapid.Check(t, func(t *rapid.T) {
		words := genChunk(t)
		height := rapid.SampledFrom([]int{60, 60, 60, 72, 120, 180, 7, 360}).Draw(t, "height")
		cuts := everyLane(height)
		if rapid.Bool().Draw(t, "not all") {
			drop := rapid.IntRange(0, len(cuts)-1).Draw(t, "dropped")
			clear(words[cuts[drop]:min(cuts[drop]+height, Slots)])
		}
		pieces := cutParts(&e, words, cuts)
		floats := false
		for _, p := range pieces {
			var f frame
			r := newReader(p)
			if err := f.parse(&r); err != nil {
				t.Fatal(err)
			}
			floats = floats || f.class != classInts
		}
		src, points, err := AppendMultiPart([]byte("xy"), pieces)
		var read combiner // as a reader sees the pieces
		var readErr error
		for _, p := range pieces {
			if readErr = read.add(p); readErr != nil {
				break
			}
		}
		if len(pieces) >= minListed && len(pieces) <= maxListed &&
			((readErr == nil) != (err == nil) || err == nil && points != read.h.Count) {
			t.Fatalf("written as %d points, %v; read as %d, %v", points, err, read.h.Count, readErr)
		}
		if bound := len(pieces) >= minListed && len(pieces) <= maxListed; (err == nil) != bound &&
			(!bound || !floats || height == Lane) {
			t.Fatalf("%d pieces of %d slots, floats %v: error %v", len(pieces), height, floats, err)
		}
		if string(src[:2]) != "xy" || err != nil && len(src) != 2 {
			t.Fatalf("dst became %x", src)
		}
		if err != nil {
			return
		}
		sameAsWhole(t, src[2:], words)
		from := rapid.IntRange(0, Slots).Draw(t, "from")
		part := make([]uint64, rapid.IntRange(0, Slots-from).Draw(t, "slots"))
		if err := DecodeRange(part, src[2:], from); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(part, words[from:from+len(part)]) {
			t.Fatalf("[%d, %d) differs from the slice of the whole", from, from+len(part))
		}
	})
}

func TestMultiPartChunksOfEveryClass(t *testing.T) {
	var e Encoder
	accepted := map[byte]int{}
	for _, k := range kinds() {
		words := k.make(Slots)
		pieces := cutParts(&e, words, everyLane(Lane))
		src, _, err := AppendMultiPart(nil, pieces)
		if err != nil {
			continue
		}
		for _, p := range pieces {
			accepted[p[0]&3]++
		}
		sameAsWhole(t, src, words)
	}
	for class := range byte(4) {
		if accepted[class] == 0 {
			t.Errorf("no piece of class %d was accepted", class)
		}
	}
}

// Float sums depend on the order; each of these pieces would change it.
func TestMultiPartOfFloatsKeepsTheOrder(t *testing.T) {
	var e Encoder
	values := kinds()[10].make(Slots) // floats
	ints := kinds()[1].make(Slots)
	for _, c := range []struct {
		name  string
		words func(w []uint64)
		cuts  []int
		ok    bool
	}{
		{"a piece a lane", func([]uint64) {}, everyLane(Lane), true},
		{"a piece of two lanes", func([]uint64) {}, []int{0, 60, 180}, false},
		{"two pieces in a lane", func(w []uint64) { clear(w[60:]) }, []int{0, 30}, false},
		{"an unset lane", func(w []uint64) { clear(w[120:180]) }, everyLane(Lane), true},
		{"the end of a lane unset", func(w []uint64) { clear(w[150:180]) }, everyLane(Lane), true},
		{"the start of a lane unset", func(w []uint64) { clear(w[120:121]) }, everyLane(Lane), true},
		{"integers before the gap", func(w []uint64) {
			copy(w, ints[:120])
			clear(w[120:150])
		}, everyLane(Lane), true},
		{"integers behind the gap", func(w []uint64) {
			clear(w[110:150])
			copy(w[150:], ints[150:])
		}, everyLane(Lane), true},
		{"integers and floats in a lane", func(w []uint64) {
			copy(w, ints[:30])
			clear(w[60:])
		}, []int{0, 30}, true},
	} {
		words := slices.Clone(values)
		c.words(words)
		src, _, err := AppendMultiPart(nil, cutParts(&e, words, c.cuts))
		if (err == nil) != c.ok {
			t.Errorf("%s: error %v", c.name, err)
		}
		if err == nil {
			sameAsWhole(t, src, words)
		}
	}
}

func TestMultiPartRefuses(t *testing.T) {
	var e Encoder
	words := kinds()[1].make(Slots)
	p := cutParts(&e, words, everyLane(Lane))
	nested, _, err := AppendMultiPart(nil, p[:2])
	if err != nil {
		t.Fatal(err)
	}
	short := cutParts(&e, words, everyLane(40))
	for name, pieces := range map[string][][]byte{
		"nothing": nil, "one": p[:1], "descending": {p[1], p[0]}, "twice": {p[0], p[0]},
		"composite": {nested, p[2]}, "an empty one": {p[0], nil}, "damaged": {p[0], {0xff}},
		"too many": short,
	} {
		if dst, _, err := AppendMultiPart(nil, pieces); err == nil || dst != nil {
			t.Errorf("%s: %x, error %v", name, dst, err)
		}
	}
}

// multi-part chunks are one chunk of every kind of data that the pieces allow.
func multiParts(height int) (all [][]byte) {
	var e Encoder
	for _, c := range kinds() {
		if src, _, err := AppendMultiPart(nil,
			cutParts(&e, c.make(Slots)[:3*height+5], everyLane(height)[:4])); err == nil {
			all = append(all, src)
		}
	}
	return all
}

func TestDamagedMultiPartNeverPanics(t *testing.T) {
	for _, src := range append(multiParts(Lane), multiParts(2*Lane)...) {
		for i := range src {
			if err := decodeAll(t, src[:i]); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%d of %d bytes: error %v", i, len(src), err)
			}
		}
		for i := range min(8*len(src), 6000) {
			bad := slices.Clone(src)
			bad[i/8] ^= 1 << (i & 7)
			decodeAll(t, bad)
		}
	}
}

func TestMultiPartDoesNotAllocate(t *testing.T) {
	var e Encoder
	pieces := cutParts(&e, kinds()[1].make(Slots)[:4*Lane], everyLane(Lane)[:4])
	dst := make([]byte, 0, 4096)
	var out [Slots]uint64
	n := testing.AllocsPerRun(10, func() {
		src, _, err := AppendMultiPart(dst, pieces)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseHeader(src); err != nil {
			t.Fatal(err)
		}
		if err := DecodeRange(out[:], src, 0); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The extremes of pieces without a number, and of equal values that differ.
func TestExtremesOfAMultiPartChunk(t *testing.T) {
	var e Encoder
	nan, zero, minus := point.FromFloat(math.NaN()), point.FromFloat(0), uint64(1<<63)
	one, oneInt, negative := point.FromFloat(1), point.FromInt(1), point.FromInt(-5)
	for _, values := range [][]uint64{
		{nan, negative, nan}, {negative, nan, one}, {nan, nan}, {nan, one}, {nan, one, nan, negative},
		{one, oneInt}, {oneInt, one}, {zero, minus}, {minus, zero}, {negative, oneInt, negative, one},
	} {
		words := make([]uint64, Slots)
		for i, w := range values {
			words[i*Lane], words[i*Lane+7] = w, w
		}
		src, _, err := AppendMultiPart(nil, cutParts(&e, words, everyLane(Lane)))
		if err != nil {
			t.Fatal(err)
		}
		sameAsWhole(t, src, words)
		for i, w := range words { // the edges of every piece
			var got [1]uint64
			if err := DecodeRange(got[:], src, i); err != nil || got[0] != w {
				t.Fatalf("slot %d alone is %016x, want %016x, %v", i, got[0], w, err)
			}
		}
	}
}

// Lists that claim more or less than there is, pieces that are lists, and
// pieces out of order.
func TestMultiPartChunkThatNobodyWrote(t *testing.T) {
	var e Encoder
	p := cutParts(&e, kinds()[0].make(Slots)[:2*Lane], everyLane(Lane)[:2])
	good, _, err := AppendMultiPart(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	swapped := slices.Concat([]byte{multiPartForm, 2, byte(len(p[1])), byte(len(p[0]))}, p[1], p[0])
	for _, src := range [][]byte{
		{multiPartForm}, {multiPartForm, 2}, {multiPartForm, 255}, {multiPartForm, 2, 0, 0},
		{multiPartForm, 2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1, 1},
		{multiPartForm, 2, 2, 2, multiPartForm, 2, multiPartForm, 2},
		swapped, append(slices.Clone(good), 0),
	} {
		_, err := ParseHeader(src)
		var out [Slots]uint64
		err2 := DecodeRange(out[:], src, 0)
		if !errors.Is(err, ErrCorrupt) || !errors.Is(err2, ErrCorrupt) {
			t.Errorf("%x: header %v, words %v", src, err, err2)
		}
		decodeAll(t, src)
	}
}
