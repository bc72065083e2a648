package syslog

import (
	"bytes"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"

	"dalmatiner/internal/model/term"
)

// message is what was found in one message. Its slices are part of the input, but for text of
// parameters with escapes.
type message struct {
	time     time.Time // zero where the message has none, or one too far ahead
	sent     time.Time // the time of the message where it is too far ahead
	priority int       // facility × 8 + severity; -1 where the message has none
	host     []byte    // empty where the message has none, as are the next five
	app      []byte
	pid      []byte
	id       []byte
	sequence []byte    // digits of the number that the sender gave the message
	uptime   []byte    // time since the start of the sender, as it wrote it
	elements []element // of structured data
	text     []byte    // everything behind what was understood
}

// element is one element of structured data.
type element struct {
	id     []byte
	params []param
}

type param struct{ name, value []byte }

// clock says how times are read: what they lack, and how far ahead they may be.
type clock struct {
	now       time.Time
	zone      *time.Location
	maxFuture time.Duration
}

// parse reads a message of either format. Whatever it does not understand is text: nothing of the
// text is dropped but the blanks at its end. A line of a log is worth more than its time: one
// that is too far ahead to be stored gives way to the time of arrival.
func parse(src []byte, c clock) message {
	m := parseForm(bytes.TrimRight(src, "\r\n\x00 "), c)
	if m.time.After(c.now.Add(c.maxFuture)) {
		m.sent, m.time = m.time, time.Time{}
	}
	return m
}

// parseForm reads a message whose end is trimmed.
func parseForm(src []byte, c clock) message {
	m := message{priority: -1}
	rest, ok := m.parsePriority(src)
	if !ok {
		m.text = src
		return m
	}
	if after, ok := bytes.CutPrefix(rest, []byte("1 ")); ok {
		modern := message{priority: m.priority}
		if modern.parseModern(after) {
			return modern
		}
		m.text = rest
		return m
	}
	m.parseBSD(rest, c)
	return m
}

// parsePriority takes <0> to <191> off the front.
func (m *message) parsePriority(src []byte) (rest []byte, ok bool) {
	const most = 191
	if len(src) == 0 || src[0] != '<' {
		return src, false
	}
	n, digits := 0, 0
	for digits < 3 && 1+digits < len(src) && isDigit(src[1+digits]) {
		n = 10*n + int(src[1+digits]-'0')
		digits++
	}
	if end := 1 + digits; digits == 0 || n > most || end >= len(src) || src[end] != '>' {
		return src, false
	}
	m.priority = n
	return src[2+digits:], true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// cutWord returns what stands before the next blank, and what behind it.
func cutWord(src []byte) (word, rest []byte) {
	word, rest, _ = bytes.Cut(src, []byte(" "))
	return word, rest
}

// levels are the names of the severities.
var levels = [8]string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}

// appendTerm appends the event of a message (DESIGN.md). from is the address of the sender.
func (m *message) appendTerm(dst []byte, from netip.Addr) []byte {
	dst, mark := term.BeginMap(term.Begin(dst))
	keys := 0
	text := func(key string, value []byte) {
		if len(value) > 0 {
			dst = term.AppendText(term.AppendText(dst, key), value)
			keys++
		}
	}
	if m.priority >= 0 {
		severity := m.priority % 8
		dst = term.AppendInt(term.AppendText(dst, "facility"), int64(m.priority/8))
		dst = term.AppendInt(term.AppendText(dst, "severity"), int64(severity))
		dst = term.AppendText(term.AppendText(dst, "level"), levels[severity])
		keys += 3
	}
	text("host", m.host)
	text("app", m.app)
	text("pid", m.pid)
	text("msgid", m.id)
	if len(m.sequence) > 0 {
		n, _ := strconv.ParseInt(string(m.sequence), 10, 64) // isCounter
		dst = term.AppendInt(term.AppendText(dst, "sequence"), n)
		keys++
	}
	text("uptime", m.uptime)
	if len(m.elements) > 0 {
		dst = appendElements(term.AppendText(dst, "data"), m.elements)
		keys++
	}
	if !m.sent.IsZero() {
		text("sent", []byte(m.sent.UTC().Format(time.RFC3339Nano)))
	}
	if from.IsValid() {
		text("from", []byte(from.Unmap().WithZone("").String()))
	}
	dst = term.AppendText(term.AppendText(dst, "message"), m.text)
	keys++
	term.EndMap(dst, mark, keys)
	return dst
}

// appendElements appends structured data as a map of maps. A parameter that an element has more
// than once becomes a list, and so does an element that comes more than once.
func appendElements(dst []byte, list []element) []byte {
	ids, groups := group(len(list), func(i int) []byte { return list[i].id })
	dst, mark := term.BeginMap(dst)
	for i, id := range ids {
		dst = term.AppendText(dst, id)
		dst = appendGroup(dst, groups[i], func(dst []byte, i int) []byte {
			return appendParams(dst, list[i].params)
		})
	}
	term.EndMap(dst, mark, len(ids))
	return dst
}

func appendParams(dst []byte, list []param) []byte {
	names, groups := group(len(list), func(i int) []byte { return list[i].name })
	dst, mark := term.BeginMap(dst)
	for i, name := range names {
		dst = term.AppendText(dst, name)
		dst = appendGroup(dst, groups[i], func(dst []byte, i int) []byte {
			return term.AppendText(dst, list[i].value)
		})
	}
	term.EndMap(dst, mark, len(names))
	return dst
}

// group returns the distinct names of n things in the order in which they come first, and which
// things have each of them.
func group(n int, name func(i int) []byte) (names [][]byte, members [][]int) {
	at := make(map[string]int, n)
	for i := range n {
		k, ok := at[string(name(i))]
		if !ok {
			k = len(names)
			at[string(name(i))] = k
			names, members = append(names, name(i)), append(members, nil)
		}
		members[k] = append(members[k], i)
	}
	return names, members
}

func appendGroup(dst []byte, members []int, one func([]byte, int) []byte) []byte {
	if len(members) == 1 {
		return one(dst, members[0])
	}
	dst, mark := term.BeginList(dst)
	for _, i := range members {
		dst = one(dst, i)
	}
	return term.EndList(dst, mark, len(members))
}

// storable reports whether events can have that time.
func storable(t time.Time) bool {
	return t.Unix() > 0 && t.Year() < 2262
}

// printable reports whether a word can be a name of a host or an application.
func printable(word []byte) bool {
	for _, c := range word {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return len(word) > 0 && utf8.Valid(word)
}
