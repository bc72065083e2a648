//go:build unix

package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func doubles(words []uint64) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

func TestNumbersAreReference(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for src := range sources(r) {
		kind, zeros := r.IntN(3), r.IntN(40)
		for i, w := range src {
			switch {
			case zeros == i%40:
				src[i] = 0
			case kind == 0 || kind == 2 && r.IntN(2) == 0:
				src[i] = intTag | w&intPayload
			default:
				src[i] = max(w, firstFloat)
			}
		}
		bits := wordsAtPageEnd(len(src))
		n := Numbers(doubles(bits), src)
		if n < len(src) && src[n] != 0 {
			t.Fatalf("%x: stopped at %d", src, n)
		}
		for i, w := range src[:n] {
			if w == 0 || bits[i] != math.Float64bits(number(w)) {
				t.Fatalf("value of %#x is %#x, want %v", w, bits[i], number(w))
			}
		}
	}
}

func TestAddToIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for src := range sources(r) {
		sum := wordsAtPageEnd(len(src))
		for i := range sum {
			sum[i] = random(r)
		}
		v, want := doubles(src), make([]float64, len(src))
		for i := range v {
			want[i] = doubles(sum)[i] + v[i]
		}
		AddTo(doubles(sum), v)
		for i, x := range doubles(sum) {
			if math.Float64bits(x) != math.Float64bits(want[i]) && (x == x || want[i] == want[i]) {
				t.Fatalf("sum %d is %v, want %v", i, x, want[i])
			}
		}
	}
}
