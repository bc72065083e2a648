package reduce

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query/function"
)

const apart = 9 // outputs between values of different spans, at most

func newGrowth(fn function.Op) *Growth {
	return New(Over{Fn: fn, Seconds: 2, Apart: apart}).(*Growth)
}

// counterWords makes slots of counters and of what is none.
func counterWords(r *rand.Rand, n int) []uint64 {
	words := make([]uint64, n)
	gaps, floats, resets := r.IntN(3), r.IntN(101), 1+r.IntN(200)
	odd := r.IntN(3) == 0
	whole, v := r.Int64N(1<<54), 0.0
	for i := range words {
		if gaps > 0 && r.IntN([]int{1, 20, 3}[gaps]) == 0 {
			continue
		}
		whole, v = whole+r.Int64N(1000), v+r.ExpFloat64()*math.Ldexp(1, r.IntN(60)-30)
		if r.IntN(resets) == 0 {
			whole, v = r.Int64N(1000)-100, r.NormFloat64()
		}
		switch {
		case odd && r.IntN(20) == 0:
			words[i] = point.FromFloat([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e308,
				-1e308}[r.IntN(5)])
		case r.IntN(100) < floats:
			words[i] = point.FromFloat(v)
		default:
			words[i] = point.FromInt(whole)
		}
	}
	return words
}

// naiveGrowth is the rule: the growth over pairs of values, without rounding, and the outputs that
// they are apart. It is not told where a value is infinite.
func naiveGrowth(words []uint64, from int) (growth float64, steps int, told bool) {
	total, last := new(big.Rat), -1
	for i, w := range words {
		v := point.Float(w)
		if w == 0 || v != v {
			continue
		}
		if math.IsInf(v, 0) {
			return 0, 0, false
		}
		if i >= from && last >= 0 && (last >= from || i-last <= apart) {
			a, b := exactly(words[last]), exactly(w)
			switch steps += i - last; {
			case b.Cmp(a) >= 0:
				total.Add(total, b.Sub(b, a))
			case b.Sign() > 0:
				total.Add(total, b)
			}
		}
		last = i
	}
	growth, _ = total.Float64()
	return growth, steps, !math.IsInf(growth, 0)
}

func exactly(w uint64) *big.Rat {
	if point.KindOf(w) == point.KindInt {
		return new(big.Rat).SetInt64(point.Int(w))
	}
	return new(big.Rat).SetFloat64(point.Float(w))
}

// feed gives a span to what adds it up: as words, and as aggregates where these rise.
func feed(r *rand.Rand, g *Growth, words []uint64, from int) {
	g.BeforeWords(words[:from], 0)
	for at := from; at < len(words); {
		n := min(1+r.IntN(200), len(words)-at, chunk.Slots)
		if h := chunk.Summarize(words[at:at+n], 0); h.Rises && r.IntN(2) == 0 {
			g.Rising(h.First, h.Last, int64(at+h.FirstOff), int64(at+h.LastOff), int64(h.Count))
		} else {
			g.Words(words[at:at+n], int64(at))
		}
		at += n
	}
}

// The growth is that of the rule, integers exactly, and has the same bits whatever the pieces are.
func TestGrowthIsThatOfThePairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		words := counterWords(r, 1+r.IntN(2000))
		from := r.IntN(len(words))
		g := newGrowth(function.Increase)
		var first float64
		for i := range 4 {
			g.begun = false
			feed(r, g, words, from)
			v := g.Close()
			if i == 0 {
				first = v
			} else if math.Float64bits(v) != math.Float64bits(first) && (v == v || first == first) {
				t.Fatalf("in other pieces %v, first %v", v, first)
			}
		}
		want, steps, told := naiveGrowth(words, from)
		if !told {
			return
		}
		if steps == 0 != (first != first) || steps > 0 && math.Abs(first-want) > want*0x1p-50 {
			t.Fatalf("growth %v, want %v over %d", first, want, steps)
		}
		g = newGrowth(function.Rate)
		feed(r, g, words, from)
		if v := g.Close(); steps > 0 && v != first/(float64(steps)*2) {
			t.Fatalf("rate %v, growth %v over %d outputs of 2 s", v, first, steps)
		}
	})
}

// Floats that are computed grow as those that are read.
func TestGrowthOfComputedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		words := counterWords(r, 1+r.IntN(300))
		values := make([]float64, len(words))
		for i, w := range words {
			if values[i] = math.NaN(); w != 0 {
				values[i] = point.Float(w)
				words[i] = point.FromFloat(values[i])
			}
		}
		from := r.IntN(len(words))
		read, computed := newGrowth(function.Increase), newGrowth(function.Increase)
		feed(r, read, words, from)
		computed.Before(values[:from])
		computed.Add(values[from:], nil)
		if read.Values() != computed.Values() {
			t.Fatalf("%d values, want %d", computed.Values(), read.Values())
		}
		if a, b := read.Close(), computed.Close(); math.Float64bits(a) != math.Float64bits(b) &&
			(a == a || b == b) {
			t.Fatalf("computed %v, read %v", b, a)
		}
	})
}
