// Package histogram turns buckets with bounds, as native and exponential histograms have them, into
// the series of a classic histogram of Prometheus: cumulative counts with the label le.
package histogram

import (
	"math"
	"strconv"
)

// MaxBuckets bounds the series that one histogram becomes.
const MaxBuckets = 1000

// Bucket is how many values are above one bound and at most the other.
type Bucket struct{ Lower, Upper, Count float64 }

// Negative returns the bucket of the negative values that a bucket of absolute values counts.
func (b Bucket) Negative() Bucket { return Bucket{-b.Upper, -b.Lower, b.Count} }

// Zero returns the bucket of the values whose absolute value is at most a threshold.
func Zero(threshold, count float64) Bucket { return Bucket{-threshold, threshold, count} }

// Exponential returns 2^(i/2^schema), at most the largest double: above it there is no value but
// the infinity, which has the next bucket.
func Exponential(i int64, schema int32) float64 {
	if schema <= 0 {
		e := i << -schema
		if e > 1023 {
			return math.MaxFloat64
		}
		return math.Ldexp(1, int(max(e, -2000)))
	}
	whole, part := i>>schema, i&(1<<schema-1)
	if whole > 1023 {
		return math.MaxFloat64
	}
	return math.Ldexp(math.Exp2(float64(part)/float64(int64(1)<<schema)), int(max(whole, -2000)))
}

// Boundary is a point of the classic form: how many values are at most LE.
type Boundary struct{ LE, Count float64 }

// Classic appends the cumulative counts of buckets that rise, by rising bounds. The last one is
// that of +Inf, with the count of all values. Between two neighbours that are apart, there is one
// with the count of the lower one: a reader would else spread the values over the gap.
func Classic(dst []Boundary, buckets []Bucket, count float64) []Boundary {
	sum, from := 0.0, len(dst)
	for _, b := range buckets {
		apart := len(dst) == from || dst[len(dst)-1].LE < b.Lower
		if apart && b.Lower < b.Upper && !math.IsInf(b.Lower, -1) {
			dst = append(dst, Boundary{b.Lower, sum})
		}
		sum += b.Count
		switch n := len(dst); {
		case n > from && b.Upper <= dst[n-1].LE:
			dst[n-1].Count = sum // a bucket within the one of zero
		case !math.IsInf(b.Upper, 1):
			dst = append(dst, Boundary{b.Upper, sum})
		}
	}
	return append(dst, Boundary{math.Inf(1), count})
}

// AppendBound appends a bound as the label le has it.
func AppendBound(dst []byte, le float64) []byte {
	if math.IsInf(le, 1) {
		return append(dst, "+Inf"...)
	}
	return strconv.AppendFloat(dst, le, 'g', -1, 64)
}
