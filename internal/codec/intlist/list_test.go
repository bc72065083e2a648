package intlist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dalmatiner/internal/codec/kernel"
	"pgregory.net/rapid"
)

// genInts draws integers of sources that lead to different forms.
func genInts(t *rapid.T) []int64 {
	n := rapid.SampledFrom([]int{MaxLen, 61, Lane, 17, 2, 719}).Draw(t, "n")
	if rapid.Bool().Draw(t, "any length") {
		n = rapid.IntRange(2, MaxLen).Draw(t, "length")
	}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	magnitude := rapid.IntRange(0, 61).Draw(t, "bits")
	factor := rapid.SampledFrom([]int64{1, 1, 4, 60, 1_000_000}).Draw(t, "factor")
	still := rapid.SampledFrom([]int{0, 0, 40, 80}).Draw(t, "without change of 100")
	burst := rapid.SampledFrom([]int{0, 0, 1, 30}).Draw(t, "of any magnitude of 100")
	draw := func() int64 {
		if r.IntN(100) < burst {
			return int64(math.Exp(r.Float64() * 40))
		}
		return int64(r.NormFloat64() * math.Ldexp(1, magnitude/2))
	}
	order := rapid.IntRange(0, 3).Draw(t, "order")
	v := make([]int64, n)
	var x, d int64
	for i := range v {
		if r.IntN(100) >= still {
			switch order {
			case 0:
				x = draw()
			case 1:
				x += draw()
			case 2:
				d += draw()
				x += d
			case 3:
				x += max(draw(), -3) + 3
			}
		}
		v[i] = clamp(x) / (1 << 20) * factor
		if factor == 1 {
			v[i] = clamp(x)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "extremes") {
		v[r.IntN(n)] = []int64{math.MaxInt64, math.MinInt64, math.MaxInt64 / 4, math.MinInt64 / 4,
			0}[r.IntN(5)]
	}
	if rapid.IntRange(0, 9).Draw(t, "of any size") == 0 {
		for i := range v {
			v[i] = int64(r.Uint64())
		}
	}
	if slices.Min(v) == slices.Max(v) {
		v[0]++
	}
	return v
}

func clamp(x int64) int64 { return min(max(x, -1<<61), 1<<61) }

// writeList plans and writes v in one of the two ways.
func writeList(t *rapid.T, v []int64) (src []byte, p *List, e Extent) {
	var s Scratch
	e = Measure(v)
	p = new(List)
	size := 0
	if rapid.Bool().Draw(t, "dense") {
		s.Dense = true
		size = p.PlanDense(v, &e, &s)
	} else {
		size = p.Plan(v, &e, &s)
	}
	src = p.AppendTo(nil, v, &s)
	if len(src) != size {
		t.Fatalf("%d bytes, planned %d: %s", len(src), size, p)
	}
	return src, p, e
}

func TestListRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		v := genInts(t)
		src, plan, e := writeList(t, v)
		seen[plan.String()] = true
		var p List
		r := NewReader(append(slices.Clone(src), 0xff))
		if err := r.List(&p, len(v), e.Min, uint64(e.Max-e.Min), v[0]); err != nil || len(r.Src) != 1 {
			t.Fatalf("%v, %d bytes are left of 1: %s", err, len(r.Src), plan)
		}
		var q Lanes
		j := rapid.IntRange(0, p.Lanes()-1).Draw(t, "lane")
		count := rapid.IntRange(1, p.Lanes()-j).Draw(t, "lanes")
		p.Decode(&q, j, count)
		var f, narrow kernel.Fold
		f.AllNoInts()
		kernel.FoldInts(&f, &q.Residuals, p.Start(&f, &q, j, count), count, 0, p.Length())
		isNarrow := p.FoldNarrow(&narrow, j, count)
		for k := range count {
			from := (j + k) * p.Length()
			lane := v[from:min(from+p.Length(), len(v))]
			for i, want := range lane {
				if got := int64(q.Values[k][i]); got != want {
					t.Fatalf("value %d is %d, want %d: %s", from+i, got, want, plan)
				}
			}
			if len(lane) == p.Length() {
				sameFold(t, &f, k, lane)
				if isNarrow {
					sameFold(t, &narrow, k, lane)
				}
			}
		}
	})
	if !testing.Short() && len(seen) < 12 {
		t.Errorf("only %d forms: %v", len(seen), seen)
	}
}

