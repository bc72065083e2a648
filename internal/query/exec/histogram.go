package exec

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
)

// histogram counts its inputs into an HDR histogram per size of them; a short
// last window is left out. Values are rounded; negative and too large ones are
// not counted. It gives the numbers that its statistics ask for, one after the
// other for every window, so that the counts stay inside of it.
type histogram struct {
	over
	*plan.Histogram

	counts *hdrhistogram.Histogram
	filled int64
}

func (h *histogram) next(x *executor, dst block) (block, error) {
	in, err := x.pull(h.in, x.scratch())
	if err != nil {
		return dst, err
	}
	if h.counts == nil {
		h.counts = hdrhistogram.New(1, h.Highest, h.Digits)
	}
	for _, v := range in.v {
		// A value beyond the counts is not counted: that is the error.
		if v = math.Round(v); v >= 0 && v < 1<<62 {
			_ = h.counts.RecordValue(int64(v))
		}
		if h.filled++; h.filled < h.Size {
			continue
		}
		for _, s := range h.Asked {
			dst.v = append(dst.v, statisticOf(s, h.counts))
		}
		h.counts.Reset()
		h.filled = 0
	}
	x.release(in)
	return dst, nil
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
	in, err := x.pull(s.in, x.scratch())
	if err != nil {
		return dst, err
	}
	for i := s.index; i < len(in.v); i += len(s.of.Asked) {
		dst.v = append(dst.v, in.v[i])
		if s.Confidence {
			dst.c = append(dst.c, 1)
		}
	}
	x.release(in)
	return dst, nil
}
