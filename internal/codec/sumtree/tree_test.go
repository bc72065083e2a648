package sumtree

import (
	"math"
	"math/rand/v2"
	"testing"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"pgregory.net/rapid"
)

// naiveRises reports whether words are finite and none is below the one before it, and which is
// the first and the last one.
func naiveRises(words []uint64) (rises bool, first, last int) {
	before := math.Inf(-1)
	rises, first = true, -1
	for i, w := range words {
		if w == point.Unset {
			continue
		}
		v := point.Float(w)
		rises = rises && !math.IsInf(v, 0) && v >= before
		before, last = v, i
		if first < 0 {
			first = i
		}
	}
	return rises, first, last
}

// Whatever range is cut out of a series and however its chunks come, one by one
// or as what is stored of 10 or of 120, the sums have the same bits.
func TestTreeIsTheSameForEveryRange(t *testing.T) {
	const chunks = 3*largeChunks + 7
	for range 5 {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			words := make([]uint64, chunks*chunk.Slots)
			for i := 0; i < len(words); i += 1 + r.IntN(1+r.IntN(700)) {
				words[i] = point.FromFloat(math.Ldexp(r.NormFloat64(), r.IntN(200)))
			}
			if rapid.Bool().Draw(t, "a counter") {
				count(r, words)
			}
			from := rapid.IntRange(0, len(words)-1).Draw(t, "from")
			if rapid.Bool().Draw(t, "at a chunk") {
				from -= from % chunk.Slots
			}
			past := rapid.IntRange(from+1, len(words)).Draw(t, "past")
			var tree Tree
			got := chunk.Header{Count: 77}
			for range 2 { // memory is used again
				addRange(&tree, r, words, from, past)
				tree.End(&got)
			}
			want := modelStep(words[from:past], from)
			rises, first, last := naiveRises(words[from:past])
			if got.Count > 0 != (first >= 0) || first >= 0 && (got.Sum.Float != want || got.Rises != rises ||
				got.FirstOff != first || got.LastOff != last) {
				t.Fatalf("[%d, %d): %+v, want %v, slots %d to %d, rises %v", from, past, got, want, first, last,
					rises)
			}
		})
	}
}

// count makes a counter of the set slots, with a reset here and there.
func count(r *rand.Rand, words []uint64) {
	v := 0.0
	for i := range words {
		if words[i] == point.Unset {
			continue
		}
		if v += float64(r.IntN(3)); r.IntN(200_000) == 0 {
			v = 0
		}
		words[i] = point.FromFloat(v)
	}
}

// addRange adds a range as a reader may find it.
func addRange(tree *Tree, r *rand.Rand, words []uint64, from, past int) {
	for at := from; at < past; {
		number := int64(at / chunk.Slots)
		for _, n := range []int64{largeChunks, unitChunks} {
			end := at + int(n)*chunk.Slots
			if at%chunk.Slots != 0 || number%n != 0 || end > past || r.IntN(2) == 0 {
				continue
			}
			var stored chunk.Header
			var large chunk.Node
			for i := int64(0); i < n; i += unitChunks {
				var unit chunk.Node
				for k := range int64(unitChunks) {
					if h := chunk.Summarize(words[at+int(i+k)*chunk.Slots:][:chunk.Slots], 0); h.Count > 0 {
						unit.Append(&h, int(k)*chunk.Slots)
					}
				}
				if stored = unit.Header(); stored.Count > 0 {
					large.Append(&stored, int(i)*chunk.Slots)
				}
			}
			if n == largeChunks {
				stored = large.Header()
			}
			if stored.Count > 0 {
				tree.Add(&stored, number, n, at-from)
			}
			at = end
			break
		}
		if at < past && int64(at/chunk.Slots) == number {
			end := min(past, at-at%chunk.Slots+chunk.Slots)
			tree.Words(words[at:end], at%chunk.Slots, number, at-at%chunk.Slots-from)
			at = end
		}
	}
}
