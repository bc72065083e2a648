package sumtree

import (
	"math"
	"math/rand/v2"
	"testing"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
	"pgregory.net/rapid"
)

// treeSums are the float sums of a node and where it lies.
type treeSums struct {
	sum, filled float64
	first, last int
	carry       uint64
	any         bool
}

// naiveTree is the definition: the slots of words, the first of which is from, in
// a node of so many chunks of the tree, or in a lane of sizes nothing.
func naiveTree(words []uint64, from int, sizes ...int) (all treeSums) {
	for len(words) > 0 {
		n := min(sizes[0]-from%sizes[0], len(words))
		var s treeSums
		if sizes[0] == chunk.Slots {
			s = naiveTreeChunk(words[:n], from)
		} else {
			s = naiveTree(words[:n], from, sizes[1:]...)
		}
		if s.any && all.any {
			all.filled += point.Float(all.carry) * float64(s.first-all.last-1)
			all.filled += s.filled
			all.sum += s.sum
			all.last, all.carry = s.last, s.carry
		} else if s.any {
			all = s
		}
		words, from = words[n:], from+n
	}
	return all
}

func naiveTreeChunk(words []uint64, from int) (s treeSums) {
	var plain, filled [chunk.Slots / chunk.Lane]float64
	var open [chunk.Slots / chunk.Lane]float64 // of slots behind the last set one
	for i, w := range words {
		lane := (from + i) % chunk.Slots / chunk.Lane
		if w != point.Unset {
			if !s.any {
				s.any, s.first = true, from+i
			}
			s.last, s.carry = from+i, w
			plain[lane] += point.Float(w)
		}
		if s.any {
			open[lane] += point.Float(s.carry)
		}
		if w != point.Unset {
			filled = open
		}
	}
	for l := range plain {
		s.sum += plain[l]
		s.filled += filled[l]
	}
	return s
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
			want := naiveTree(words[from:past], from, chunk.MaxRollup, unitChunks*chunk.Slots, chunk.Slots)
			if got.Count > 0 != want.any || want.any && (got.Sum.Float != want.sum || got.Filled.Float != want.filled ||
				got.FirstOff != want.first-from || got.LastOff != want.last-from) {
				t.Fatalf("[%d, %d): %+v, want %+v", from, past, got, want)
			}
		})
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
			var stored, large chunk.Header
			for i := int64(0); i < n; i += unitChunks {
				var unit chunk.Header
				for k := range int64(unitChunks) {
					if h := chunk.Summarize(words[at+int(i+k)*chunk.Slots:][:chunk.Slots], 0); h.Count > 0 {
						unit.Append(&h, int(k)*chunk.Slots)
					}
				}
				if unit.Count > 0 {
					large.Append(&unit, int(i)*chunk.Slots)
				}
				stored = unit
			}
			if n == largeChunks {
				stored = large
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
