package syslog

import (
	"bytes"
	"strconv"
	"time"
)

// The times that senders write before the host. RFC 3164 has the first; the others are common.
var bsdTimes = []struct {
	layout string
	words  int  // that it takes
	year   bool // is in it
	ends   bool // with a colon: without one it is no time
}{
	{layout: "Jan _2 15:04:05", words: 3},
	{layout: "Jan _2 2006 15:04:05", words: 4, year: true},
	{layout: time.RFC3339, words: 1, year: true},
	{layout: "2006 Jan _2 15:04:05", words: 4, year: true, ends: true}, // Cisco NX-OS
}

// parseBSD reads what RFC 3164 has behind the priority: time, host, tag and text. Of these a
// sender may leave out any of the first three. Cisco's devices put counters, and perhaps the host,
// ahead of the time.
func (m *message) parseBSD(src []byte, c clock) {
	rest := m.counters(src)
	t, behind, ended, ok := cutTime(rest, c)
	if !ok && len(m.sequence) > 0 {
		if name, after, _ := bytes.Cut(rest, []byte(":")); printable(name) {
			if t, behind, ended, ok = cutTime(after, c); ok {
				m.host = name
			}
		}
	}
	if !ok {
		if !m.parseFortiGate(rest, c) {
			m.text = m.tag(rest, c)
		}
		return
	}
	m.time = t
	if !ended && len(m.host) == 0 {
		behind = m.cutHost(behind)
	}
	m.text = m.tag(behind, c)
}

// cutTime takes a time off the front, and what Cisco's devices put around it: a sign before it that
// says whether the clock is set, a zone and a colon after it. ended reports the colon: no host
// follows. A time without a year gets one.
func cutTime(src []byte, c clock) (t time.Time, rest []byte, ended, ok bool) {
	src = bytes.TrimLeft(src, " :*.")
	for _, form := range bsdTimes {
		words, rest := cutWords(src, form.words)
		words, ended := bytes.CutSuffix(words, []byte(":"))
		year, written, zone := 0, false, c.zone
		if !ended {
			if !form.year {
				year, rest, written = cutYear(rest)
			}
			zone, rest, ended = cutZone(rest, c.zone)
		}
		if form.ends && !ended {
			continue
		}
		t, err := time.ParseInLocation(form.layout, string(words), zone)
		if err != nil {
			continue
		}
		switch {
		case written:
			t, _ = inYear(t, year, zone)
		case !form.year:
			t = withYear(t, clock{c.now, zone, c.maxFuture})
		}
		return t, rest, ended, storable(t)
	}
	return t, src, false, false
}

// cutYear takes a year off the front, which Junos and Comware write behind the time.
func cutYear(src []byte) (year int, rest []byte, ok bool) {
	word, rest := cutWord(src)
	if len(word) != 4 || !isCounter(word) || len(rest) == 0 {
		return 0, src, false
	}
	year, err := strconv.Atoi(string(word))
	return year, rest, err == nil
}

// cutZone takes the name of a zone and a colon off the front. A name such as CST is of several
// zones: all names but those of UTC stand for the configured one, and only where a message of Cisco
// follows, because `CRON: ` is a tag.
func cutZone(src []byte, configured *time.Location) (zone *time.Location, rest []byte, ok bool) {
	const longest = 5
	word, rest := cutWord(src)
	name, ended := bytes.CutSuffix(word, []byte(":"))
	if !ended || len(name) == 0 || len(name) > longest {
		return configured, src, false
	}
	switch string(name) {
	case "UTC", "GMT", "Z":
		return time.UTC, rest, true
	}
	for _, c := range name {
		if c < 'A' || c > 'Z' {
			return configured, src, false
		}
	}
	if !bytes.HasPrefix(rest, []byte("%")) {
		return configured, src, false
	}
	return configured, rest, true
}

