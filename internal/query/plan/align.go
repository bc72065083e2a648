package plan

import (
	"dalmatiner/internal/dql"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/source"
)

// Aligned returns a range moved back so that it begins and ends at multiples of the distance of
// a query's values, or with a width of the length of its columns: of the least common one,
// where fields differ. Steps then begin at full minutes, hours and so on, and a range that ends
// now does not have a last step that has only begun. Ranges of one length become ranges of one
// length, a whole number of steps and not shorter. It returns the range as it is where it is shorter than such a
// multiple, and where that is not known before planning, which says what is wrong.
func Aligned(times Range, q *dql.Query, src source.Source, width int) Range {
	step := int64(1)
	a := aligner{source: src, buckets: make(map[string]int64)}
	length := times.End - times.Start
	for i := range q.Fields {
		of := a.expr(q.Fields[i].Expr)
		if of.typ != function.TypeMetric || of.ms <= 0 {
			return times
		}
		if width > 0 {
			of.ms *= newColumns((length+of.ms-1)/of.ms, int64(width)).Step
		}
		if of.ms > length {
			return times
		}
		if step = commonMultiple(step, of.ms); step > length {
			return times
		}
	}
	// Lengths are rounded up: a length has as many columns then as before.
	end := times.End - times.End%step
	start := end - (length+step-1)/step*step
	if start < 1 {
		return times // there is no time before 1970
	}
	return Range{start, end}
}

// aligner finds how far apart the values of a query are.
type aligner struct {
	source  source.Source
	buckets map[string]int64 // resolutions in ms
}

// aligned is an expression: how far apart its values are, 0 where that is not known, or how
// long a constant is.
type aligned struct {
	typ function.Type
	ms  int64
}

func (a *aligner) expr(e dql.Expr) aligned {
	switch n := e.(type) {
	case *dql.Number:
		if n.Whole {
			return aligned{typ: function.TypeInteger}
		}
		return aligned{typ: function.TypeFloat}
	case *dql.Duration:
		return aligned{function.TypeTime, n.Milliseconds()}
	case *dql.Word:
		return aligned{typ: function.TypeWord}
	case *dql.Events:
		return aligned{typ: function.TypeEvents}
	case *dql.Select:
		return aligned{function.TypeMetric, a.resolution(n.Bucket)}
	case *dql.Shift:
		return a.expr(n.Of)
	case *dql.Binary:
		if l := a.expr(n.L); l.typ == function.TypeMetric {
			return l
		}
		return a.expr(n.R)
	case *dql.Call:
		return a.call(n)
	}
	return aligned{}
}

func (a *aligner) call(c *dql.Call) aligned {
	types := make([]function.Type, len(c.Args))
	var span, series int64
	for i, e := range c.Args {
		of := a.expr(e)
		types[i] = of.typ
		switch of.typ {
		case function.TypeTime:
			span = of.ms
		case function.TypeMetric, function.TypeHistogram:
			if series == 0 {
				series = of.ms
			}
		}
	}
	fn, ok := function.Lookup(c.Name, types)
	if ok && fn.Kind == function.KindEvents {
		return aligned{function.TypeMetric, max(1, span)}
	}
	if !ok || series <= 0 {
		return aligned{}
	}
	if fn.Kind == function.KindWindow || fn.Kind == function.KindHistogram {
		series *= max(1, span/series)
	}
	return aligned{fn.Kind.Result(), series}
}

// resolution returns that of a bucket, 0 where there is none.
func (a *aligner) resolution(bucket string) int64 {
	if ms, ok := a.buckets[bucket]; ok {
		return ms
	}
	h, err := a.source.Bucket(bucket)
	if err != nil {
		return 0
	}
	a.buckets[bucket] = h.Info().Resolution
	return a.buckets[bucket]
}
