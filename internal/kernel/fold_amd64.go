//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

// avx512 tells of the instructions for vectors of 256 bits that came with it.
var avx512 = avx2 && cpu.X86.HasAVX512VL

func foldInts(f *Fold, res *Residuals, p Prediction, from, to int) {
	values, rest, order, n := &f.Value[0], &res[Lanes*from], uint64(p.Order), uint64(to-from)
	switch {
	case avx512:
		foldIntsAVX512(values, rest, p.Base, order, n)
	case avx2:
		foldIntsAVX2(values, rest, p.Base, order, n)
	default:
		foldIntsGo(f, res, p, from, to)
	}
}

func foldDecimals(f *Fold, res *Residuals, p Prediction, scale float64, from, to int) {
	values, rest, order, n := &f.Value[0], &res[Lanes*from], uint64(p.Order), uint64(to-from)
	switch {
	case avx512:
		foldDecimalsAVX512(values, rest, p.Base, order, n, scale)
	case avx2:
		foldDecimalsAVX2(values, rest, p.Base, order, n, scale)
	default:
		foldDecimalsGo(f, res, p, scale, from, to)
	}
}

func foldBits(f *Fold, res *Residuals, p Prediction, shift uint, from, to int) {
	if !avx2 {
		foldBitsGo(f, res, p, shift, from, to)
		return
	}
	foldBitsAVX2(&f.Value[0], &res[Lanes*from], p.Base, uint64(p.Order), uint64(to-from), uint64(shift)+1)
}
