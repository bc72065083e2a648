package sumtree

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/recompute"
)

// modelSum is what is known of some slots: integers exactly, floats in order.
type modelSum struct {
	high, low int64 // integers in two parts, of 2^28 and of 1
	float     recompute.Float
}

// add takes the sum of a child, rounded.
func (m *modelSum) add(o modelSum) {
	m.high, m.low = m.high+o.high, m.low+o.low
	m.float.Add(o.float.Rounded())
}

func (m *modelSum) value() float64 {
	whole := new(big.Int).Lsh(big.NewInt(m.high), 28)
	f, _ := new(big.Float).SetInt(whole.Add(whole, big.NewInt(m.low))).Float64()
	return f + m.float.Rounded()
}

// modelOf is the definition of the tree: the set slots of words from from on. Children begin at
// multiples of the first size, theirs at those of the next; the last ones are lanes of 60.
func modelOf(words []uint64, from int, sizes ...int) (all modelSum) {
	if len(sizes) == 0 {
		for _, w := range words {
			switch {
			case w>>56 >= 4:
				all.float.Add(point.Float(w))
			case w != 0:
				v := int64(w<<8) >> 8
				all.high, all.low = all.high+v>>28, all.low+v&(1<<28-1)
			}
		}
		return all
	}
	for len(words) > 0 {
		n := min(sizes[0]-from%sizes[0], len(words))
		all.add(modelOf(words[:n], from, sizes[1:]...))
		words, from = words[n:], from+n
	}
	return all
}

// modelStep is the sum of a step.
func modelStep(words []uint64, from int) float64 {
	m := modelOf(words, from, 120*720, 10*720, 720, 60)
	return m.value()
}

// modelMean is the mean of the numbers of a step, computed without rounding.
func modelMean(words []uint64) float64 {
	sum, n := new(big.Float).SetPrec(2500), 0
	for _, w := range words {
		if v := point.Float(w); w != 0 && v == v {
			sum.Add(sum, new(big.Float).SetFloat64(v))
			n++
		}
	}
	mean, _ := sum.Quo(sum, big.NewFloat(float64(n))).Float64()
	return mean
}

// hostile are floats whose sum shows every other order.
var hostile = []float64{1e300, -1e300, 1e-300, -1e-300, 5e-324, math.Copysign(0, -1), 0, 0.1, -0.7,
	1, 1 << 53, -1e16, 3.7e15, math.MaxFloat64}

// hostileWords makes slots with gaps. Of one in four series some are not finite.
func hostileWords(r *rand.Rand, n int) []uint64 {
	words := make([]uint64, n)
	gaps, ints, wild := r.IntN(3), r.IntN(3) == 0, r.IntN(4) == 0
	for i := 0; i < n; i++ {
		if gaps > 0 && r.IntN(20) == 0 {
			i += r.IntN([]int{1, 5, 2000}[gaps])
			continue
		}
		switch {
		case ints && r.IntN(2) == 0:
			words[i] = point.FromInt(r.Int64N(1<<55) - r.Int64N(1<<55))
		case wild && r.IntN(500) == 0:
			words[i] = point.FromFloat([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)])
		case r.IntN(3) == 0:
			words[i] = point.FromFloat(hostile[r.IntN(len(hostile))])
		default:
			words[i] = point.FromFloat(math.Ldexp(r.NormFloat64(), r.IntN(120)-60))
		}
	}
	return words
}

// Every length of a step up to 3000 slots, at every place in a lane, of chunks, tens
// and hundreds of them: Total, however it is fed, and Tree give the tree's sum. Steps
// longer than 200 slots take six places each, in turns.
func TestTotalIsTheTree(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	const slots = 122 * 720
	words := hostileWords(r, slots)
	total := Total{Means: true}
	var tree Tree
	for length := 1; length <= 3000; length++ {
		if length%16 == 0 {
			words = hostileWords(r, slots)
		}
		every := 1
		if length > 200 || testing.Short() {
			every = 10
		}
		for place := length % every; place < chunk.Lane; place += every {
			from := r.IntN((slots-length)/chunk.Lane)*chunk.Lane + place
			switch r.IntN(4) {
			case 0: // over the begin of the second 120 chunks
				from = (chunk.MaxRollup-r.IntN(length+1))/chunk.Lane*chunk.Lane + place
			case 1: // of ten
				from = (7200*(1+r.IntN(11))-r.IntN(length+1))/chunk.Lane*chunk.Lane + place
			}
			from = min(from, (slots-length)/chunk.Lane*chunk.Lane-chunk.Lane+place)
			checkStep(t, r, words[from:from+length], from, &total, &tree)
		}
	}
}

