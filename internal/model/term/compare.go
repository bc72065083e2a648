package term

import (
	"cmp"
	"math/big"
)

// CompareText compares v with text in Erlang's order of terms: every number, tuple, map and
// list comes before every text, and texts compare by their bytes. An atom counts as its name,
// because nothing else could name one.
func (v Value) CompareText(text string) int {
	if own, ok := v.Text(); ok {
		return cmp.Compare(string(own), text)
	}
	return -1
}

// CompareInt compares v with an integer in Erlang's order: numbers by their exact value, and
// everything else behind them.
func (v Value) CompareInt(n int64) int {
	if v.Kind() != Number {
		return 1
	}
	if f, ok := v.float(); ok {
		return -compareIntFloat(n, f)
	}
	if own, ok := v.int64(); ok {
		return cmp.Compare(own, n)
	}
	return v.big().Sign() // beyond all of 64 bits
}

// CompareBig is CompareInt for an integer of any length.
func (v Value) CompareBig(n *big.Int) int {
	if v.Kind() != Number {
		return 1
	}
	if f, ok := v.float(); ok {
		return big.NewFloat(f).Cmp(new(big.Float).SetInt(n))
	}
	return v.big().Cmp(n)
}

// CompareFloat is CompareInt for a float that is a number.
func (v Value) CompareFloat(f float64) int {
	if v.Kind() != Number {
		return 1
	}
	if own, ok := v.float(); ok {
		return cmp.Compare(own, f)
	}
	if own, ok := v.int64(); ok {
		return compareIntFloat(own, f)
	}
	return new(big.Float).SetInt(v.big()).Cmp(big.NewFloat(f))
}

// compareIntFloat compares exactly: a conversion of n could round.
func compareIntFloat(n int64, f float64) int {
	const most = 1 << 63
	switch {
	case f >= most:
		return -1
	case f < -most:
		return 1
	}
	whole := int64(f) // towards zero
	if c := cmp.Compare(n, whole); c != 0 {
		return c
	}
	return cmp.Compare(0, f-float64(whole))
}
