// Package calendar counts time in days, weeks, months and years of a time zone. They differ in
// length: a day has 23 or 25 hours where clocks are changed.
//
// Times are unix milliseconds.
package calendar

import (
	"strconv"
	"time"
)

// Unit is a unit of the calendar.
type Unit uint8

// The units of the calendar.
const (
	Day Unit = iota
	Week
	Month
)

// YearMonths is how many months a year has.
const YearMonths = 12

// Step is a span of the calendar. Windows of N units begin at multiples of N: days counted from
// 1970-01-01, weeks from the Monday after it, months from January of the year 0.
type Step struct {
	N    int64 // at least 1
	Unit Unit
}

const dayMilli = 24 * 3600 * 1000

// Nominal returns about how many ms the step has: years count 365 days, other months 30.
func (s Step) Nominal() int64 {
	switch s.Unit {
	case Day:
		return s.N * dayMilli
	case Week:
		return s.N * 7 * dayMilli
	}
	return (s.N/YearMonths*365 + s.N%YearMonths*30) * dayMilli
}

// String returns the step as the query language has it.
func (s Step) String() string {
	if s.Unit == Month && s.N%YearMonths == 0 {
		return strconv.FormatInt(s.N/YearMonths, 10) + "y"
	}
	return strconv.FormatInt(s.N, 10) + [...]string{Day: "d", Week: "w", Month: "mo"}[s.Unit]
}

// Add returns the time that is n units later on the clocks of a zone, earlier for n below 0. The
// last days of a month stand for those that another month does not have: a month before March 31
// is the last of February.
func Add(ms, n int64, unit Unit, zone *time.Location) int64 {
	t := time.UnixMilli(ms).In(zone)
	year, month, day := t.Date()
	switch unit {
	case Day:
		day += int(n)
	case Week:
		day += 7 * int(n)
	case Month:
		months := int64(month) - 1 + n
		years := floorDiv(months, YearMonths)
		year, month = year+int(years), time.Month(months-YearMonths*years+1)
		day = min(day, daysIn(year, month))
	}
	hour, minute, second := t.Clock()
	return time.Date(year, month, day, hour, minute, second, t.Nanosecond(), zone).UnixMilli()
}

// Begin returns when the window begins that a time lies in.
func (s Step) Begin(ms int64, zone *time.Location) int64 {
	first := s.floor(newClock(ms, zone).day(ms))
	return newClock(first*dayMilli, zone).begin(first)
}

// Count returns about how many windows a range has, without looking at each.
func (s Step) Count(start, end int64) int64 { return (end-start)/s.Nominal() + 2 }

// Windows returns when the windows of a range begin, which is not empty: the first one with the
// range, the others where the calendar has them.
func (s Step) Windows(start, end int64, zone *time.Location) []int64 {
	list := append(make([]int64, 0, s.Count(start, end)), start)
	c := newClock(start, zone)
	for day := s.next(s.floor(c.day(start))); ; day = s.next(day) {
		at := c.begin(day)
		if at >= end {
			return list
		}
		if at > list[len(list)-1] { // else the zone has left the day out
			list = append(list, at)
		}
	}
}

// Days are counted from 1970-01-01. monday is the first Monday among them.
const monday = 4

// floor returns the first day of the window that a day lies in.
func (s Step) floor(day int64) int64 {
	switch s.Unit {
	case Day:
		return floorDiv(day, s.N) * s.N
	case Week:
		return floorDiv(day-monday, 7*s.N)*7*s.N + monday
	}
	year, month, _ := time.Unix(day*86400, 0).UTC().Date()
	return firstOf(floorDiv(int64(year)*YearMonths+int64(month)-1, s.N) * s.N)
}

// next returns the first day of the window after the one that begins with a day.
func (s Step) next(day int64) int64 {
	switch s.Unit {
	case Day:
		return day + s.N
	case Week:
		return day + 7*s.N
	}
	year, month, _ := time.Unix(day*86400, 0).UTC().Date()
	return firstOf(int64(year)*YearMonths + int64(month) - 1 + s.N)
}

// firstOf returns the first day of a month, counted from January of the year 0.
func firstOf(month int64) int64 {
	year := floorDiv(month, YearMonths)
	return time.Date(int(year), time.Month(month-YearMonths*year+1), 1, 0, 0, 0, 0,
		time.UTC).Unix() / 86400
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// clock tells the times of a zone. It goes forward: what it is asked for never lies days before
// what it was asked for last.
type clock struct {
	zone       *time.Location
	from, past int64 // where the offset holds; past is the greatest number where it does for ever
	offset     int64 // ms east of UTC
}

func newClock(ms int64, zone *time.Location) *clock {
	c := &clock{zone: zone}
	c.set(ms - 3*dayMilli)
	return c
}

// set turns the clock to a time.
func (c *clock) set(ms int64) {
	t := time.UnixMilli(ms).In(c.zone)
	_, offset := t.Zone()
	from, past := t.ZoneBounds()
	c.offset, c.from, c.past = int64(offset)*1000, ms, 1<<63-1
	if !from.IsZero() {
		c.from = from.UnixMilli()
	}
	if !past.IsZero() {
		// On the last day of a leap year ZoneBounds returns an end that is over.
		c.past = max(past.UnixMilli(), ms+15*60*1000)
	}
}

// day returns which day a time lies in.
func (c *clock) day(ms int64) int64 {
	for ms >= c.past {
		c.set(c.past)
	}
	return floorDiv(ms+c.offset, dayMilli)
}

// begin returns the first time that lies in a day or after it. That is not always midnight: clocks
// that are changed at midnight may leave it out, or have it twice.
func (c *clock) begin(day int64) int64 {
	for day*dayMilli-c.offset >= c.past {
		c.set(c.past)
	}
	return max(day*dayMilli-c.offset, c.from)
}
