package query

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"dalmatiner/internal/query/function"
)

// histogram counts its inputs into an HDR histogram per size of them; a short
// last window is left out. Values are rounded; negative and too large ones are
// not counted. It gives the numbers that its statistics ask for, one after the
// other for every window, so that the counts stay inside of it.
type histogram struct {
	over
	highest int64
	digits  int
	size    int64
	asked   []statisticOf

	counts *hdrhistogram.Histogram
	filled int64
}

// statisticOf is a number out of a histogram.
type statisticOf struct {
	fn function.Op
	p  float64 // of a percentile, 0 to 100
}

func (h *histogram) needConfidence(bool) {
	if h.enter(false) {
		h.in.needConfidence(false)
	}
}

func (h *histogram) next(x *executor, dst block) (block, error) {
	in, err := x.pull(h.in, x.scratch())
	if err != nil {
		return dst, err
	}
	if h.counts == nil {
		h.counts = hdrhistogram.New(1, h.highest, h.digits)
	}
	for _, v := range in.v {
		// A value beyond the counts is not counted: that is the error.
		if v = math.Round(v); v >= 0 && v < 1<<62 {
			_ = h.counts.RecordValue(int64(v))
		}
		if h.filled++; h.filled < h.size {
			continue
		}
		for _, s := range h.asked {
			dst.v = append(dst.v, s.of(h.counts))
		}
		h.counts.Reset()
		h.filled = 0
	}
	x.release(in)
	return dst, nil
}

func (s statisticOf) of(h *hdrhistogram.Histogram) float64 {
	switch s.fn {
	case function.Min:
		return float64(h.Min())
	case function.Max:
		return float64(h.Max())
	case function.Avg:
		return h.Mean()
	case function.Stddev:
		return h.StdDev()
	}
	return float64(h.ValueAtPercentile(s.p))
}

// histogramBytes returns the memory of a histogram's counts, without making
// it. An integer of the language is at most 2^53.
func histogramBytes(highest int64, digits int) int64 {
	sub := int64(math.Exp2(math.Ceil(math.Log2(2 * math.Pow10(digits)))))
	buckets := int64(1)
	for least := sub; least <= highest; least <<= 1 {
		buckets++
	}
	return (buckets + 1) * sub / 2 * 8
}

// statistic takes one of the numbers of a histogram. It is sure of itself.
type statistic struct {
	over
	of    *histogram // in
	index int        // in histogram.asked
}

func (s *statistic) next(x *executor, dst block) (block, error) {
	in, err := x.pull(s.in, x.scratch())
	if err != nil {
		return dst, err
	}
	for i := s.index; i < len(in.v); i += len(s.of.asked) {
		dst.v = append(dst.v, in.v[i])
		if s.conf {
			dst.c = append(dst.c, 1)
		}
	}
	x.release(in)
	return dst, nil
}
