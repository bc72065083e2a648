package plan

import (
	"time"

	"dalmatiner/internal/query/calendar"
	"dalmatiner/internal/query/dql"
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
//
// With spans of the calendar the range begins where the longest of them does, and ends where it is
// asked for. uneven is set then.
func Aligned(times Range, now int64, q *dql.Query, src source.Source, zone *time.Location,
	width int) (of Range, uneven bool) {
	a := aligner{source: src, zone: zone, buckets: make(map[string]int64)}
	fields := make([]aligned, len(q.Fields))
	for i := range q.Fields {
		fields[i] = a.expr(q.Fields[i].Expr)
	}
	if a.longest != nil {
		return Range{max(1, a.longest.Begin(times.Start, clock{zone}.location())), times.End}, true
	}
	return alignedEvenly(times, now, fields, width), false
}

// alignedEvenly is Aligned for steps of fixed length.
func alignedEvenly(times Range, now int64, fields []aligned, width int) Range {
	longest, all := int64(1), int64(1)
	length := times.End - times.Start
	for _, of := range fields {
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

// alignedColumns returns the number of columns of values every so many ms, for a range whose
// length was given in ms. The range may begin within a column. Then it covers the first and the
// last column in part, and there is one more.
func alignedColumns(length, resolution, width int64) *Columns {
	return newColumns((length+resolution-1)/resolution, max(1, width-1))
}

// aligner finds how far apart the values of a query are.
type aligner struct {
	source  source.Source
	zone    *time.Location   // asked for; nil for none
	buckets map[string]int64 // resolutions in ms
	longest *calendar.Step   // of all windows over spans of the calendar
}

// aligned is an expression: how far apart its values are, 0 where that is not known, or how
// long a constant is.
type aligned struct {
	typ  function.Type
	ms   int64
	step *calendar.Step // a constant that is a span of the calendar; else nil
}

func (a *aligner) expr(e dql.Expr) aligned {
	switch n := e.(type) {
	case *dql.Number:
		if n.Whole {
			return aligned{typ: function.TypeInteger}
		}
		return aligned{typ: function.TypeFloat}
	case *dql.Duration:
		of := aligned{typ: function.TypeTime, ms: n.Milliseconds()}
		if step, ok := calendarStep(n, a.zone); ok {
			of.step = &step
		}
		return of
	case *dql.Word:
		return aligned{typ: function.TypeWord}
	case *dql.Events:
		return aligned{typ: function.TypeEvents}
	case *dql.Select:
		return aligned{typ: function.TypeMetric, ms: a.resolution(n.Bucket)}
	case *dql.Shift:
		return a.expr(n.Of)
	case *dql.Binary:
		l, r := a.expr(n.L), a.expr(n.R)
		if l.typ == function.TypeMetric {
			return l
		}
		return r
	case *dql.Call:
		return a.call(n)
	}
	return aligned{}
}

func (a *aligner) call(c *dql.Call) aligned {
	types := make([]function.Type, len(c.Args))
	var span, series int64
	var step *calendar.Step
	for i, e := range c.Args {
		of := a.expr(e)
		types[i] = of.typ
		switch of.typ {
		case function.TypeTime:
			span, step = of.ms, of.step
		case function.TypeMetric, function.TypeHistogram:
			if series == 0 {
				series = of.ms
			}
		}
	}
	fn, ok := function.Lookup(c.Name, types)
	if ok && fn.Kind == function.KindEvents {
		return aligned{typ: function.TypeMetric, ms: max(1, span)}
	}
	if !ok || series <= 0 {
		return aligned{}
	}
	if fn.Kind == function.KindWindow && step != nil && step.N > 0 &&
		(a.longest == nil || a.longest.Nominal() < step.Nominal()) {
		a.longest = step
	}
	if fn.Kind == function.KindWindow || fn.Kind == function.KindHistogram {
		series *= max(1, span/series)
	}
	return aligned{typ: fn.Kind.Result(), ms: series}
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