// cutHost takes the host off the front: a word that starts no tag. Switches of HP have a number of
// the event behind it, Cisco's ASA has a colon.
func (m *message) cutHost(src []byte) (rest []byte) {
	host, rest := cutWord(src)
	if !printable(host) || len(rest) == 0 || bytes.HasSuffix(host, []byte(":")) ||
		bytes.ContainsRune(host, '[') {
		return src
	}
	m.host = host
	if after, ok := bytes.CutPrefix(rest, []byte(": ")); ok && bytes.HasPrefix(after, []byte("%")) {
		return after
	}
	const digits = 5
	if id, after := cutWord(rest); len(id) == digits && isCounter(id) {
		if app, _, _ := cutTag(after); len(app) > 0 {
			m.id = id
			return after
		}
	}
	return rest
}

// cutWords cuts behind n words. A day of one digit has two blanks before it, or a zero, or
// nothing.
func cutWords(src []byte, n int) (words, rest []byte) {
	end := 0
	for ; n > 0; n-- {
		for end < len(src) && src[end] == ' ' {
			end++
		}
		for end < len(src) && src[end] != ' ' {
			end++
		}
	}
	return src[:end], bytes.TrimPrefix(src[end:], []byte(" "))
}

// zones is how far the clocks of two zones may be apart, from UTC-12 to UTC+14. ingest.max_future
// does not matter here: with a long one, messages of today would be of next year.
const zones = 26 * time.Hour

// withYear gives a time without a year the latest one that does not lead ahead by more than zones
// differ: what comes on the first of January may be of the last of December, and a year that nobody
// wrote never leads into the future. The time of a zone to the east keeps its year, or its messages
// would be a year old.
func withYear(t time.Time, c clock) time.Time {
	now := c.now.In(c.zone)
	for year := now.Year() + 1; year >= now.Year()-1; year-- {
		if y, ok := inYear(t, year, c.zone); ok && y.Sub(now) <= zones {
			return y
		}
	}
	return time.Time{}
}

// inYear returns the time of another year, and nothing for the 29th of February in most of them.
func inYear(t time.Time, year int, zone *time.Location) (y time.Time, ok bool) {
	y = time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
	if y.Month() != t.Month() {
		return time.Time{}, false
	}
	return y, true
}

// maxTag is the longest tag: longer ones are text that happens to have a colon.
const maxTag = 64

// tag reads `app: `, or `app[pid]: `, and returns the text behind it. A number is not an
// application but a counter. Where a relay put its header ahead of a message of Cisco, that has a
// second time.
func (m *message) tag(src []byte, c clock) (text []byte) {
	src = m.uptimeOf(m.counters(src))
	m.app, m.pid, text = cutTag(src)
	if len(m.app) == 0 && len(m.sequence) > 0 {
		if _, rest, ended, ok := cutTime(src, c); ok && ended {
			m.app, m.pid, _ = cutTag(rest)
		}
	}
	return text
}

// cutTag takes a tag off the front; without one, all is text.
func cutTag(src []byte) (app, pid, text []byte) {
	end := bytes.IndexAny(src[:min(len(src), maxTag)], ":[ ")
	if end <= 0 || src[end] == ' ' || !printable(src[:end]) {
		return nil, nil, src
	}
	app, rest := src[:end], src[end:]
	if rest[0] == '[' {
		closing := bytes.IndexByte(rest[:min(len(rest), maxTag)], ']')
		if closing < 0 {
			return nil, nil, src
		}
		pid, rest = rest[1:closing], rest[closing+1:]
	}
	text, ok := cutColon(rest)
	if !ok {
		return nil, nil, src
	}
	return app, pid, text
}

// cutColon takes a colon and a blank off the front, or a colon at the end.
func cutColon(src []byte) (rest []byte, ok bool) {
	if len(src) == 0 || src[0] != ':' || len(src) > 1 && src[1] != ' ' {
		return src, false
	}
	return bytes.TrimPrefix(src[1:], []byte(" ")), true
}
