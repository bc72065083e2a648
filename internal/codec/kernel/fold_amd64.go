//go:build amd64 && !purego

package kernel

func foldInts(f *Fold, res *Residuals, p Prediction, lanes, from, to int) {
	order, n := uint64(p.Order), uint64(to-from)
	switch {
	case isWide(lanes):
		foldIntsAVX512(&f.Value[0], &res[Lanes*from], p.Base, order, n)
	case avx2:
		for l := 0; l < lanes; l += inQuarters {
			foldIntsAVX2(&f.Value[l], &res[Lanes*from+l], p.Base, order, n)
		}
	default:
		foldIntsGo(f, res, p, lanes, from, to)
	}
}

func foldDecimals(f *Fold, res *Residuals, p Prediction, q Quotient, lanes, from, to int) {
	order, n := uint64(p.Order), uint64(to-from)
	switch {
	case isWide(lanes):
		foldDecimalsAVX512(&f.Value[0], &res[Lanes*from], p.Base, order, n, q.Scale, q.Keep)
	case avx2:
		for l := 0; l < lanes; l += inQuarters {
			foldDecimalsAVX2(&f.Value[l], &res[Lanes*from+l], p.Base, order, n, q.Scale, q.Keep)
		}
	default:
		foldDecimalsGo(f, res, p, q, lanes, from, to)
	}
}

func foldBits(f *Fold, res *Residuals, p Prediction, shift uint, lanes, from, to int) {
	order, n := uint64(p.Order), uint64(to-from)
	switch {
	case isWide(lanes):
		foldBitsAVX512(&f.Value[0], &res[Lanes*from], p.Base, order, n, uint64(shift))
	case avx2:
		for l := 0; l < lanes; l += inQuarters {
			foldBitsAVX2(&f.Value[l], &res[Lanes*from+l], p.Base, order, n, uint64(shift))
		}
	default:
		foldBitsGo(f, res, p, shift, lanes, from, to)
	}
}