// TestCountersThatStepBack: a counter with a few smaller values is read back as it was, also where
// none of these lies in the blocks by which the code was chosen.
func TestCountersThatStepBack(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		v := make([]int64, sampledMin+r.IntN(MaxLen-sampledMin+1))
		at := r.Int64N(1 << 40)
		for i := range v {
			if at++; r.IntN(10) == 0 {
				at += 1 + r.Int64N(3)
			}
			v[i] = at
		}
		for range r.IntN(4) { // writes of another time
			v[sampledStep/3+r.IntN(len(v)-sampledStep/3)] -= r.Int64N(60)
		}
		e := Measure(v)
		s := Scratch{Dense: true}
		var plan, p List
		plan.PlanDense(v, &e, &s)
		src := plan.AppendTo(nil, v, &s)
		rest := NewReader(src)
		if err := rest.List(&p, len(v), e.Min, uint64(e.Max-e.Min), v[0]); err != nil {
			t.Fatalf("seed %d: %v: %s", seed, err, &plan)
		}
		var q Lanes
		for j := range p.Lanes() {
			p.Decode(&q, j, 1)
			for i, want := range v[j*p.Length() : min((j+1)*p.Length(), len(v))] {
				if got := int64(q.Values[0][i]); got != want {
					t.Fatalf("seed %d: value %d of lane %d is %d, want %d: %s", seed, i, j, got, want, &plan)
				}
			}
		}
	}
}

func sameFold(t *rapid.T, f *kernel.Fold, k int, lane []int64) {
	t.Helper()
	sum := int64(0)
	for _, x := range lane {
		sum += x
	}
	if int64(f.First[k]) != lane[0] || int64(f.Value[k]) != lane[len(lane)-1] ||
		int64(f.Sum[k]) != sum ||
		int64(f.Least[k]) != slices.Min(lane) || int64(f.Most[k]) != slices.Max(lane) {
		t.Fatalf("lane %d of %d: %d %d %d %d %d", k, lane, int64(f.First[k]), int64(f.Value[k]),
			int64(f.Sum[k]), int64(f.Least[k]), int64(f.Most[k]))
	}
}

func TestFactor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		factor := uint64(rapid.Int64Range(1, 1<<40).Draw(t, "factor"))
		n := rapid.IntRange(2, 100).Draw(t, "n")
		v := make([]int64, n)
		for i := range v {
			v[i] = rapid.Int64Range(-1<<20, 1<<20).Draw(t, "value")*int64(factor) + 17
		}
		least, want := slices.Min(v), uint64(0)
		for _, x := range v {
			want = gcd(want, uint64(x-least))
		}
		if want == 0 {
			return
		}
		if got := factorOf(v, least); got != want {
			t.Fatalf("factor %d of %d, want %d", got, v, want)
		}
		var s Scratch
		for i, x := range s.divide(v, least, want) {
			if least+x*int64(want) != v[i] {
				t.Fatalf("%d: %d times %d above %d", v[i], x, want, least)
			}
		}
	})
}

// FuzzList reads any bytes: lanes are the same whatever else is decoded.
func FuzzList(f *testing.F) {
	var s Scratch
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		v := make([]int64, 200)
		for i := 1; i < len(v); i++ {
			v[i] = v[i-1] + int64(math.Exp(r.Float64()*float64(r.IntN(20))))*int64(r.IntN(3))
		}
		e := Measure(v)
		if e.Min == e.Max {
			continue
		}
		var p List
		p.PlanDense(v, &e, &s)
		f.Add(p.AppendTo(nil, v, &s), uint16(len(v)), e.Min, uint64(e.Max-e.Min))
	}
	f.Fuzz(func(t *testing.T, src []byte, m uint16, least int64, span uint64) {
		n := 1 + int(m)%MaxLen
		var p List
		reader := NewReader(src)
		if span == 0 || reader.List(&p, n, least, span, least) != nil {
			return
		}
		var all, one Lanes
		p.Decode(&all, 0, p.Lanes())
		for j := range p.Lanes() {
			p.Decode(&one, j, 1)
			if got, want := one.Values[0][:p.Length()],
				all.Values[j][:p.Length()]; !slices.Equal(got, want) {
				t.Fatalf("lane %d alone is %x, was %x: %s", j, got, want, &p)
			}
		}
	})
}
