package reference

import (
	"fmt"

	"dalmatiner/internal/query/dql"
)

// The answers of the original: gaps are filled, and short series are continued.

func (e *evaluator) evalCompat(x dql.Expr) ([]Series, error) {
	switch n := x.(type) {
	case *dql.Select:
		return e.readCompat(n, 0)
	case *dql.Shift:
		by, err := millis(n.By)
		if err != nil {
			return nil, err
		}
		return e.readCompat(n.Of.(*dql.Select), by)
	case *dql.Binary:
		return e.binaryCompat(n)
	case *dql.Call:
		return e.callCompat(n)
	}
	return nil, fmt.Errorf("the reference does not know %T", x)
}

// evalAllCompat returns the series of all expressions in one list.
func (e *evaluator) evalAllCompat(list ...dql.Expr) ([]Series, error) {
	var all []Series
	for _, x := range list {
		s, err := e.evalCompat(x)
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	return all, nil
}

func (e *evaluator) binaryCompat(b *dql.Binary) ([]Series, error) {
	if n, ok := b.R.(*dql.Number); ok {
		in, err := e.evalCompat(b.L)
		return mapCompat(in, func(v float64) float64 { return operateCompat(b.Op, v, n.Value) }), err
	}
	if n, ok := b.L.(*dql.Number); ok {
		in, err := e.evalCompat(b.R)
		return mapCompat(in, func(v float64) float64 { return operateCompat(b.Op, n.Value, v) }), err
	}
	in, err := e.evalAllCompat(b.L, b.R)
	if err != nil {
		return nil, err
	}
	return combineCompat(between[b.Op], in, 0)
}

// operateCompat counts a division by 0 as one by 1.
func operateCompat(op byte, l, r float64) float64 {
	if op == '/' && r == 0 {
		return l
	}
	return operate(op, l, r)
}

// callCompat applies a function. Histograms are evaluated with the number that is
// asked of them.
func (e *evaluator) callCompat(c *dql.Call) ([]Series, error) {
	if h, ok := c.Args[0].(*dql.Call); ok && h.Name == "histogram" {
		return e.histogramCompat(c, h)
	}
	a, err := argumentsOf(c)
	if err != nil {
		return nil, err
	}
	in, err := e.evalAllCompat(a.series...)
	if err != nil {
		return nil, err
	}
	switch {
	case transforms[c.Name] && (a.span == 0 || moving[c.Name]):
		for i, s := range in {
			in[i] = transformCompat(c.Name, s, a)
		}
		return in, nil
	case a.span != 0:
		return windowsCompat(c, in, a), nil
	case c.Name == "topk" || c.Name == "bottomk":
		return topkCompat(c.Name, in, int(a.numbers[0]))
	case c.Name == "quantile":
		return combineCompat(c.Name, in, a.numbers[0])
	case len(a.numbers) == 1:
		return mapCompat(in, func(v float64) float64 {
			return arithmetic(c.Name, v, a.numbers[0], operateCompat)
		}), nil
	}
	return combineCompat(c.Name, in, 0)
}

// windowsCompat applies an aggregate over time to every series. A percentile that is a whole
// number is halved, and beyond 0 to 1 it leaves no values.
func windowsCompat(c *dql.Call, in []Series, a arguments) []Series {
	none := false
	if c.Name == "percentile" {
		if c.Args[1].(*dql.Number).Whole {
			a.numbers[0] *= 0.5
		}
		none = a.numbers[0] < 0 || a.numbers[0] > 1
	}
	for i, s := range in {
		if none {
			in[i].Resolution *= max(1, a.span/s.Resolution)
			in[i].Values, in[i].Confidence, in[i].hidden, in[i].restart = nil, nil, false, 0
			continue
		}
		in[i] = windowCompat(c.Name, s, a.span, a.numbers)
	}
	return in
}

func mapCompat(in []Series, f func(float64) float64) []Series {
	for i := range in {
		for j, v := range in[i].Values {
			in[i].Values[j] = f(v)
		}
		in[i].hidden = false
		in[i].rescale()
	}
	return in
}

func (e *evaluator) readCompat(of *dql.Select, shift int64) ([]Series, error) {
	bucket, resolution, err := e.src.Find(of.Bucket)
	if err != nil {
		return nil, err
	}
	from, to := slot(max(1, e.start-shift), resolution), slot(max(1, e.end-shift), resolution)
	var list []Series
	for _, key := range e.keys(of, bucket) {
		words := make([]uint64, to-from)
		for i := range words {
			words[i] = e.src.Word(bucket, key, from+int64(i))
		}
		list = append(list, e.realizeParts(words, resolution))
	}
	return list, nil
}

// realizeParts reads in parts, of which the original loses the last slot.
func (e *evaluator) realizeParts(words []uint64, resolution int64) Series {
	all := Series{Resolution: resolution, restart: int(e.old.Restart) - 1}
	for len(words) > 0 {
		n := min(len(words), all.restart)
		s := realize(words[:n], resolution)
		all.Values = append(all.Values, s.Values...)
		all.Confidence = append(all.Confidence, s.Confidence...)
		all.Set, all.Slots, all.Scale = all.Set+s.Set, all.Slots+s.Slots, max(all.Scale, s.Scale)
		words = words[min(len(words), n+1):]
	}
	return all
}

// realize fills gaps: a gap is the last value with confidence 0, a leading
// gap the first one, nothing at all is 0.
func realize(words []uint64, resolution int64) Series {
	s := Series{Resolution: resolution, Slots: int64(len(words))}
	last := 0.0
	for _, w := range words {
		if w != unset {
			last = number(w)
			break
		}
	}
	for _, w := range words {
		sure := 0.0
		if w != unset {
			last, sure = number(w), 1
			s.Set++
		}
		s.Values = append(s.Values, last)
		s.Confidence = append(s.Confidence, sure)
	}
	s.rescale()
	return s
}

// below reports whether a key begins with what stands before the first * of a
// pattern.
func below(pattern []dql.Part, key []byte) bool {
	parts := partsOf(key)
	for i, p := range pattern {
		switch {
		case p.Any:
			return true
		case i >= len(parts) || parts[i] != p.Text:
			return false
		}
	}
	return false
}
