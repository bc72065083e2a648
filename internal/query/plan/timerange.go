package plan

import (
	"fmt"
	"time"

	"dalmatiner/internal/query/calendar"
	"dalmatiner/internal/query/dql"
)

// Range is a range of time, [Start, End), in unix ms.
type Range struct{ Start, End int64 }

// TimeZone returns the zone that a query asks for, or else the one that is asked for beside it. It
// is nil where none is.
func TimeZone(q *dql.Query, beside *time.Location) (*time.Location, error) {
	if q.Zone == nil {
		return beside, nil
	}
	zone, err := calendar.Zone(q.Zone.Name)
	if err != nil {
		return nil, dql.NewError(q.Text, q.Zone.Pos, err, err.Error())
	}
	return zone, nil
}

// clock moves times on the clocks of a zone, nil for UTC.
type clock struct{ zone *time.Location }

// location returns the zone of dates without one.
func (c clock) location() *time.Location {
	if c.zone == nil {
		return time.UTC
	}
	return c.zone
}

// later returns the time a span later, times sign, which is 1 or -1. Months and years follow the
// calendar, and days and weeks do where a zone is asked for.
func (c clock) later(ms int64, d *dql.Duration, sign int64) int64 {
	if step, ok := calendarStep(d, c.zone); ok {
		return calendar.Add(ms, sign*step.N, step.Unit, c.location())
	}
	return ms + sign*d.Milliseconds()
}

// TimeRange returns the range of a query. Times below 1 and spans below 1 ms are raised to 1.
// Dates without a zone are in the one asked for, nil for none: then they are in UTC, and days have
// 24 hours. With compat a span AGO is the beginning of time, as in the original; without it a time
// that is plainly meant in seconds is an error.
func TimeRange(q *dql.Query, now int64, zone *time.Location, compat bool) (Range, error) {
	c, r := clock{zone}, q.Range
	for _, i := range []*dql.Instant{r.From, r.To} {
		if i == nil || compat {
			continue
		}
		if err := q.CheckUnit(i); err != nil {
			return Range{}, err
		}
	}
	if r.Kind == dql.RangeLast {
		return Range{clampTime(c.before(now, r.Span)), clampTime(now)}, nil
	}
	from, err := c.instant(q, r.From, now, compat)
	if err != nil {
		return Range{}, err
	}
	switch r.Kind {
	case dql.RangeAfter:
		to := max(from+1, c.later(from, r.Span, 1))
		if to > dql.MaxTime {
			return Range{}, dql.NewError(q.Text, r.Pos, nil,
				fmt.Sprintf("the range ends after the year 9999: %d, the limit is %d", to, int64(dql.MaxTime)))
		}
		return Range{from, to}, nil
	case dql.RangeBefore:
		return Range{clampTime(c.before(from, r.Span)), from}, nil
	}
	to, err := c.instant(q, r.To, now, compat)
	return Range{min(from, to), max(from, to)}, err
}

// before returns the begin of a range of some length.
func (c clock) before(end int64, length *dql.Duration) int64 {
	return min(end-1, c.later(end, length, -1))
}

func clampTime(ms int64) int64 { return min(max(ms, 1), dql.MaxTime) }

func (c clock) instant(q *dql.Query, i *dql.Instant, now int64, compat bool) (int64, error) {
	switch {
	case i.Now:
		return clampTime(now), nil
	case i.Ago != nil && compat:
		return clampTime(min(1, now-i.Ago.Milliseconds())), nil
	case i.Ago != nil:
		return clampTime(c.later(now, i.Ago, -1)), nil
	case i.Date != "":
		ms, err := dql.ParseDate(i.Date, c.location())
		if err != nil {
			return 0, dql.NewError(q.Text, i.Pos, err, fmt.Sprint(err))
		}
		return clampTime(ms), nil
	}
	return clampTime(i.Milli), nil
}
