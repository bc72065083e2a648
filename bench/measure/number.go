package measure

import (
	"fmt"
	"math"
	"slices"
)

// Number prints three digits, or all of those before the point.
func Number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return fmt.Sprintf("%.*f", min(max(digits, 0), 6), v)
}

// Median returns the middle of the values, and the least and the most.
func Median(values []float64) (mid float64, spread [2]float64) {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2, [2]float64{s[0], s[n-1]}
}

// Mebi returns bytes in MiB.
func Mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }
