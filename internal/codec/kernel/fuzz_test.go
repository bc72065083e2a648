//go:build unix

package kernel

import (
	"encoding/binary"
	"slices"
	"testing"
)

// FuzzKernels gives the same bytes to every loop and to its definition.
func FuzzKernels(f *testing.F) {
	f.Add([]byte("words of any kind, as they come!"), uint64(17), uint8(5), uint8(60), uint8(4))
	f.Add(make([]byte, 600), uint64(1<<63), uint8(64), uint8(59), uint8(1))
	f.Fuzz(func(t *testing.T, src []byte, base uint64, width, length, count uint8) {
		bits, n, lanes := 1+uint(width)%64, int(length)%(MaxLane+1), 1+int(count)%Lanes
		rows := Rows{Whole: n * int(bits) / 64, Lanes: lanes, Stride: 8 * lanes}
		rows.Body = atPageEnd(rows.Whole * rows.Stride)
		copy(rows.Body, src)
		var got, want Residuals
		Unpack(&got, &rows, bits, n)
		unpackGo(&want, &rows, bits, n)
		sameLanes(t, "unpack", &got, &want, lanes, n)
		got = want
		start := [Lanes]uint64{base, base << 7, ^base, base * base, 0, 1 << 63, base >> 9, ^base << 3, 1,
			base ^ 77, -base, base / 3}
		var v, w Values
		Add2(&v, &got, base, &start, &start, lanes, n)
		add2Go(&w, &got, base, &start, &start, lanes, n)
		for l := range lanes {
			if !slices.Equal(v[l][:n], w[l][:n]) {
				t.Fatalf("second sums of lane %d: %x, want %x", l, v[l][:n], w[l][:n])
			}
		}
		for _, k := range []struct {
			name       string
			fast, slow func(f *Fold)
		}{
			{"ints", func(f *Fold) { FoldInts(f, &got, Prediction{int(width) % 3, base}, lanes, 0, n) },
				func(f *Fold) { foldIntsGo(f, &got, Prediction{int(width) % 3, base}, lanes, 0, n) }},
			{"bits", func(f *Fold) {
				FoldBits(f, &got, Prediction{int(width) % 3, base}, bits-1, lanes, 0, n)
			},
				func(f *Fold) { foldBitsGo(f, &got, Prediction{int(width) % 3, base}, bits-1, lanes, 0, n) }},
		} {
			a, b := Fold{Value: start, Step: start}, Fold{Value: start, Step: start}
			k.fast(&a)
			if n > 0 {
				k.slow(&b)
			}
			sameFold(t, "fold of "+k.name, k.name == "bits", lanes, &a, &b)
		}
		var words []uint64
		for ; len(src) >= 8; src = src[8:] {
			words = append(words, binary.LittleEndian.Uint64(src))
		}
		q := Quotient{float64(base>>11) + 1, Whole - base&1}
		a, b := make([]uint64, len(words)), make([]uint64, len(words))
		Decimals(a, words, q)
		decimalsGo(b, words, q)
		requireEqual(t, "decimals", a, b, words)
		Bits(a, words, bits-1)
		bitsGo(b, words, bits-1)
		requireEqual(t, "bits", a, b, words)
		if len(words) > 0 {
			marks := noKinds
			for _, w := range words {
				marks.add(w)
			}
			if k := KindsOf(words); k != marks || Measure(words).Kinds != marks {
				t.Fatalf("kinds of %x are %#x and %#x, want %#x", words, k, Measure(words).Kinds, marks)
			}
		}
		ks := make([]int64, len(words))
		for i, k := range ks[:ScaledIntegers(ks, words, q)] {
			if want, ok := q.Int(words[i]); !ok || k != want {
				t.Fatalf("%#x times %v is %d, want %d, %v", words[i], q, k, want, ok)
			}
		}
	})
}
