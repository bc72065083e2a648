package syslog

import (
	"bytes"
	"time"
)

// The times that senders write before the host, each followed by a blank. RFC 3164 has the first;
// the others are common.
var bsdTimes = []struct {
	layout string
	words  int // that it takes
	year   bool
}{
	{"Jan _2 15:04:05", 3, false},
	{"Jan _2 2006 15:04:05", 4, true},
	{time.RFC3339, 1, true},
}

// parseBSD reads what RFC 3164 has behind the priority: time, host, tag and text. Of these a
// sender may leave out any of the first three.
func (m *message) parseBSD(src []byte, c clock) {
	rest := src
	for _, form := range bsdTimes {
		word, behind := cutWords(rest, form.words)
		t, err := time.ParseInLocation(form.layout, string(word), c.zone)
		if err != nil {
			continue
		}
		if !form.year {
			t = withYear(t, c)
		}
		if !storable(t) {
			break
		}
		m.time, rest = t, behind
		// A word that starts no tag is the host.
		if host, behind := cutWord(rest); printable(host) && len(behind) > 0 && host[len(host)-1] != ':' && !bytes.ContainsRune(host, '[') {
			m.host, rest = host, behind
		}
		break
	}
	m.text = m.tag(rest)
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
		y := time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), c.zone)
		leap := y.Month() != t.Month() // the 29th of February of another year
		if !leap && y.Sub(now) <= zones {
			return y
		}
	}
	return time.Time{}
}

// maxTag is the longest tag: longer ones are text that happens to have a colon.
const maxTag = 64

// tag reads `app: `, or `app[pid]: `, and returns the text behind it.
func (m *message) tag(src []byte) (text []byte) {
	end := bytes.IndexAny(src[:min(len(src), maxTag)], ":[ ")
	if end <= 0 || src[end] == ' ' || !printable(src[:end]) {
		return src
	}
	app, rest := src[:end], src[end:]
	var pid []byte
	if rest[0] == '[' {
		closing := bytes.IndexByte(rest[:min(len(rest), maxTag)], ']')
		if closing < 0 {
			return src
		}
		pid, rest = rest[1:closing], rest[closing+1:]
	}
	if len(rest) == 0 || rest[0] != ':' || len(rest) > 1 && rest[1] != ' ' {
		return src
	}
	m.app, m.pid = app, pid
	return bytes.TrimPrefix(rest[1:], []byte(" "))
}
