//go:build !amd64 || purego

package kernel

func foldNarrow(*Fold, *Rows, *Groups, Prediction) bool { return false }
