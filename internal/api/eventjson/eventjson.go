// Package eventjson has the forms of events over HTTP: lines of JSON in, JSON and server-sent
// events out. docs/http.md shows them.
package eventjson

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/filter"
	"dalmatiner/internal/store/events"
)

// timeField is the field of an event that says when it happened.
const timeField = "time"

// AppendLine appends the term of an event that is a line of JSON, an object, and returns when it
// happened, in nanoseconds, 0 where it does not say. unit is that of times that are numbers. The
// error is about the line. dst is returned as it was then.
func AppendLine(dst, line []byte, unit time.Duration) (terms []byte, at int64, err error) {
	terms, when, err := term.AppendObjectFromJSON(dst, line, timeField)
	if err != nil {
		return dst, 0, err
	}
	if at, err = timeOf(when, unit); err != nil {
		return dst, 0, err
	}
	return terms, at, nil
}

// timeOf returns when an event happened, from its field.
func timeOf(when any, unit time.Duration) (int64, error) {
	switch when := when.(type) {
	case json.Number:
		at, err := parseUnits(string(when), unit)
		if err == nil {
			err = checkUnit(string(when), at, unit)
		}
		return at, err
	case string:
		t, err := parseRFC3339(when)
		if err != nil {
			return 0, fmt.Errorf("time %.60q is not of the form 2026-01-02T15:04:05.999999999Z", when)
		}
		if t.Unix() <= 0 || t.Year() >= 2262 {
			return 0, fmt.Errorf("time %.60q is not in the years 1970 to 2261", when)
		}
		return t.UnixNano(), nil
	}
	return 0, nil
}

// units are the units that numbers may have, by their names, the coarsest first.
var units = []struct {
	name, word string
	is         time.Duration
}{
	{"s", "seconds", time.Second}, {"ms", "milliseconds", time.Millisecond},
	{"us", "microseconds", time.Microsecond}, {"ns", "nanoseconds", time.Nanosecond},
}

// Unit returns the unit of a name, nanoseconds for "".
func Unit(name string) (unit time.Duration, err error) {
	for _, u := range units {
		if u.name == cmp.Or(name, "ns") {
			return u.is, nil
		}
	}
	return 0, fmt.Errorf("unit=%.20s: known are s, ms, us, and ns, which is the default", name)
}

// checkUnit returns an error for a number that is plainly meant in a coarser unit: it would be from
// 2001 to 2286 then, and as it stands is in the first months of 1970. dql asks the same.
func checkUnit(text string, at int64, unit time.Duration) error {
	const first, past = 1_000_000_000, 10_000_000_000 // seconds
	word := ""
	for i := len(units) - 1; i >= 0; i-- {
		if units[i].is == unit {
			word = units[i].word
		}
		meant := float64(at) / float64(unit) * units[i].is.Seconds()
		if units[i].is <= unit || meant < first || meant >= past {
			continue
		}
		const moment = "2006-01-02 15:04:05"
		is := time.Unix(0, at).UTC()
		return fmt.Errorf("time %.60s is %s UTC, since times are in %s: if %s are meant, which would "+
			"be %s UTC, give ?unit=%s; if 1970 is meant, write %q",
			text, is.Format(moment), word, units[i].word, time.Unix(int64(meant), 0).UTC().Format(moment),
			units[i].name, is.Format(time.RFC3339Nano))
	}
	return nil
}

// parseRFC3339 reads a date to the nanosecond. Unix time has no leap seconds: one is the second
// behind it.
func parseRFC3339(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	const at = len("2006-01-02T15:04:")
	if err == nil || len(text) < at+2 || text[at:at+2] != "60" {
		return t, err
	}
	t, before := time.Parse(time.RFC3339Nano, text[:at]+"59"+text[at+2:])
	t = t.Add(time.Second)
	if utc := t.UTC(); before != nil || utc.Hour() != 0 || utc.Minute() != 0 {
		return time.Time{}, err // they are at the end of a day
	}
	return t, nil
}

// parseUnits reads a number of units as nanoseconds. Digits behind the point count, up to the
// nanosecond; a number with an exponent is as exact as a float64.
func parseUnits(text string, unit time.Duration) (int64, error) {
	outside := fmt.Errorf("time %.60s is not in the years 1970 to 2262; give the unit of numbers, "+
		"as with ?unit=ms", text)
	if strings.ContainsAny(text, "eE") {
		f, err := strconv.ParseFloat(text, 64)
		if f *= float64(unit); err != nil || !(f >= 1 && f < math.MaxInt64) {
			return 0, outside
		}
		return int64(f), nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || n >= math.MaxInt64/int64(unit) {
		return 0, outside
	}
	ns := n * int64(unit)
	for i, scale := 0, int64(unit)/10; i < len(fraction) && scale > 0; i, scale = i+1, scale/10 {
		ns += int64(fraction[i]-'0') * scale
	}
	if ns < 1 {
		return 0, outside
	}
	return ns, nil
}

// ParseTime reads a time in milliseconds since 1970, or a date, to the nanosecond where it is
// written so.
func ParseTime(text string) (ns int64, err error) {
	const last = math.MaxInt64 / int64(time.Millisecond)
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		if ms < 0 || ms > last {
			return 0, fmt.Errorf("%s ms is not in the years 1970 to 2262", text)
		}
		return ms * int64(time.Millisecond), nil
	}
	if t, err := parseRFC3339(text); err == nil && t.Unix() >= 0 && t.Year() < 2262 {
		return t.UnixNano(), nil
	}
	ms, err := dql.ParseDate(text, time.UTC)
	if err == nil && (ms < 0 || ms > last) {
		err = fmt.Errorf("%s is not in the years 1970 to 2262", text)
	}
	return ms * int64(time.Millisecond), err
}

// AppendEvent appends an event: its time in nanoseconds, and its plain term.
func AppendEvent(buf []byte, at int64, body []byte) []byte {
	buf = strconv.AppendInt(append(buf, `{"timestamp":`...), at, 10)
	buf = term.Root(body).AppendJSON(append(buf, `,"event":`...))
	return append(buf, '}')
}

// AppendGaps appends the ranges of time in which damage took events.
func AppendGaps(buf []byte, gaps []events.Gap) []byte {
	buf = append(buf, '[')
	for i, g := range gaps {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = strconv.AppendInt(append(buf, `{"start":`...), g.Start, 10)
		buf = strconv.AppendInt(append(buf, `,"end":`...), g.End, 10)
		buf = append(strconv.AppendInt(append(buf, `,"events":`...), g.Events, 10), '}')
	}
	return append(buf, ']')
}

// Tail sends events that meet a filter as server-sent events, and behind them how many were missed.
// They go out in pieces of about size bytes, of which buf is the memory; sent is false where there
// was nothing. The error is that of send.
func Tail(buf []byte, list []events.Event, missed uint64, want *filter.Filter, size int,
	send func([]byte) error) (sent bool, err error) {
	buf = buf[:0]
	for i := range list {
		if e := &list[i]; want.Match(term.Root(e.Body)) {
			buf = append(AppendEvent(append(buf, "data: "...), e.Time, e.Body), "\n\n"...)
		}
		if len(buf) >= size {
			if err := send(buf); err != nil {
				return true, err
			}
			sent, buf = true, buf[:0]
		}
	}
	if missed > 0 {
		buf = fmt.Appendf(buf, "event: missed\ndata: {\"events\":%d}\n\n", missed)
	}
	if len(buf) == 0 {
		return sent, nil
	}
	return true, send(buf)
}
