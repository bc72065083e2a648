package histogram

import (
	"errors"
	"math"
	"slices"
)

// Native is a native histogram of Prometheus
// (prometheus.io/docs/specs/native_histograms).
type Native struct {
	Count, ZeroCount   float64
	Sum, ZeroThreshold float64
	Schema             int32
	Negative, Positive Side
	Custom             []float64 // upper bounds of CustomSchema
}

// Side is the buckets of one sign: spans of consecutive ones, with differences of counts or counts.
type Side struct {
	Spans  []Span
	Deltas []int64
	Counts []float64
}

// Span is consecutive buckets. Its offset is from the end of the span before, of the first one
// from 0.
type Span struct {
	Offset int32
	Length uint32
}

// CustomSchema is that of histograms whose bounds stand in them. MinSchema to MaxSchema are
// exponential.
const (
	CustomSchema = -53
	MinSchema    = -4
	MaxSchema    = 8
)

// What is wrong with a histogram.
var (
	ErrSchema  = errors.New("a native histogram of an unknown schema")
	ErrBuckets = errors.New("a native histogram whose spans and counts do not agree, or with more " +
		"than 1000 buckets")
)

// Reset makes a histogram an empty one, whose slices are used again.
func (h *Native) Reset() {
	*h = Native{Custom: h.Custom[:0], Negative: h.Negative.empty(), Positive: h.Positive.empty()}
}

func (b Side) empty() Side {
	return Side{b.Spans[:0], b.Deltas[:0], b.Counts[:0]}
}

// list returns the buckets in the order of their index, with the bounds that the schema has.
func (b *Side) list(h *Native) ([]Bucket, error) {
	n := 0
	for _, s := range b.Spans {
		n += int(min(s.Length, MaxBuckets+1))
		if n > MaxBuckets {
			return nil, ErrBuckets
		}
	}
	if n != max(len(b.Deltas), len(b.Counts)) || len(b.Deltas) > 0 && len(b.Counts) > 0 {
		return nil, ErrBuckets
	}
	out := make([]Bucket, 0, n)
	index, sum := int64(0), int64(0)
	for i, s := range b.Spans {
		if i > 0 && s.Offset < 0 {
			return nil, ErrBuckets
		}
		index += int64(s.Offset)
		for range s.Length {
			var c float64
			if len(b.Counts) > 0 {
				c = b.Counts[len(out)]
			} else {
				sum += b.Deltas[len(out)]
				c = float64(sum)
			}
			lower, upper, err := h.bounds(index)
			if err != nil {
				return nil, err
			}
			out = append(out, Bucket{Lower: lower, Upper: upper, Count: c})
			index++
		}
	}
	return out, nil
}

// bounds returns the bounds of the bucket of an index. That of an exponential schema s has the
// values above 2^((i-1)/2^s) and up to 2^(i/2^s), of a custom one those above the bound before.
func (h *Native) bounds(i int64) (lower, upper float64, err error) {
	switch {
	case h.Schema == CustomSchema:
		if i < 0 || i > int64(len(h.Custom)) {
			return 0, 0, ErrBuckets
		}
		lower, upper = math.Inf(-1), math.Inf(1)
		if i > 0 {
			lower = h.Custom[i-1]
		}
		if i < int64(len(h.Custom)) {
			upper = h.Custom[i]
		}
		return lower, upper, nil
	case h.Schema < MinSchema || h.Schema > MaxSchema:
		return 0, 0, ErrSchema
	}
	return Exponential(i-1, h.Schema), Exponential(i, h.Schema), nil
}

// Classic returns the cumulative counts of the classic form of a histogram, as Classic of its
// buckets does. The error is ErrSchema or ErrBuckets.
func (h *Native) Classic() ([]Boundary, error) {
	negative, err := h.Negative.list(h)
	if err != nil {
		return nil, err
	}
	positive, err := h.Positive.list(h)
	if err != nil {
		return nil, err
	}
	all := make([]Bucket, 0, len(negative)+len(positive)+1)
	for _, b := range slices.Backward(negative) {
		all = append(all, b.Negative())
	}
	if h.Schema != CustomSchema && (h.ZeroCount != 0 || h.ZeroThreshold != 0) {
		all = append(all, Zero(h.ZeroThreshold, h.ZeroCount))
	}
	all = append(all, positive...)
	return Classic(nil, all, h.Count), nil
}
