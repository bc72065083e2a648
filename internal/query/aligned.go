package query

import (
	"slices"

	"dalmatiner/internal/query/plan"
)

// align moves the range of the request so that steps begin at multiples of their length.
func (r *request) align() {
	asked := r.times
	r.times = plan.Aligned(asked, r.began.UnixMilli(), r.q, r.Source, r.opt.Width)
	if r.times != asked {
		r.length, r.until = asked.End-asked.Start, asked.End
	}
}

// shown returns a result without the values that begin at the end that was asked for or later,
// where the range goes on to the end of a step. The result that is given may be shared.
func (r *request) shown(out *Result) *Result {
	if out == nil || r.until == 0 || r.times.End == r.until {
		return out
	}
	cut := *out
	cut.Series = slices.Clone(out.Series)
	longer := float64(r.times.End-r.times.Start) / float64(r.until-r.times.Start)
	for i := range cut.Series {
		s := &cut.Series[i]
		s.Coverage = min(1, s.Coverage*longer)
		n := int((r.until - s.Start + s.Resolution - 1) / s.Resolution)
		s.Values, s.Min, s.Max = first(s.Values, n), first(s.Min, n), first(s.Max, n)
		s.Confidence = first(s.Confidence, n)
		s.Lead = min(s.Lead, len(s.Values))
	}
	return &cut
}

// first returns the first n of a list that may have fewer.
func first(list []float64, n int) []float64 { return list[:min(n, len(list))] }
