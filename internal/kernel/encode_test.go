//go:build unix

package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func signed(words []uint64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

func TestDifferences(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for src := range sources(r) {
		v, base := signed(src), int64(random(r))
		got, want := wordsAtPageEnd(len(src)), make([]uint64, len(src))
		Offsets(got, v, base)
		for i, x := range v {
			want[i] = uint64(x - base)
		}
		same(t, "offsets", got, want, src)
		if len(src) > 0 {
			got, want = got[1:], want[1:]
			Steps(got, v, base)
			for i := range want {
				want[i] = uint64(v[i+1] - v[i] - base)
			}
			same(t, "steps", got, want, src)
		}
		words := slices.Clone(src)
		ks := signed(wordsAtPageEnd(len(words)))
		Integers(ks, words)
		for i, w := range words {
			if ks[i] != intOf(w) {
				t.Fatalf("integer of %#x is %d, want %d", w, ks[i], intOf(w))
			}
		}
	}
}

func TestCombine(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 4))
	for src := range sources(r) {
		for i := range src { // bits that all words have
			src[i] |= 1 << (len(src) % 64)
		}
		and, or := Combine(src)
		wantAnd, wantOr := ^uint64(0), uint64(0)
		for _, w := range src {
			wantAnd, wantOr = wantAnd&w, wantOr|w
		}
		if and != wantAnd || or != wantOr {
			t.Fatalf("%x: %#x %#x, want %#x %#x", src, and, or, wantAnd, wantOr)
		}
	}
}

func TestSpreadIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for src := range sources(r) {
		if len(src) < 2 {
			continue
		}
		for i := range src {
			if i > 0 && r.IntN(3) == 0 {
				src[i] = src[i-1]
			}
		}
		v := signed(src)
		got := SpreadOf(v)
		want := Spread{Min: slices.Min(v), Max: slices.Max(v), MinStep: math.MaxInt64, MaxStep: math.MinInt64, High: got.High, Low: got.Low}
		sum := new(big.Int)
		for i, x := range v {
			sum.Add(sum, big.NewInt(x))
			if i > 0 {
				d := x - v[i-1]
				want.MinStep, want.MaxStep = min(want.MinStep, d), max(want.MaxStep, d)
				if d == 0 {
					want.Equal++
				}
			}
		}
		total := new(big.Int).Lsh(big.NewInt(got.High), 32)
		if got != want || total.Add(total, big.NewInt(got.Low)).Cmp(sum) != 0 {
			t.Fatalf("%x: %+v, want %+v with the sum %v", src, got, want, sum)
		}
	}
}

func TestScaledIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for src := range sources(r) {
		scale := math.Pow10(r.IntN(10))
		odd := r.IntN(20) // one word of so many is any
		for i := range src {
			if odd == 0 || r.IntN(odd) > 0 {
				k := r.Int64N(1<<52) >> r.IntN(52)
				src[i] = math.Float64bits(float64(k-1<<r.IntN(51))/scale)>>1 | floatMarker
			}
		}
		ks := make([]int64, len(src))
		n := Scaled(ks, src, scale)
		for i, w := range src[:n] {
			if k, ok := ScaledOne(w, scale); !ok || k != ks[i] {
				t.Fatalf("%#x times %v is %d, want %d, %v", w, scale, ks[i], k, ok)
			}
		}
		if n < len(src) {
			if k, ok := ScaledOne(src[n], scale); ok {
				t.Fatalf("%#x times %v is %d and was not found", src[n], scale, k)
			}
		}
	}
}
