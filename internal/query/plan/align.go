package plan

import (
	"dalmatiner/internal/dql"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/source"
)

// Aligned returns a range that begins at a multiple of the distance of a query's values, or with
// a width of the length of its columns, so that steps begin at whole minutes, hours and so on.
// Where fields differ, it is a multiple of all distances if their least common one is not longer
// than the range, else of the longest. With a width it is always the longest: a multiple of all
// would add columns.
//
// The end that is asked for is never moved back. An end that is not over at the time now moves
// on to such a multiple: then ranges of one length stay ranges of one length, and steps of one
// answer are of use for the next. It returns the range as it is where it is shorter than a step,
// and where that is not known before planning, which says what is wrong.
func Aligned(times Range, now int64, q *dql.Query, src source.Source, width int) Range {
	longest, all := int64(1), int64(1)
	a := aligner{source: src, buckets: make(map[string]int64)}
	length := times.End - times.Start
	for i := range q.Fields {
		of := a.expr(q.Fields[i].Expr)
		if of.typ != function.TypeMetric || of.ms <= 0 {
			return times
		}
		if width > 0 {
			of.ms *= alignedColumns(length, of.ms, int64(width)).Step
		}
		if longest = max(longest, of.ms); longest > length || width == 1 {
			return times
		}
		if all <= length {
			all = commonMultiple(all, of.ms)
		}
	}
	step := longest
	if width == 0 && all <= length {
		step = all
	}
	start := times.Start - times.Start%step
	if start < 1 {
		return times // there is no time before 1970
	}
	if times.End < now {
		return Range{start, times.End}
	}
	return Range{start, (times.End + step - 1) / step * step}
}

// alignedColumns returns the columns of values that are so many ms apart, for a range that was
// asked for with a length in ms and begins up to a column before that: the first and the last
// column lie in it in part, so that there is one more.
func alignedColumns(length, resolution, width int64) *Columns {
	return newColumns((length+resolution-1)/resolution, max(1, width-1))
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
