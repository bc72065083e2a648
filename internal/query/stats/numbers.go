package stats

import "math"

// Log10Scale returns the logarithm of the size of a number with its sign; 0 of 0.
func Log10Scale(f float64) float64 {
	switch {
	case f == 0:
		return 0
	case f < 0:
		return -math.Log10(-f)
	}
	return math.Log10(f)
}

// within returns a number, or the one of two that it is beyond: of a mean, what rounding made
// greater than the greatest number.
func within(v, low, high float64) float64 {
	switch {
	case v < low:
		return low
	case v > high:
		return high
	}
	return v
}

// Grown returns by what a counter grew from one value to the next. A fall is a reset to 0.
func Grown(before, now float64) float64 {
	if now < before {
		return max(0, now)
	}
	return now - before
}