func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

func checkStep(t *testing.T, r *rand.Rand, words []uint64, from int, total *Total, tree *Tree) {
	t.Helper()
	clean, numbers, set, odd := slices.Clone(words), int64(0), 0, false
	for i, w := range words {
		if w != 0 {
			set++
		}
		switch v := point.Float(w); {
		case v != v:
			clean[i] = 0
		case w != 0:
			numbers++
			odd = odd || math.IsInf(v, 0)
		}
	}
	want := modelStep(clean, from)
	whole := r.IntN(2) == 0
	for at := 0; at < len(words); {
		n := len(words) - at
		if !whole {
			n = 1 + r.IntN(n)
		}
		total.Add(words[at:at+n], int64(from+at))
		at += n
	}
	if total.Count != numbers {
		t.Fatalf("[%d, +%d): %d numbers, want %d", from, len(words), total.Count, numbers)
	}
	if sum := total.Sum(); !sameFloat(sum.Float64(), want) {
		t.Fatalf("[%d, +%d): sum %x, want %x", from, len(words), sum.Float64(), want)
	}
	checkMean(t, clean, total, odd)
	total.Reset()
	for at := 0; at < len(words); {
		off := (from + at) % chunk.Slots
		n := min(chunk.Slots-off, len(words)-at)
		tree.Words(words[at:at+n], off, int64((from+at)/chunk.Slots), at-off)
		at += n
	}
	var h chunk.Header
	tree.End(&h)
	if h.Count != set || numbers == int64(set) && set > 0 && !sameFloat(h.Sum.Float64(), want) {
		t.Fatalf("[%d, +%d): the tree has %x of %d slots, want %x of %d", from, len(words),
			h.Sum.Float64(), h.Count, want, set)
	}
}

// checkMean: a mean lies between the extremes, is finite where they are, and is that of the
// numbers but for rounding, which goes with the greatest of them.
func checkMean(t *testing.T, clean []uint64, total *Total, odd bool) {
	t.Helper()
	mean, low, high := total.Mean(), math.Inf(1), math.Inf(-1)
	for _, w := range clean {
		if w != 0 {
			low, high = min(low, point.Float(w)), max(high, point.Float(w))
		}
	}
	switch {
	case total.Count == 0:
		if mean == mean {
			t.Fatalf("the mean of nothing is %v", mean)
		}
	case odd:
	case !(mean >= low && mean <= high):
		t.Fatalf("mean %v, between %v and %v", mean, low, high)
	case math.Abs(mean-modelMean(clean)) > max(math.Abs(low),
		math.Abs(high))*float64(len(clean))*0x1p-50:
		t.Fatalf("mean %v, want %v", mean, modelMean(clean))
	}
}

// The mean of equal numbers is that number, however rounding goes, and also where the sum is
// beyond the doubles.
func TestMeansOfEqualNumbers(t *testing.T) {
	for _, v := range []float64{0.1, -0.3, 1.7e308, math.MaxFloat64, -math.MaxFloat64, 5e-324,
		1 << 55} {
		for n := 1; n < 70; n++ {
			total := Total{Means: true}
			for i := range n {
				total.Add([]uint64{point.FromFloat(v)}, int64(i))
			}
			if got := total.Mean(); got != point.Float(point.FromFloat(v)) {
				t.Errorf("%d times %v: %v", n, v, got)
			}
		}
	}
}

// BenchmarkTotal adds up a round of floats without gaps in steps.
func BenchmarkTotal(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	words := make([]uint64, 32*chunk.Slots)
	for i := range words {
		words[i] = point.FromFloat(r.Float64())
	}
	for _, step := range []int{2, 10, 60, 720} {
		b.Run(map[int]string{2: "2", 10: "10", 60: "60", 720: "720"}[step], func(b *testing.B) {
			var t Total
			for b.Loop() {
				for at := 0; at+step <= len(words); at += step {
					t.Add(words[at:at+step], int64(at))
					t.Sum()
					t.Reset()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(words)), "ns/point")
		})
	}
}
