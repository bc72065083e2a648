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
		requireEqual(t, "offsets", got, want, src)
		if len(src) > 0 {
			got, want = got[1:], want[1:]
			Steps(got, v, base)
			for i := range want {
				want[i] = uint64(v[i+1] - v[i] - base)
			}
			requireEqual(t, "steps", got, want, src)
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

func TestKinds(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 4))
	for src := range sources(r) {
		if len(src) == 0 {
			continue
		}
		most := r.IntN(4) // of one kind
		var count [3]int
		for i, w := range src {
			kind := most
			if most == 3 || r.IntN(len(src)) == 0 {
				kind = r.IntN(3)
			}
			count[kind]++
			src[i] = [3]uint64{0, intTag | w&intPayload, max(w, firstFloat)}[kind]
		}
		got, n := KindsOf(src), len(src)
		if got != Measure(src).Kinds || got.Unset() != (count[0] == n) || got.Ints() != (count[1] == n) ||
			got.Floats() != (count[2] == n) || got.HasFloat() != (count[2] > 0) {
			t.Fatalf("%x: %v unset, integers and floats: %#x", src, count, got)
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
		want := Spread{Min: slices.Min(v), Max: slices.Max(v), MinStep: math.MaxInt64,
			MaxStep: math.MinInt64, High: got.High, Low: got.Low}
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
		q := Quotient{math.Pow10(r.IntN(10)), Whole - r.Uint64N(2)}
		odd := r.IntN(20) // one word of so many is any
		for i := range src {
			if odd == 0 || r.IntN(odd) > 0 {
				k := r.Int64N(1<<52) >> r.IntN(52)
				src[i] = q.Word(k - 1<<r.IntN(51))
			}
		}
		ks := make([]int64, len(src))
		n := ScaledIntegers(ks, src, q)
		for i, w := range src[:n] {
			if k, ok := q.Int(w); !ok || k != ks[i] || q.Word(k) != w {
				t.Fatalf("%#x times %v is %d, want %d, %v", w, q, ks[i], k, ok)
			}
		}
		if n < len(src) {
			if k, ok := q.Int(src[n]); ok {
				t.Fatalf("%#x times %v is %d and was not found", src[n], q, k)
			}
		}
	}
}
