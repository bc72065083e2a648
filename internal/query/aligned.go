package query

import (
	"slices"

	"dalmatiner/internal/query/plan"
)

// align moves the range of the request so that steps begin at multiples of their length.
func (r *request) align() {
	asked := r.times
	r.times, r.uneven = plan.Aligned(asked, r.began.UnixMilli(), r.q, r.Source, r.zone, r.opt.Width)
	r.length, r.until = asked.End-asked.Start, asked.End
}

// shown returns a result without the values at or after the requested end, where the range goes on
// to the end of a step. It also leaves out columns before the requested start, where the range
// begins earlier for a field of longer steps: with them there would be more than the width. Only
// columns have a start of their own in answers. The result that is given may be shared.
func (r *request) shown(out *Result) *Result {
	if out == nil || r.until == 0 {
		return out
	}
	cut := *out
	cut.Series = slices.Clone(out.Series)
	for i := range cut.Series {
		s := &cut.Series[i]
		from := 0
		if s.Min != nil && !out.Compat {
			from = s.At(r.until - r.length)
		}
		to := s.At(r.until-1) + 1
		s.Values, s.Min, s.Max = part(s.Values, from, to), part(s.Min, from, to), part(s.Max, from, to)
		s.Confidence = part(s.Confidence, from, to)
		for len(s.Exact) > 0 && s.Exact[len(s.Exact)-1].At >= to {
			s.Exact = s.Exact[:len(s.Exact)-1]
		}
		if s.Times == nil {
			s.Start += int64(from) * s.Resolution
		} else if from > 0 {
			s.Times = s.Times[from:]
			s.Start = s.Times[0]
		}
	}
	return &cut
}

// part returns the values of a list from one to before another, as far as it has them.
func part(list []float64, from, to int) []float64 {
	to = min(to, len(list))
	return list[min(from, to):to]
}
