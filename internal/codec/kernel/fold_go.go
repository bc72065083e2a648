//go:build !amd64 || purego

package kernel

func foldInts(f *Fold, res *Residuals, p Prediction, lanes, from, to int) {
	foldIntsGo(f, res, p, lanes, from, to)
}

func foldDecimals(f *Fold, res *Residuals, p Prediction, q Quotient, lanes, from, to int) {
	foldDecimalsGo(f, res, p, q, lanes, from, to)
}

func foldBits(f *Fold, res *Residuals, p Prediction, shift uint, lanes, from, to int) {
	foldBitsGo(f, res, p, shift, lanes, from, to)
}
