package reference

import (
	"errors"
	"fmt"
	"time"

	"dalmatiner/internal/query/dql"
)

// ErrTimes is returned for a range of time that the reference has no rule for, or
// that the language does not allow.
var ErrTimes = errors.New("range of time")

// latest is the last millisecond of the year 9999.
var latest = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() - 1

var units = map[dql.Unit]int64{"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000,
	"d": 86_400_000, "w": 604_800_000}

func millis(d *dql.Duration) (int64, error) {
	ms, ok := units[d.Unit]
	if !ok {
		return 0, fmt.Errorf("%w: unit %q", ErrTimes, d.Unit)
	}
	return d.N * ms, nil
}

// times sets the range [start, end) by the rules of docs/dql.md, "Time ranges".
// Times and spans below 1 ms are 1 ms.
func (e *evaluator) times(r *dql.Range, now int64) (err error) {
	length := int64(1)
	if r.Span != nil {
		if length, err = millis(r.Span); err != nil {
			return err
		}
		if length < 1 {
			length = 1
		}
	}
	var from, to int64
	if r.From != nil {
		if from, err = e.time(r.From, now); err != nil {
			return err
		}
	}
	if r.To != nil {
		if to, err = e.time(r.To, now); err != nil {
			return err
		}
	}
	switch r.Kind {
	case dql.RangeLast:
		e.start, e.end = now-length, now
	case dql.RangeBefore:
		e.start, e.end = from-length, from
	case dql.RangeAfter:
		if e.start, e.end = from, from+length; e.end > latest {
			return fmt.Errorf("%w: it ends after the year 9999", ErrTimes)
		}
	default:
		e.start, e.end = from, to
		if from > to {
			e.start, e.end = to, from
		}
	}
	e.start, e.end = within(e.start), within(e.end)
	return nil
}

func within(ms int64) int64 {
	switch {
	case ms < 1:
		return 1
	case ms > latest:
		return latest
	}
	return ms
}

func (e *evaluator) time(i *dql.Instant, now int64) (int64, error) {
	switch {
	case i.Now:
		return within(now), nil
	case i.Ago != nil:
		if e.old.Compat {
			return 1, nil // the original knows no other time ago
		}
		ago, err := millis(i.Ago)
		return within(now - ago), err
	case i.Date != "":
		for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05 -0700"} {
			if t, err := time.Parse(layout, i.Date); err == nil {
				return within(t.UnixMilli()), nil
			}
		}
		return 0, fmt.Errorf("%w: date %q", ErrTimes, i.Date)
	}
	return within(i.Milli), nil
}
