package syslog

import (
	"bytes"
	"time"
)

// parseModern reads what RFC 5424 has behind the version: time, host, application, process, id,
// structured data and text. It reports whether all of it was there.
func (m *message) parseModern(src []byte) bool {
	when, src := cutWord(src)
	if string(when) != "-" {
		t, err := time.Parse(time.RFC3339Nano, string(when))
		if err != nil || !storable(t) {
			return false
		}
		m.time = t
	}
	for _, field := range []*[]byte{&m.host, &m.app, &m.pid, &m.id} {
		var word []byte
		word, src = cutWord(src)
		if !printable(word) {
			return false
		}
		if string(word) != "-" {
			*field = word
		}
	}
	src, ok := m.parseData(src)
	if !ok {
		return false
	}
	if len(src) > 0 && src[0] != ' ' {
		return false
	}
	src = bytes.TrimPrefix(src, []byte(" "))
	m.text = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")) // the mark of UTF-8
	return true
}

// parseData takes the structured data off the front.
func (m *message) parseData(src []byte) (rest []byte, ok bool) {
	if len(src) > 0 && src[0] == '-' {
		return src[1:], true
	}
	for len(src) > 0 && src[0] == '[' {
		var e element
		e, src, ok = parseElement(src[1:])
		if !ok {
			return nil, false
		}
		m.elements = append(m.elements, e)
	}
	return src, len(m.elements) > 0
}

// parseElement reads an element behind its opening bracket.
func parseElement(src []byte) (e element, rest []byte, ok bool) {
	end := bytes.IndexAny(src, " ]")
	if end <= 0 || !printable(src[:end]) {
		return e, nil, false
	}
	e.id, src = src[:end], src[end:]
	for {
		src = bytes.TrimLeft(src, " ")
		if len(src) > 0 && src[0] == ']' {
			return e, src[1:], true
		}
		name, behind, found := bytes.Cut(src, []byte(`="`))
		if !found || !printable(name) || bytes.ContainsAny(name, `]"=`) {
			return e, nil, false
		}
		var value []byte
		if value, src, ok = parseValue(behind); !ok {
			return e, nil, false
		}
		e.params = append(e.params, param{name, value})
	}
}

// parseValue reads a value behind its opening quote. A backslash stands before ", \ and ], and
// for itself elsewhere.
func parseValue(src []byte) (value, rest []byte, ok bool) {
	end := bytes.IndexAny(src, `"\`)
	if end >= 0 && src[end] == '"' {
		return src[:end], src[end+1:], true
	}
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '"':
			return value, src[i+1:], true
		case c == '\\' && i+1 < len(src) && (src[i+1] == '"' || src[i+1] == '\\' || src[i+1] == ']'):
			i++
			value = append(value, src[i])
		default:
			value = append(value, c)
		}
	}
	return nil, nil, false
}
