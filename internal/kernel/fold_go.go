//go:build !amd64 || purego

package kernel

func foldInts(f *Fold, res *Residuals, p Prediction, from, to int) { foldIntsGo(f, res, p, from, to) }

func foldDecimals(f *Fold, res *Residuals, p Prediction, scale float64, from, to int) {
	foldDecimalsGo(f, res, p, scale, from, to)
}

func foldBits(f *Fold, res *Residuals, p Prediction, shift uint, from, to int) {
	foldBitsGo(f, res, p, shift, from, to)
}
