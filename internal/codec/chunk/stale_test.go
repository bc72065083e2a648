package chunk

import (
	"slices"
	"testing"

	"dalmatiner/internal/codec/point"
)

// endWithStale are the words of a series that ends with a stale marker in a slot.
func endWithStale(words []uint64, slot int) []uint64 {
	words = append(slices.Clone(words[:slot]), point.Stale)
	return words
}

// A marker costs a few bytes, and the values behind it have the bytes that they have alone.
func TestStaleMarkersAreSmall(t *testing.T) {
	var e Encoder
	for _, c := range kinds() {
		for _, slot := range []int{1, 300, Slots - 1} {
			words := c.make(Slots)
			with, alone := e.Append(nil, 0, endWithStale(words, slot)), e.Append(nil, 0, words[:slot])
			if !HasStale(with) || HasStale(alone) || !slices.Equal(with[len(with)-len(alone):], alone) {
				t.Errorf("%s: %d bytes with a marker do not end with the %d of the values", c.name, len(with),
					len(alone))
			}
			if n := len(with) - len(alone); n > 5 {
				t.Errorf("%s: a marker costs %d bytes", c.name, n)
			}
		}
	}
	all := make([]uint64, Slots)
	for i := range all {
		all[i] = point.Stale
	}
	if src := e.Append(nil, 0, all); len(src) > 5 {
		t.Errorf("%d bytes for stale markers alone", len(src))
	}
}

// Where only markers are set there is a chunk, and no aggregate.
func TestOnlyStaleMarkers(t *testing.T) {
	var e Encoder
	for _, words := range [][]uint64{{point.Stale}, {point.Stale, 0, 0, point.Stale, 0},
		repeatWord(Slots, point.Stale)} {
		src := check(t, &e, 0, words)
		if h, err := ParseHeader(src); err != nil || h != (Header{}) {
			t.Errorf("header %+v of stale markers: %v", h, err)
		}
		var a Adder
		dst := []Header{{Count: 7}, {Count: 8}}
		if err := a.Steps(dst, src, Steps{To: Slots, Cut: 360, Every: 360}); err != nil ||
			dst[0] != (Header{}) || dst[1] != (Header{}) {
			t.Errorf("steps %+v of stale markers: %v", dst, err)
		}
	}
}

// A multi-part chunk has no stale markers: such pieces are encoded as a whole.
func TestPiecesWithStaleMarkersAreRefused(t *testing.T) {
	var e Encoder
	words := kinds()[1].make(2 * Lane)
	words[Lane+5] = point.Stale
	if _, _, err := AppendMultiPart(nil, cutParts(&e, words, []int{0, Lane})); err == nil {
		t.Error("a piece with a stale marker was taken")
	}
}

func TestRollupOfStaleMarkers(t *testing.T) {
	src := AppendRollup([]byte{9}, &Header{})
	h, rest, err := ParseRollup(append(src[1:], 7))
	if err != nil || h != (Header{}) || !slices.Equal(rest, []byte{7}) {
		t.Fatalf("%x is read as %+v, %x left: %v", src, h, rest, err)
	}
	var all Node
	some := Summarize([]uint64{point.FromInt(4)}, 3)
	all.Append(&Header{}, 0)
	all.Append(&some, Slots)
	all.Append(&Header{}, 2*Slots)
	if want := (Header{Count: 1, FirstOff: Slots + 3, LastOff: Slots + 3, First: some.First,
		Last: some.Last,
		Min:  some.Min, Max: some.Max, Sum: some.Sum, Rises: true}); all.Header() != want ||
		all.Count() != 1 {
		t.Errorf("rollup %+v, want %+v", all.Header(), want)
	}
}
