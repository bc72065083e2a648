package sumtree

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
)

// modelSum is what is known of some slots: integers exactly, floats in order.
type modelSum struct {
	high, low   int64 // integers in two parts, of 2^28 and of 1
	float       float64
	first, last int // set slots; first is above last where none is
	word        uint64
}

// plus adds n copies of a word at once.
func (m *modelSum) plus(w uint64, n int) {
	switch {
	case n == 0 || w == 0:
	case point.KindOf(w) == point.KindFloat:
		product := point.Double(w) * float64(n)
		m.float += product
	default:
		v := int64(w<<8) >> 8
		m.high += v >> 28 * int64(n)
		m.low += v & (1<<28 - 1) * int64(n)
	}
}

func (m *modelSum) add(o modelSum) {
	m.high, m.low = m.high+o.high, m.low+o.low
	m.float += o.float
}

func (m *modelSum) value() float64 {
	whole := new(big.Int).Lsh(big.NewInt(m.high), 28)
	f, _ := new(big.Float).SetInt(whole.Add(whole, big.NewInt(m.low))).Float64()
	return f + m.float
}

// modelOf is the definition of the tree: the slots of words from from on, gaps
// filled from the first set one to the last. Children begin at multiples of the
// first size, theirs at those of the next; below a chunk are lanes of 60.
func modelOf(words []uint64, from int, sizes ...int) (all modelSum) {
	all.first, all.last = 1, 0
	if len(sizes) == 0 {
		return modelChunk(words, from)
	}
	for len(words) > 0 {
		n := min(sizes[0]-from%sizes[0], len(words))
		child := modelOf(words[:n], from, sizes[1:]...)
		words, from = words[n:], from+n
		if child.first > child.last {
			continue
		}
		if all.first > all.last {
			all = child
			continue
		}
		all.plus(all.word, child.first-all.last-1)
		all.add(child)
		all.last, all.word = child.last, child.word
	}
	return all
}

func modelChunk(words []uint64, from int) modelSum {
	m := modelSum{first: 1, last: 0}
	filled := make([]uint64, len(words))
	for i, w := range words {
		if w != 0 {
			if m.first > m.last {
				m.first = from + i
			}
			m.last, m.word = from+i, w
		}
		filled[i] = m.word
	}
	if m.first > m.last {
		return m
	}
	for lane := m.first / 60; lane <= m.last/60; lane++ {
		var of modelSum
		for slot := max(m.first, lane*60); slot <= min(m.last, lane*60+59); slot++ {
			of.plus(filled[slot-from], 1)
		}
		m.add(of)
	}
	return m
}

// modelStep is the sum of a step: a word that is carried in stands for the slots up to
// the first set one, the last one for those behind it.
func modelStep(words []uint64, from int, carry uint64) (float64, uint64) {
	var step modelSum
	m := modelOf(words, from, 120*720, 10*720, 720)
	if m.first > m.last {
		step.plus(carry, len(words))
	} else {
		step.plus(carry, m.first-from)
		m.plus(m.word, from+len(words)-1-m.last)
		step.add(m)
		carry = m.word
	}
	return step.value(), carry
}

// hostile are floats whose sum shows every other order.
var hostile = []float64{1e300, -1e300, 1e-300, -1e-300, 5e-324, math.Copysign(0, -1), 0, 0.1, -0.7, 1, 1 << 53, -1e16, 3.7e15, math.MaxFloat64}

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
	total, numbers := Total{}, Total{Numbers: true}
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
			checkStep(t, r, words[from:from+length], from, &total, &numbers, &tree)
		}
	}
}

func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

func checkStep(t *testing.T, r *rand.Rand, words []uint64, from int, total, numbers *Total, tree *Tree) {
	t.Helper()
	carry := []uint64{point.Unset, point.FromInt(-7), point.FromFloat(0.3)}[r.IntN(3)]
	want, last := modelStep(words, from, carry)
	set := int64(0)
	nan := false
	for _, w := range words {
		if w != 0 {
			set++
		}
		nan = nan || point.Float(w) != point.Float(w)
	}
	whole := r.IntN(2) == 0
	for at := 0; at < len(words); {
		n := len(words) - at
		if !whole {
			n = 1 + r.IntN(n)
		}
		total.Add(words[at:at+n], int64(from+at))
		numbers.Add(words[at:at+n], int64(from+at))
		at += n
	}
	if total.Count != set {
		t.Fatalf("[%d, +%d): %d set slots, want %d", from, len(words), total.Count, set)
	}
	sum, word := total.End(carry, int64(from), int64(from+len(words)))
	if !sameFloat(sum.Float64(), want) || word != last {
		t.Fatalf("[%d, +%d): sum %x and last word %x, want %x and %x", from, len(words), sum.Float64(), word, want, last)
	}
	wantClean := want
	if nan {
		clean := slices.Clone(words)
		for i, w := range words {
			if v := point.Float(w); v != v {
				clean[i] = point.FromFloat(0)
			}
		}
		wantClean, _ = modelStep(clean, from, carry)
	}
	if sum, _ := numbers.End(carry, int64(from), int64(from+len(words))); !sameFloat(sum.Float64(), wantClean) {
		t.Fatalf("[%d, +%d) without NaN: sum %x, want %x", from, len(words), sum.Float64(), wantClean)
	}
	for at := 0; at < len(words); {
		off := (from + at) % chunk.Slots
		n := min(chunk.Slots-off, len(words)-at)
		tree.Words(words[at:at+n], off, int64((from+at)/chunk.Slots), at-off)
		at += n
	}
	var h chunk.Header
	tree.End(&h)
	got := chunk.Repeat(carry, len(words))
	if h.Count > 0 {
		got = chunk.Repeat(carry, h.FirstOff).Plus(h.FilledTo(len(words)))
	}
	if !sameFloat(got.Float64(), want) || h.Count != int(set) {
		t.Fatalf("[%d, +%d): the tree has %x of %d slots, want %x of %d", from, len(words), got.Float64(), h.Count, want, set)
	}
}

// A total of integers beyond 64 bits, of nothing, and of a carried NaN.
func TestTotalOfLittle(t *testing.T) {
	var total Total
	if sum, last := total.End(point.FromFloat(math.NaN()), 5, 9); sum.Float64() == sum.Float64() || last == point.Unset {
		t.Errorf("a carried NaN: %v", sum)
	}
	total.Numbers = true
	if sum, last := total.End(point.FromFloat(math.NaN()), 5, 9); sum.Float64() != 0 || point.Float(last) != 0 {
		t.Errorf("a carried NaN that does not count: %v", sum)
	}
	total.Add([]uint64{0, point.FromInt(point.MaxInt), 0, 0}, 0)
	sum, _ := total.End(0, 0, 1<<40)
	if want := new(big.Int).Mul(big.NewInt(point.MaxInt), big.NewInt(1<<40-1)); new(big.Int).Add(new(big.Int).Lsh(big.NewInt(sum.Hi), 64), new(big.Int).SetUint64(sum.Lo)).Cmp(want) != 0 {
		t.Errorf("%d %d, want %v", sum.Hi, sum.Lo, want)
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
					t.End(0, int64(at), int64(at+step))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(words)), "ns/point")
		})
	}
}
