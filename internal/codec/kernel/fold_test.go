//go:build unix

package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dalmatiner/internal/codec/floatsum"
)

// foldCase is a fold as the package chooses and in Go.
type foldCase struct {
	name    string
	fast    func(f *Fold, res *Residuals, p Prediction, lanes, from, to int)
	slow    func(f *Fold, res *Residuals, p Prediction, lanes, from, to int)
	empty   func(f *Fold, lane int)
	value   func(r *rand.Rand) uint64
	doubles bool // Sum is one
}

func foldings(r *rand.Rand) []foldCase {
	q, shift := Quotient{math.Pow10(r.IntN(10)), Whole - r.Uint64N(2)}, uint(r.IntN(64))
	return []foldCase{
		{"ints", FoldInts, foldIntsGo, (*Fold).NoInts, random, false},
		{"decimals",
			func(f *Fold, res *Residuals, p Prediction, lanes, from, to int) {
				FoldDecimals(f, res, p, q, lanes, from, to)
			},
			func(f *Fold, res *Residuals, p Prediction, lanes, from, to int) {
				foldDecimalsGo(f, res, p, q, lanes, from, to)
			},
			// Seven additions to a value, and twice sixty of the values.
			(*Fold).NoInts, func(r *rand.Rand) uint64 {
				return uint64(r.Int64N(1<<38) >> r.IntN(38))
			}, true},
		{"bits",
			func(f *Fold, res *Residuals, p Prediction, lanes, from, to int) {
				FoldBits(f, res, p, shift, lanes, from, to)
			},
			func(f *Fold, res *Residuals, p Prediction, lanes, from, to int) {
				foldBitsGo(f, res, p, shift, lanes, from, to)
			},
			(*Fold).NoFloats, func(r *rand.Rand) uint64 { return random(r) >> shift }, true},
	}
}

// sameFold compares the first lanes bit by bit; a sum that is not a number has any
// bits.
func sameFold(t *testing.T, what string, doubles bool, lanes int, got, want *Fold) {
	t.Helper()
	g, w := *got, *want
	for _, a := range []*[Lanes]uint64{&g.Value, &g.Step, &g.First, &g.Least, &g.Most, &g.Sum, &g.Rest,
		&w.Value, &w.Step, &w.First, &w.Least, &w.Most, &w.Sum, &w.Rest} {
		clear(a[lanes:])
	}
	for l := range lanes {
		if !doubles {
			continue
		}
		for _, sums := range [][2]*uint64{{&g.Sum[l], &w.Sum[l]}, {&g.Rest[l], &w.Rest[l]}} {
			if math.IsNaN(math.Float64frombits(*sums[0])) && math.IsNaN(math.Float64frombits(*sums[1])) {
				*sums[0] = *sums[1]
			}
		}
	}
	if g != w {
		t.Fatalf("%s:\n%x, want\n%x", what, g, w)
	}
}

// Every sub-range of the lanes, in one call and in several.
func TestFoldIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for from := 0; from <= MaxLane; from++ {
		for to := from; to <= MaxLane; to++ {
			for _, k := range foldings(r) {
				for order := range 3 {
					var res Residuals
					for i := range res {
						res[i] = k.value(r)
					}
					p := Prediction{Order: order, Base: k.value(r)}
					var got Fold
					for l := range Lanes {
						got.Value[l], got.Step[l] = k.value(r), k.value(r)
						k.empty(&got, l)
					}
					want, cut := got, got
					lanes := 1 + r.IntN(Lanes)
					k.fast(&got, &res, p, lanes, from, to)
					if from < to {
						k.slow(&want, &res, p, lanes, from, to)
					}
					sameFold(t, k.name, k.doubles, lanes, &got, &want)
					at := from + r.IntN(to-from+1)
					k.fast(&cut, &res, p, lanes, from, at)
					k.fast(&cut, &res, p, lanes, at, to)
					cut.First = want.First
					sameFold(t, k.name+" in two calls", k.doubles, lanes, &cut, &want)
				}
			}
		}
	}
}

