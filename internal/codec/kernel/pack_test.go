//go:build unix

package kernel

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

// samePack packs values, which are cut to width, in all three ways: as the package
// chooses, in Go, and as one large number. What is read and written ends where a
// page begins that may not be touched.
func samePack(t *testing.T, src []uint64, width uint, stride int) {
	t.Helper()
	values := wordsAtPageEnd(len(src))
	all := new(big.Int)
	for i, v := range src {
		values[i] = v & (^uint64(0) >> (64 - width))
		one := new(big.Int).SetUint64(values[i])
		all.Or(all, one.Lsh(one, uint(i)*width))
	}
	words := len(values) * int(width) / 64
	size := max(0, (words-1)*stride+8)
	if words == 0 {
		size = 0
	}
	got, want := fence()[1], make([]byte, size) // the values lie in the other memory
	got = got[len(got)-size:]
	clear(got)
	rest := Pack(got, stride, values, width)
	if r := packGo(want, stride, values, width, 0, 0); rest != r || !bytes.Equal(got, want) {
		t.Fatalf("%d values of %d bits, stride %d: %x and %x, want %x and %x: %x", len(values), width,
			stride, got, rest, want, r, values)
	}
	low := new(big.Int).SetUint64(^uint64(0))
	word := func(i int) uint64 {
		w := new(big.Int).Rsh(all, uint(64*i))
		return w.And(w, low).Uint64()
	}
	for i := range words {
		for k := range 8 {
			if b := byte(word(i) >> (8 * k)); got[i*stride+k] != b {
				t.Fatalf("%d values of %d bits: byte %d of word %d is %x, want %x", len(values), width, k, i,
					got[i*stride+k], b)
			}
		}
	}
	if rest != word(words) {
		t.Fatalf("%d values of %d bits: %x is left, want %x", len(values), width, rest, word(words))
	}
}

func TestPackIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 7))
	for width := uint(1); width <= 64; width++ {
		for n := range MaxLane + 1 {
			samePack(t, randomWords(r, n), width, 8*(1+r.IntN(12)))
		}
		full := make([]uint64, MaxLane)
		for i := range full {
			full[i] = ^uint64(0)
		}
		samePack(t, full, width, 8)
	}
}

func TestPackKnowsItsBounds(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("words outside of their bytes were written")
		}
	}()
	Pack(make([]byte, 16), 16, make([]uint64, 8), 16)
}

func FuzzPack(f *testing.F) {
	f.Add(uint8(10), uint8(1), uint8(60), []byte("some bits"))
	f.Add(uint8(16), uint8(12), uint8(59), []byte{0xff})
	f.Fuzz(func(t *testing.T, width, stride, n uint8, src []byte) {
		words := make([]uint64, int(n)%(MaxLane+1))
		for i := range words {
			for k := range 8 {
				if len(src) > 0 {
					words[i] = words[i]<<8 | uint64(src[(8*i+k)%len(src)])
				}
			}
		}
		samePack(t, words, 1+uint(width)%64, 8*(1+int(stride)%12))
	})
}

func BenchmarkPack(b *testing.B) {
	r := rand.New(rand.NewPCG(2, 8))
	for _, width := range []uint{3, 10, 16, 20} {
		values, out := make([]uint64, MaxLane), make([]byte, 8*MaxLane)
		for i := range values {
			values[i] = r.Uint64() >> (64 - width)
		}
		benchBoth(b, fmt.Sprintf("width=%d", width), MaxLane, func() { Pack(out, 8, values, width) },
			func() { packGo(out, 8, values, width, 0, 0) })
	}
}
