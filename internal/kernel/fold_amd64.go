//go:build amd64 && !purego

package kernel

func foldInts(f *Fold, res *Residuals, p Prediction, lanes, from, to int) {
	order, n := uint64(p.Order), uint64(to-from)
	switch {
	case wide(lanes):
		foldIntsAVX512(&f.Value[0], &res[Lanes*from], p.Base, order, n)
	case avx2:
		for l := 0; l < lanes; l += inQuarters {
			foldIntsAVX2(&f.Value[l], &res[Lanes*from+l], p.Base, order, n)
		}
	default:
		foldIntsGo(f, res, p, lanes, from, to)
	}
}

func foldDecimals(f *Fold, res *Residuals, p Prediction, scale float64, lanes, from, to int) {
	order, n := uint64(p.Order), uint64(to-from)
	switch {
	case wide(lanes):
		foldDecimalsAVX512(&f.Value[0], &res[Lanes*from], p.Base, order, n, scale)
	case avx2:
		for l := 0; l < lanes; l += inQuarters {
			foldDecimalsAVX2(&f.Value[l], &res[Lanes*from+l], p.Base, order, n, scale)
		}
	default:
		foldDecimalsGo(f, res, p, scale, lanes, from, to)
	}
}

func foldBits(f *Fold, res *Residuals, p Prediction, shift uint, lanes, from, to int) {
	order, n := uint64(p.Order), uint64(to-from)
	switch {
	case wide(lanes):
		foldBitsAVX512(&f.Value[0], &res[Lanes*from], p.Base, order, n, uint64(shift)+1)
	case avx2:
		for l := 0; l < lanes; l += inQuarters {
			foldBitsAVX2(&f.Value[l], &res[Lanes*from+l], p.Base, order, n, uint64(shift)+1)
		}
	default:
		foldBitsGo(f, res, p, shift, lanes, from, to)
	}
}
