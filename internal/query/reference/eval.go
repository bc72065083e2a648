package reference

import (
	"fmt"
	"math"

	"dalmatiner/internal/query/dql"
)

// lookback returns how many outputs before the range are asked of a series, by its resolution.
// Functions that look before the range ask more of their input than is asked of themselves.
type lookback func(resolution int64) int

func nothing(int64) int { return 0 }

// outputs returns how many outputs at a resolution lie within so many ms.
func outputs(ms float64, resolution int64) int { return int(ms / float64(resolution)) }

// counterReach is how far apart in ms the two values of a step of a counter may be (L of rule R3).
func counterReach(resolution int64) float64 { return max(5*60_000, 2.5*float64(resolution)) }

// derived returns a series without values that is computed from one.
func derived(in Series, ahead int) Series {
	out := in
	out.Values, out.Confidence, out.ahead = nil, nil, ahead
	out.hidden, out.words = false, nil
	return out
}

// add appends an output. NaN is a gap (rule R0), whose confidence is 0.
func (s *Series) add(v, confidence float64) {
	if math.IsNaN(v) {
		v, confidence = math.NaN(), 0
	}
	s.Values = append(s.Values, v)
	s.Confidence = append(s.Confidence, confidence)
}

// eval returns the series of an expression, with as many outputs before the range as before says.
func (e *evaluator) eval(x dql.Expr, before lookback) ([]Series, error) {
	switch n := x.(type) {
	case *dql.Select:
		return e.read(n, 0, before)
	case *dql.Shift:
		by, err := millis(n.By)
		if err != nil {
			return nil, err
		}
		return e.read(n.Of.(*dql.Select), by, before)
	case *dql.Binary:
		return e.binary(n, before)
	case *dql.Call:
		return e.call(n, before)
	}
	return nil, fmt.Errorf("the reference does not know %T", x)
}

// evalAll returns the series of all expressions in one list.
func (e *evaluator) evalAll(list []dql.Expr, before lookback) ([]Series, error) {
	var all []Series
	for _, x := range list {
		s, err := e.eval(x, before)
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	return all, nil
}

// each applies a function to every series of expressions.
func (e *evaluator) each(of []dql.Expr, before lookback, f func(Series) Series) ([]Series, error) {
	list, err := e.evalAll(of, before)
	for i, s := range list {
		list[i] = f(s)
	}
	return list, err
}

// read is rule R1. Slots below 0 are unset.
func (e *evaluator) read(of *dql.Select, shift int64, before lookback) ([]Series, error) {
	bucket, resolution, err := e.src.Find(of.Bucket)
	if err != nil {
		return nil, err
	}
	ahead := before(resolution)
	from, to := slot(e.start-shift, resolution), slot(e.end-shift, resolution)
	var list []Series
	for _, key := range e.keys(of, bucket) {
		s := Series{Resolution: resolution, ahead: ahead, from: from - int64(ahead), Slots: to - from}
		s.of, s.stars = identityOf(bucket, key), standFor(of.Metric.Parts, key)
		r := reading{of: s.of, shift: shift, resolution: resolution, from: from}
		for at := s.from; at < to; at++ {
			w := uint64(unset)
			if at >= 0 {
				w = e.src.Word(bucket, key, at)
			}
			if at >= from {
				r.words = append(r.words, w)
			}
			v := math.NaN()
			if w != unset {
				v = number(w)
			}
			if math.IsNaN(v) { // rule R0: a point, and not a value
				w = unset
			}
			s.words = append(s.words, w)
			s.add(v, 1)
		}
		s.reads = []reading{r}
		s.rescale()
		list = append(list, s)
	}
	return list, nil
}

func (e *evaluator) binary(b *dql.Binary, before lookback) ([]Series, error) {
	if n, ok := b.R.(*dql.Number); ok {
		if b.Op == '/' && n.Value == 0 {
			return nil, ErrZero
		}
		return e.each([]dql.Expr{b.L}, before, func(in Series) Series {
			return mapped(in, func(v float64) float64 { return operate(b.Op, v, n.Value) })
		})
	}
	if n, ok := b.L.(*dql.Number); ok {
		return e.each([]dql.Expr{b.R}, before, func(in Series) Series {
			return mapped(in, func(v float64) float64 { return operate(b.Op, n.Value, v) })
		})
	}
	return e.pairs(b, before)
}

// call applies a function. Histograms are evaluated with the number that is asked of them.
func (e *evaluator) call(c *dql.Call, before lookback) ([]Series, error) {
	if h, ok := c.Args[0].(*dql.Call); ok && h.Name == "histogram" {
		return e.histogram(c, h, before)
	}
	a, err := argumentsOf(c)
	if err != nil {
		return nil, err
	}
	switch {
	case transforms[c.Name] && (a.span == 0 || moving[c.Name]):
		return e.transform(c.Name, a, before)
	case a.span != 0:
		return e.aggregate(c.Name, a, before)
	case c.Name == "topk" || c.Name == "bottomk":
		in, err := e.evalAll(a.series, withHeld(before))
		if err != nil {
			return nil, err
		}
		return topk(c.Name, in, int(a.numbers[0]), before)
	case c.Name == "quantile" || len(a.numbers) == 0:
		in, err := e.evalAll(a.series, withHeld(before))
		if err != nil {
			return nil, err
		}
		f := combination{name: c.Name, all: needsAll[c.Name]}
		if len(a.numbers) > 0 {
			f.q = a.numbers[0]
		}
		return combine(f, in, before)
	case c.Name == "divide" && a.numbers[0] == 0:
		return nil, ErrZero
	}
	return e.each(a.series, before, func(in Series) Series {
		return mapped(in, func(v float64) float64 {
			return arithmetic(c.Name, v, a.numbers[0], operate)
		})
	})
}

// mapped computes value by value (rule R6). Gaps stay gaps.
func mapped(in Series, f func(float64) float64) Series {
	out := derived(in, in.ahead)
	for i, v := range in.Values {
		if !math.IsNaN(v) {
			v = f(v)
		}
		out.add(v, in.Confidence[i])
	}
	out.rescale()
	return out
}
