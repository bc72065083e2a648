package opentsdb

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"dalmatiner/internal/ingest/labels"
)

// scanner reads JSON (RFC 8259) from a body, without making values of it.
type scanner struct {
	src  []byte
	at   int
	text []byte // of strings with escapes, of one point
}

// maxDepth is how deep values may be nested that are passed over.
const maxDepth = 64

func (s *scanner) fail(format string, args ...any) error {
	return &SyntaxError{At: s.at, Why: fmt.Sprintf(format, args...)}
}

func (s *scanner) space() {
	for s.at < len(s.src) && s.src[s.at] <= ' ' {
		switch s.src[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// skip passes over a byte behind blanks, if it is there.
func (s *scanner) skip(c byte) bool {
	if s.at < len(s.src) && s.src[s.at] == c { // most bodies have no blanks
		s.at++
		return true
	}
	s.space()
	if s.at < len(s.src) && s.src[s.at] == c {
		s.at++
		return true
	}
	return false
}

// expect is skip of a byte that must be there.
func (s *scanner) expect(c byte) error {
	if s.skip(c) {
		return nil
	}
	if s.at == len(s.src) {
		return s.fail("the body ends, want %q", c)
	}
	return s.fail("is %q, want %q", s.src[s.at], c)
}

// end is the error of a body that goes on.
func (s *scanner) end() error {
	if s.space(); s.at < len(s.src) {
		return s.fail("is %q, want the end", s.src[s.at])
	}
	return nil
}

// datapoint reads an object into d. bad says that a member has a wrong type; err is an error of the
// syntax.
func (s *scanner) datapoint(d *datapoint) (bad, err error) {
	d.metric, d.time, d.value, d.tags, s.text = nil, nil, nil, d.tags[:0], s.text[:0]
	bad, err = s.members(func(name []byte) (bad, err error) {
		switch string(name) {
		case "metric":
			d.metric, bad, err = s.scalar(true)
		case "timestamp":
			d.time, bad, err = s.scalar(false)
		case "value":
			d.value, bad, err = s.scalar(false)
		case "tags":
			d.tags = d.tags[:0]
			bad, err = s.tags(d)
		default:
			_, _, err = s.value(0)
		}
		return bad, err
	})
	return bad, err
}

// members calls take behind the name of each member of an object. bad is the first one of take,
// or says that there is another value in place of the object.
func (s *scanner) members(take func(name []byte) (bad, err error)) (bad, err error) {
	if s.space(); s.at < len(s.src) && s.src[s.at] != '{' {
		if _, _, err = s.value(0); err != nil {
			return nil, err
		}
		return errType, nil
	}
	if err = s.expect('{'); err != nil || s.skip('}') {
		return nil, err
	}
	for {
		name, err := s.string()
		if err == nil {
			err = s.expect(':')
		}
		if err != nil {
			return nil, err
		}
		why, err := take(name)
		if err != nil {
			return nil, err
		}
		if bad == nil {
			bad = why
		}
		if s.skip('}') {
			return bad, nil
		}
		if err := s.expect(','); err != nil {
			return nil, err
		}
	}
}

// tags reads an object of texts; null is one without any.
func (s *scanner) tags(d *datapoint) (bad, err error) {
	if s.space(); bytes.HasPrefix(s.src[s.at:], []byte("null")) {
		_, _, err = s.value(0)
		return nil, err
	}
	return s.members(func(name []byte) (bad, err error) {
		l := labels.Label{Name: name}
		if l.Value, bad, err = s.scalar(false); err == nil && len(l.Value) == 0 || len(name) == 0 {
			bad = errTag
		}
		d.tags = append(d.tags, l)
		return bad, err
	})
}

// scalar reads a text, or a number unless only a text will do. null is an empty one.
func (s *scanner) scalar(text bool) (value []byte, bad, err error) {
	value, kind, err := s.value(0)
	switch {
	case err != nil:
		return nil, nil, err
	case kind == 'n':
		return nil, nil, nil
	case kind == '"', kind == '0' && !text:
		return value, nil, nil
	}
	return nil, errType, nil
}

// value reads any value. kind is " for a text, 0 for a number, and the first byte of any other;
// value is that of the first two.
func (s *scanner) value(depth int) (value []byte, kind byte, err error) {
	if s.space(); s.at == len(s.src) {
		return nil, 0, s.fail("the body ends, want a value")
	}
	switch c := s.src[s.at]; c {
	case '"':
		value, err = s.string()
		return value, c, err
	case '{', '[':
		return nil, c, s.nested(depth, c)
	case 't':
		return nil, c, s.word("true")
	case 'f':
		return nil, c, s.word("false")
	case 'n':
		return nil, c, s.word("null")
	}
	from := s.at
	for s.at < len(s.src) && isNumeric(s.src[s.at]) {
		s.at++
	}
	if s.at == from {
		return nil, 0, s.fail("is %q, want a value", s.src[s.at])
	}
	return s.src[from:s.at], '0', nil
}

func isNumeric(c byte) bool {
	return c-'0' <= 9 || c == '-' || c == '.' || c == 'e' || c == 'E' || c == '+'
}

func (s *scanner) word(text string) error {
	if !bytes.HasPrefix(s.src[s.at:], []byte(text)) {
		return s.fail("is %q, want a value", s.src[s.at])
	}
	s.at += len(text)
	return nil
}

// nested passes over a list or an object.
func (s *scanner) nested(depth int, open byte) error {
	if depth == maxDepth {
		return s.fail("values are nested deeper than %d", maxDepth)
	}
	s.at++
	closing := open + 2 // in ASCII
	if s.skip(closing) {
		return nil
	}
	for {
		if open == '{' {
			s.space()
			if _, err := s.string(); err != nil {
				return err
			}
			if err := s.expect(':'); err != nil {
				return err
			}
		}
		if _, _, err := s.value(depth + 1); err != nil {
			return err
		}
		if s.skip(closing) {
			return nil
		}
		if err := s.expect(','); err != nil {
			return err
		}
	}
}

// string reads a text. It is part of the body, or of s.text where it has escapes.
func (s *scanner) string() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	for i, c := range s.src[s.at:] {
		if c == '"' {
			text := s.src[s.at : s.at+i : s.at+i]
			s.at += i + 1
			return text, nil
		}
		if c == '\\' {
			return s.escaped()
		}
	}
	s.at = len(s.src)
	return nil, s.fail("the body ends within a text")
}

// escapes are the bytes that stand behind a backslash, and what each means.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n',
	'r': '\r', 't': '\t'}

// escaped reads the rest of a text with escapes.
func (s *scanner) escaped() ([]byte, error) {
	from := len(s.text)
	for s.at < len(s.src) {
		c := s.src[s.at]
		s.at++
		switch {
		case c == '"':
			return s.text[from:len(s.text):len(s.text)], nil
		case c != '\\':
			s.text = append(s.text, c)
		case s.at < len(s.src) && s.src[s.at] == 'u':
			r, ok := s.unicode()
			if !ok {
				return nil, s.fail(`is no escape, want \u and four hexadecimal digits`)
			}
			s.text = utf8.AppendRune(s.text, r)
		case s.at < len(s.src) && escapes[s.src[s.at]] != 0:
			s.text = append(s.text, escapes[s.src[s.at]])
			s.at++
		default:
			return nil, s.fail("is no escape")
		}
	}
	return nil, s.fail("the body ends within a text")
}

// unicode reads uXXXX behind a backslash, or two of them where they are a pair. Half a pair is
// U+FFFD.
func (s *scanner) unicode() (rune, bool) {
	r, ok := s.hex()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	before := s.at
	if bytes.HasPrefix(s.src[s.at:], []byte(`\u`)) {
		s.at++
		if low, ok := s.hex(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, true
			}
		}
		s.at = before
	}
	return utf8.RuneError, true
}

// hex reads uXXXX.
func (s *scanner) hex() (rune, bool) {
	const size = 5
	if len(s.src)-s.at < size {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s.src[s.at+1:s.at+size]), 16, 16)
	if err != nil {
		return 0, false
	}
	s.at += size
	return rune(n), true
}
