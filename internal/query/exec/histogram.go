package exec

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
)

// histogram counts its inputs into an HDR histogram per size of them; with compat a short
// last window is left out. Values are rounded; negative and too large ones are
// not counted. It gives the numbers that its statistics ask for, one after the
// other for every window, so that the counts stay inside of it.
type histogram struct {
	over
	*plan.Histogram

	counts *hdrhistogram.Histogram
	filled int64
	values int64 // those of them that are counted
}

func (h *histogram) next(x *executor, dst block) (block, error) {
	in, err := h.in.pull(x, x.scratch())
	if err != nil {
		return dst, err
	}
	if h.counts == nil {
		h.counts = hdrhistogram.New(1, h.Highest, h.Digits)
	}
	for _, v := range in.v {
		// A value beyond the counts is not counted: that is the error.
		if v = math.Round(v); v >= 0 && v < 1<<62 && h.counts.RecordValue(int64(v)) == nil {
			h.values++
		}
		if h.filled++; h.filled == h.Size {
			dst = h.close(dst, x.plan.Compat)
		}
	}
	if x.final && h.filled > 0 && !x.plan.Compat {
		dst = h.close(dst, false)
	}
	x.release(in)
	return dst, nil
}

// close gives what is asked of a window, and opens the next one.
func (h *histogram) close(dst block, old bool) block {
	for _, s := range h.Asked {
		v := math.NaN()
		if h.values > 0 || old {
			v = statisticOf(s, h.counts)
		}
		dst.v = append(dst.v, v)
	}
	h.counts.Reset()
	h.filled, h.values = 0, 0
	return dst
}

func statisticOf(s plan.Statistic, h *hdrhistogram.Histogram) float64 {
	switch s.Fn {
	case function.Min:
		return float64(h.Min())
	case function.Max:
		return float64(h.Max())
	case function.Avg:
		return h.Mean()
	case function.Stddev:
		return h.StdDev()
	}
	return float64(h.ValueAtPercentile(s.Percentile))
}

// statistic takes one of the numbers of a histogram. It is sure of itself.
type statistic struct {
	over
	of    *histogram // in
	index int        // in Histogram.Asked
}

func (s *statistic) next(x *executor, dst block) (block, error) {
	in, err := s.in.pull(x, x.scratch())
	if err != nil {
		return dst, err
	}
	for i := s.index; i < len(in.v); i += len(s.of.Asked) {
		sure := 1.0
		if in.v[i] != in.v[i] {
			sure = 0
		}
		dst = dst.put(in.v[i], sure, s.Confidence)
	}
	x.release(in)
	return dst, nil
}
