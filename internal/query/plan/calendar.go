package plan

import (
	"sort"
	"time"

	"dalmatiner/internal/query/calendar"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/function"
)

// Calendar is when the outputs of windows begin that are spans of the calendar, and so of unequal
// length. Nodes with equal windows share one.
type Calendar struct {
	calendar.Step
	Times []int64 // unix ms; the first one is the start of the range
}

// calendarStep returns a span as one of the calendar, if it is one.
func calendarStep(d *dql.Duration, zone *time.Location) (calendar.Step, bool) {
	switch d.Unit {
	case "y":
		return calendar.Step{N: calendar.YearMonths * d.N, Unit: calendar.Month}, true
	case "mo":
		return calendar.Step{N: d.N, Unit: calendar.Month}, true
	case "w":
		return calendar.Step{N: d.N, Unit: calendar.Week}, zone != nil
	case "d":
		return calendar.Step{N: d.N, Unit: calendar.Day}, zone != nil
	}
	return calendar.Step{}, false
}

// duration plans a span of time.
func (r *request) duration(d *dql.Duration) value {
	v := value{typ: function.TypeTime, span: d.Milliseconds(), varies: d.Unit.Varies(), pos: d.Pos()}
	if step, ok := calendarStep(d, r.opt.Zone); ok {
		v.calendar = &step
	}
	return v
}

// location returns the time zone of a plan.
func (r *request) location() *time.Location { return clock{r.opt.Zone}.location() }

// checkCalendar refuses spans of the calendar in functions that take others only.
func (r *request) checkCalendar(a arguments) error {
	for _, v := range a.consts {
		switch {
		case v.calendar == nil || a.fn.Kind == function.KindWindow:
		case v.varies:
			return r.errorAt(v.pos, nil,
				"%s takes a span of fixed length, and months and years have none: write days, such as 30d",
				a.fn.Name)
		case a.fn.Kind == function.KindEvents:
			return r.errorAt(v.pos, nil,
				"events are counted in steps of fixed length, and in a time zone a day has none: write 24h, "+
					"or add up hours, as in sum(count(EVENTS …, 1h), %v)", v.calendar)
		case a.fn.Kind == function.KindHistogram:
			return r.errorAt(v.pos, nil,
				"histograms take spans of fixed length, and in a time zone a day has none: write hours, such "+
					"as 24h")
		}
	}
	return nil
}

// checkUneven refuses functions of windows of the calendar that count their values as equally long.
func (r *request) checkUneven(a arguments, in *Node) error {
	if in.Calendar == nil {
		return nil
	}
	switch a.fn.Kind {
	case function.KindStep, function.KindMoving, function.KindHistogram:
	case function.KindFill:
		if a.consts[0].word != "linear" {
			return nil
		}
	case function.KindWindow:
		if a.fn.Op != function.Increase && a.fn.Op != function.Rate {
			return nil
		}
	default:
		return nil
	}
	return r.errorAt(a.pos, nil,
		"%s needs values at equal distances, and spans of the calendar such as %v differ in length: "+
			"write hours, such as 24h", a.fn.Name, in.Calendar)
}

// calendar returns the windows of a step in the range.
func (g *graph) calendar(pos int, step calendar.Step) (*Calendar, error) {
	if c := g.calendars[step]; c != nil {
		return c, nil
	}
	c := &Calendar{Step: step}
	if step.N < 1 {
		return nil, g.errorAt(pos, nil,
			"a span of the calendar has at least one day, week, month or year")
	}
	if g.out.Start < g.out.End {
		n := step.Count(g.out.Start, g.out.End)
		if n > g.opt.Limits.MaxOutput {
			return nil, g.limit(pos, "spans in its range", n, g.opt.Limits.MaxOutput,
				"aggregate over longer spans or ask for a shorter range")
		}
		if err := g.Grow(8 * n); err != nil {
			return nil, err
		}
		c.Times = step.Windows(g.out.Start, g.out.End, g.location())
	}
	if g.calendars == nil {
		g.calendars = make(map[calendar.Step]*Calendar)
	}
	g.calendars[step] = c
	return c, nil
}

