package plan

import (
	"fmt"
	"time"

	"dalmatiner/internal/dql"
)

// Range is a range of time, [Start, End), in unix ms.
type Range struct{ Start, End int64 }

// TimeRange returns the range of a query. Times below 1 and spans below 1 ms are
// raised to 1. Dates without a zone are in the one given, nil for UTC. With compat a span AGO is the beginning of time, as in the original; without
// it a time that is plainly meant in seconds is an error.
func TimeRange(q *dql.Query, now int64, zone *time.Location, compat bool) (Range, error) {
	if zone == nil {
		zone = time.UTC
	}
	r := q.Range
	for _, i := range []*dql.Instant{r.From, r.To} {
		if i == nil || compat {
			continue
		}
		if err := q.CheckUnit(i); err != nil {
			return Range{}, err
		}
	}
	if r.Kind == dql.RangeLast {
		return Range{clampTime(now - span(r.Span)), clampTime(now)}, nil
	}
	from, err := instant(q, r.From, now, zone, compat)
	if err != nil {
		return Range{}, err
	}
	switch r.Kind {
	case dql.RangeAfter:
		if to := from + span(r.Span); to > dql.MaxTime {
			return Range{}, dql.NewError(q.Text, r.Pos, nil, fmt.Sprintf("the range ends after the year 9999: %d, the limit is %d", to, int64(dql.MaxTime)))
		}
		return Range{from, from + span(r.Span)}, nil
	case dql.RangeBefore:
		return Range{clampTime(from - span(r.Span)), from}, nil
	}
	to, err := instant(q, r.To, now, zone, compat)
	return Range{min(from, to), max(from, to)}, err
}

func span(d *dql.Duration) int64 { return max(1, d.Milliseconds()) }

func clampTime(ms int64) int64 { return min(max(ms, 1), dql.MaxTime) }

func instant(q *dql.Query, i *dql.Instant, now int64, zone *time.Location, compat bool) (int64, error) {
	switch {
	case i.Now:
		return clampTime(now), nil
	case i.Ago != nil && compat:
		return clampTime(min(1, now-i.Ago.Milliseconds())), nil
	case i.Ago != nil:
		return clampTime(now - i.Ago.Milliseconds()), nil
	case i.Date != "":
		ms, err := dql.ParseDate(i.Date, zone)
		if err != nil {
			return 0, dql.NewError(q.Text, i.Pos, err, fmt.Sprint(err))
		}
		return clampTime(ms), nil
	}
	return clampTime(i.Milli), nil
}
