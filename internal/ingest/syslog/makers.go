package syslog

import (
	"bytes"
	"time"
)

// counters takes the counters off the front with which Cisco's devices number their messages, such
// as `237: `. Of several the last is kept: it is the device's own, and the ones ahead of it count
// what it sent to this receiver.
func (m *message) counters(src []byte) (rest []byte) {
	for {
		digits := 0
		for digits < len(src) && isDigit(src[digits]) {
			digits++
		}
		rest, ok := cutColon(src[digits:])
		if !ok || !isCounter(src[:digits]) {
			return src
		}
		m.sequence, src = src[:digits], rest
	}
}

// isCounter reports whether a word is a number that fits an integer.
func isCounter(word []byte) bool {
	const most = 18
	for _, c := range word {
		if !isDigit(c) {
			return false
		}
	}
	return len(word) > 0 && len(word) <= most
}

// uptimeOf takes the time since its start off the front, which Cisco's devices write where they are
// told to, or have no clock: `3w2d: ` or `00:00:12: `, and the message.
func (m *message) uptimeOf(src []byte) (rest []byte) {
	word, rest := cutWord(src)
	uptime, ended := bytes.CutSuffix(word, []byte(":"))
	if !ended || len(uptime) == 0 || !isDigit(uptime[0]) || !bytes.HasPrefix(rest, []byte("%")) {
		return src
	}
	for _, c := range uptime {
		if !isDigit(c) && !bytes.ContainsRune([]byte(":.ywdhms"), rune(c)) {
			return src
		}
	}
	m.uptime = uptime
	return rest
}

// parseFortiGate reads time and host of a message that is a list of key=value, as Fortinet's
// devices write it. All of it is text, too.
func (m *message) parseFortiGate(src []byte, c clock) bool {
	const layout = "date=2006-01-02 time=15:04:05"
	if !bytes.HasPrefix(src, []byte("date=")) {
		return false
	}
	words, rest := cutWords(src, 2)
	t, err := time.ParseInLocation(layout, string(words), c.zone)
	if err != nil || !storable(t) {
		return false
	}
	if zone := valueOf(rest, "tz"); len(zone) > 0 {
		if zoned, err := time.Parse(layout+"-0700", string(words)+string(zone)); err == nil {
			t = zoned
		}
	}
	m.time, m.text = t, src
	if host := valueOf(rest, "devname"); printable(host) {
		m.host = host
	}
	return true
}

// valueOf returns the value of a key in a list of key=value and key="value".
func valueOf(src []byte, key string) []byte {
	if i := bytes.Index(src, []byte(" "+key+"=")); i >= 0 {
		src = src[i+1:]
	}
	value, ok := bytes.CutPrefix(src, []byte(key+"="))
	if !ok {
		return nil
	}
	end := " "
	if quoted, ok := bytes.CutPrefix(value, []byte(`"`)); ok {
		value, end = quoted, `"`
	}
	value, _, _ = bytes.Cut(value, []byte(end))
	return value
}
