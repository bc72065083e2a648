package dql

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"dalmatiner/internal/query/calendar"
)

// zones are the abbreviations a date may end in, in hours east of UTC. Only
// those with one common meaning are listed: an offset is never ambiguous.
var zones = map[string]float64{
	"UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "EET": 2,
	"EEST": 3, "MSK": 3,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9,
	"AKDT": -8,
	"HST":  -10, "JST": 9, "KST": 9, "AWST": 8, "ACST": 9.5, "AEST": 10, "AEDT": 11, "NZST": 12,
	"NZDT": 13,
}

var dayLayouts = [...]string{
	"2006-01-02", "2006-1-2", "2006/01/02", "2006/1/2", "20060102", "1/2/2006",
	"2 Jan 2006", "2 January 2006", "Jan 2 2006", "January 2 2006",
}

var clockLayouts = [...]string{
	"", "15:04:05", "15:04", "15:04:05.999999999", "3:04 PM", "3:04PM", "3:04:05 PM", "3:04:05PM",
}

// ErrDate is wrapped by the error of ParseDate.
var ErrDate = errors.New("not a date")

// ParseDate returns a date in milliseconds since 1970, cut to whole seconds, as in the
// original. A date without a zone is taken to be in the given one.
//
// It accepts ISO dates (2016-04-19, with or without a time behind a blank or T), common
// American and spelled-out forms, and behind them a zone: Z, +0200, +02:00, an abbreviation
// such as EST, or an IANA name such as Europe/Zagreb. Any other text is an error that wraps
// ErrDate.
func ParseDate(text string, zone *time.Location) (int64, error) {
	// the form that is recommended, in which nothing else can stand
	if len(text) == len(time.DateTime) {
		if t, err := time.ParseInLocation(time.DateTime, text, zone); err == nil {
			return t.Unix() * 1000, nil
		}
	}
	day, clock, zoneText := splitDate(text)
	if zoneText != "" {
		var err error
		if zone, err = parseZone(zoneText); err != nil {
			return 0, fmt.Errorf("%w: %q: %w", ErrDate, text, err)
		}
	}
	for _, d := range dayLayouts {
		for _, c := range clockLayouts {
			if (c == "") != (clock == "") {
				continue
			}
			t, err := time.ParseInLocation(strings.TrimSpace(d+" "+c), strings.TrimSpace(day+" "+clock),
				zone)
			if err == nil {
				return t.Unix() * 1000, nil
			}
		}
	}
	return 0, fmt.Errorf(`%w: %q: write it like "2016-04-19 12:30:00" or "2016-04-19T12:30:00+02:00"`,
		ErrDate, text)
}

// splitDate separates day, time of day and zone. Commas and the name of the
// weekday carry no information.
func splitDate(text string) (day, clock, zone string) {
	words := strings.Fields(strings.ReplaceAll(text, ",", " "))
	if len(words) > 1 && isWeekday(words[0]) {
		words = words[1:]
	}
	if len(words) > 0 {
		if d, c, ok := strings.Cut(words[0], "T"); ok && len(d) >= 8 && d[0] <= '9' {
			words = append([]string{d, c}, words[1:]...)
		}
	}
	var days []string
	for i, w := range words {
		if strings.Contains(w, ":") {
			day = strings.Join(days, " ")
			clock, zone = splitClock(w)
			for _, r := range words[i+1:] {
				if u := strings.ToUpper(r); zone == "" && (u == "AM" || u == "PM") {
					clock += " " + u
				} else {
					zone += r
				}
			}
			return day, clock, zone
		}
		days = append(days, w)
	}
	if n := len(days); n > 1 {
		if _, err := parseZone(days[n-1]); err == nil {
			return strings.Join(days[:n-1], " "), "", days[n-1]
		}
	}
	return strings.Join(days, " "), "", ""
}

func isWeekday(w string) bool {
	w = strings.ToLower(w)
	for d := time.Sunday; d <= time.Saturday; d++ {
		name := strings.ToLower(d.String())
		if w == name || w == name[:3] {
			return true
		}
	}
	return false
}

// splitClock cuts a zone that stands directly behind the time of day.
func splitClock(w string) (clock, zone string) {
	if i := strings.IndexAny(w, "+-Zz"); i > 0 {
		return w[:i], w[i:]
	}
	return strings.ToUpper(w), ""
}

func parseZone(text string) (*time.Location, error) {
	if hours, ok := zones[strings.ToUpper(text)]; ok {
		return time.FixedZone(text, int(hours*3600)), nil
	}
	if strings.ContainsAny(text, "/+-") {
		return calendar.Zone(text)
	}
	return nil, fmt.Errorf("unknown time zone %q: write an offset such as +0200", text)
}