// The reference is what the words of the values say.
func TestFoldIsTheWords(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for range 2000 {
		var res Residuals
		var v Values
		shift, q, narrow := uint(r.IntN(64)), Quotient{math.Pow10(r.IntN(10)), Whole - r.Uint64N(2)},
			13+r.IntN(50)
		for i := range res {
			res[i] = uint64(int64(random(r)) >> narrow)
		}
		n := 1 + r.IntN(MaxLane)
		Add(&v, &res, 0, Lanes, n)
		var ints, decimals, bits Fold
		for l := range Lanes {
			ints.NoInts(l)
			decimals.NoInts(l)
			bits.NoFloats(l)
		}
		FoldInts(&ints, &res, Prediction{}, Lanes, 0, n)
		FoldDecimals(&decimals, &res, Prediction{}, q, Lanes, 0, n)
		FoldBits(&bits, &res, Prediction{}, shift, Lanes, 0, n)
		words := make([]uint64, n)
		for l := range Lanes {
			Ints(words, v[l][:n])
			e := Measure(words)
			if got := (Extent{Kinds: e.Kinds, Least: int64(ints.Least[l]), Most: int64(ints.Most[l]),
				Sum: int64(ints.Sum[l])}); narrow > 20 && got != e {
				t.Fatalf("integers %x: %+v, want %+v", words, got, e)
			}
			var sum floatsum.Sum
			Decimals(words, v[l][:n], q)
			for _, w := range words {
				sum.Add(number(w))
			}
			if got := decimals.FloatSum(l); got != sum.Value() {
				t.Fatalf("decimals %x: %v, want %v", words, got, sum.Value())
			}
			Bits(words, v[l][:n], shift)
			checkBits(t, &bits, l, words)
		}
	}
}

// checkBits compares with the floats one after the other: NaN is skipped, and of
// equal ones the first is kept.
func checkBits(t *testing.T, f *Fold, lane int, words []uint64) {
	t.Helper()
	var all floatsum.Sum
	var numbers []float64
	for _, w := range words {
		v := number(w)
		all.Add(v)
		if v == v {
			numbers = append(numbers, v)
		}
	}
	if got, sum := f.FloatSum(lane), all.Value(); got != sum && (got == got || sum == sum) {
		t.Fatalf("floats %x: sum %v, want %v", words, got, all.Value())
	}
	least, most := math.Float64frombits(f.Least[lane]), math.Float64frombits(f.Most[lane])
	if len(numbers) == 0 {
		if least <= most {
			t.Fatalf("NaN only, and numbers from %v to %v", least, most)
		}
		return
	}
	// Equal floats differ where they are zeros.
	low := numbers[slices.Index(numbers, slices.Min(numbers))]
	high := numbers[slices.Index(numbers, slices.Max(numbers))]
	if math.Float64bits(least) != math.Float64bits(low) ||
		math.Float64bits(most) != math.Float64bits(high) {
		t.Fatalf("floats %x: from %v to %v, want %v to %v", words, least, most, low, high)
	}
}

func TestFoldOutsideOfTheLanes(t *testing.T) {
	for name, call := range map[string]func(f *Fold, res *Residuals){
		"order 3": func(f *Fold, res *Residuals) {
			FoldInts(f, res, Prediction{Order: 3}, 1, 0, 1)
		},
		"13 lanes": func(f *Fold, res *Residuals) { FoldInts(f, res, Prediction{}, 13, 0, 1) },
		"no lane":  func(f *Fold, res *Residuals) { FoldBits(f, res, Prediction{}, 0, 0, 0, 1) },
		"a long lane": func(f *Fold, res *Residuals) {
			FoldBits(f, res, Prediction{}, 0, 4, 0, MaxLane+1)
		},
		"before it": func(f *Fold, res *Residuals) { FoldInts(f, res, Prediction{}, 4, -1, 1) },
		"the wrong way": func(f *Fold, res *Residuals) {
			FoldDecimals(f, res, Prediction{}, Quotient{1, Whole}, 4, 2, 1)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			call(new(Fold), new(Residuals))
		}()
	}
}

// Decimals are rounded once, those whose quotient lies as close to the middle of two
// doubles as one can, too.
func TestQuotientsOfDecimals(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for e, five := 0, int64(1); e <= 9; e, five = e+1, five*5 {
		scale := math.Pow10(e)
		for range 20_000 {
			var res Residuals
			for l := range Lanes {
				k := r.Int64N(1<<51) >> r.IntN(51)
				if r.IntN(4) > 0 {
					k = nearMiddle(r, k, five)
				}
				if r.IntN(2) > 0 {
					k = -k
				}
				res[l] = uint64(k)
			}
			var f Fold
			f.AllNoInts()
			q := Quotient{scale, Whole}
			FoldDecimals(&f, &res, Prediction{}, q, Lanes, 0, 1)
			for l := range Lanes {
				if got, want := f.Sum[l], q.bits(int64(res[l])); got != want {
					t.Fatalf("%d / 10^%d: %x, want %x", int64(res[l]), e, got, want)
				}
			}
		}
	}
}

// nearMiddle returns an integer below 2^51 near k that, divided by five, a power of 5, and
// by any power of 2, is next to the middle of two doubles.
func nearMiddle(r *rand.Rand, k, five int64) int64 {
	// Doubled until a double has no room for its fraction, the remainder has to be the
	// half of five, rounded up or down; (five+1)/2 is what undoes a doubling.
	rest := (five/2 + int64(r.IntN(2))) % five
	for q := k / five; q > 0 && q < 1<<52; q *= 2 {
		rest = rest * (five/2 + 1) % five
	}
	return min(k-k%five+rest, 1<<51-1)
}
