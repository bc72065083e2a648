//go:build amd64 && !purego

package kernel

func foldInts(f *Fold, res *Residuals, p Prediction, from, to int) {
	if !avx2 {
		foldIntsGo(f, res, p, from, to)
		return
	}
	foldIntsAVX2(&f.Value[0], &res[Lanes*from], p.Base, uint64(p.Order), uint64(to-from))
}

func foldDecimals(f *Fold, res *Residuals, p Prediction, scale float64, from, to int) {
	if !avx2 {
		foldDecimalsGo(f, res, p, scale, from, to)
		return
	}
	foldDecimalsAVX2(&f.Value[0], &res[Lanes*from], p.Base, uint64(p.Order), uint64(to-from), scale)
}

func foldBits(f *Fold, res *Residuals, p Prediction, shift uint, from, to int) {
	if !avx2 {
		foldBitsGo(f, res, p, shift, from, to)
		return
	}
	foldBitsAVX2(&f.Value[0], &res[Lanes*from], p.Base, uint64(p.Order), uint64(to-from), uint64(shift)+1)
}