// calendarWindow plans an aggregate over spans of the calendar. An input is part of the window in
// which it begins.
func (g *graph) calendarWindow(a arguments, in *Node, number float64, span value) (*Node, error) {
	c, err := g.calendar(span.pos, *span.calendar)
	if err != nil {
		return nil, err
	}
	if in.Resolution > c.Nominal() {
		return nil, g.errorAt(span.pos, nil,
			"a span of %v is shorter than the %d ms from one value to the next", c, in.Resolution)
	}
	bounds, err := g.bounds(c, in)
	if err != nil {
		return nil, err
	}
	name := g.windowName("calendar", a, number).number(c.N, int64(c.Unit))
	n := g.internOver(in, name, func(n *Node) {
		op := nextOf(&g.spare.windows, len(g.out.Nodes))
		*op = Window{Fn: a.fn.Op, Number: number, Size: longest(bounds), Bounds: bounds}
		if a.fn.Op == function.Percentile || a.fn.Op == function.Median {
			err = g.hold(a.pos, 8*op.Size)
		}
		n.Op, n.Calendar = op, c
		n.Resolution, n.Values = c.Nominal(), int64(len(c.Times))
		n.Form = g.shape("calendar", c.N, int64(c.Unit), int64(in.Form))
	})
	if g.opt.Explain {
		g.describe(n, "%s of %v in %v", function.NameOf(function.KindWindow, a.fn.Op), c, g.location())
	}
	return n, err
}

// bounds returns the first input of each window, and behind them the number of inputs.
func (g *graph) bounds(c *Calendar, in *Node) ([]int64, error) {
	key := boundsOf{c, in.Calendar, in.First, in.Resolution, in.Values}
	if known := g.bounded[key]; known != nil {
		return known, nil
	}
	if err := g.Grow(8 * int64(len(c.Times)+1)); err != nil {
		return nil, err
	}
	list := make([]int64, 0, len(c.Times)+1)
	for i, at := range c.Times {
		first := int64(0)
		if in.Calendar != nil {
			first = int64(sort.Search(len(in.Calendar.Times), func(i int) bool {
				return in.Calendar.Times[i] >= at
			}))
		} else if i > 0 {
			first = min(-SlotOf(in.First-at, in.Resolution), in.Values)
		}
		list = append(list, first)
	}
	list = append(list, in.Values)
	if g.bounded == nil {
		g.bounded = make(map[boundsOf][]int64)
	}
	g.bounded[key] = list
	return list, nil
}

// boundsOf is what the bounds of windows depend on.
type boundsOf struct {
	calendar, of              *Calendar
	first, resolution, values int64
}

// longest returns the inputs of the longest window, at least 1.
func longest(bounds []int64) int64 {
	most := int64(1)
	for i, b := range bounds[1:] {
		most = max(most, b-bounds[i])
	}
	return most
}

// sameBounds reports whether windows have the same bounds, which are shared then.
func sameBounds(a, b []int64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Length returns how many inputs the window of a number has.
func (w *Window) Length(i int64) int64 { return lengthOf(w.Bounds, w.Size, i) }

// Length returns how many slots the span of a number has.
func (s *Spans) Length(i int64) int64 { return lengthOf(s.Bounds, s.Size, i) }

// Length returns how many slots the sum of a number has.
func (s *Sum) Length(i int64) int64 { return lengthOf(s.Bounds, s.Size, i) }

func lengthOf(bounds []int64, size, i int64) int64 {
	if bounds == nil {
		return size
	}
	if i+1 >= int64(len(bounds)) {
		return 0
	}
	return bounds[i+1] - bounds[i]
}

// calendarColumns returns the columns of values of unequal length: one for each.
func (g *graph) calendarColumns(pos int, n *Node) (*Columns, error) {
	if most := int64(g.opt.Width); n.Values > most {
		return nil, g.limit(pos, "spans of "+n.Calendar.String()+", which cannot share a column",
			n.Values, most,
			"aggregate over longer spans, or ask for a larger width or none")
	}
	return &Columns{Step: 1}, nil
}
