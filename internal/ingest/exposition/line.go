package exposition

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/labels"
)

// Format is a form of exposition text.
type Format uint8

// The forms. They differ in the unit of times.
const (
	Text        Format = iota // Prometheus' 0.0.4 and 1.0.0: ms
	OpenMetrics               // 1.0: seconds with a fraction
)

// Why a line is none.
var (
	errName     = errors.New("a metric without a name, or with a name that needs quotes")
	errNames    = errors.New("a metric with two names")
	errLabel    = errors.New("a label that is not name=\"value\"")
	errQuotes   = errors.New("a text in quotes that does not end")
	errValue    = errors.New("no value, or one that is no number")
	errTime     = errors.New("a time that is no number")
	errNegative = errors.New("a time before 1970, or beyond 2262")
	errRest     = errors.New("there is more behind the sample")
)

// sample is a line in its parts. Its slices are valid until the next parse.
type sample struct {
	name     []byte
	list     []labels.Label
	word     uint64
	ns       int64 // since 1970
	timed    bool  // ns is set
	exemplar bool

	plain []byte // texts without their escapes
}

// parse reads one line that is neither empty nor a comment. It has no newline at its end, and no
// blanks around it. The forms are those of prometheus.io/docs/instrumenting/exposition_formats,
// with names in quotes, and of github.com/prometheus/OpenMetrics. An exemplar is looked at as
// little as any other comment behind a sample.
func (s *sample) parse(src []byte, f Format) error {
	*s = sample{list: s.list[:0], plain: s.plain[:0]}
	n := nameLength(src)
	s.name, src = src[:n], skip(src[n:])
	if len(src) > 0 && src[0] == '{' {
		var err error
		if src, err = s.labelSet(skip(src[1:])); err != nil {
			return err
		}
	}
	if len(s.name) == 0 {
		return errName
	}
	text, src := word(src)
	var ok bool
	if s.word, ok = value(text); !ok {
		return errValue
	}
	if len(src) > 0 && src[0] != '#' {
		text, src = word(src)
		if err := s.time(text, f); err != nil {
			return err
		}
	}
	if s.exemplar = len(src) > 0; s.exemplar && src[0] != '#' {
		return errRest
	}
	return nil
}

// labelSet reads what stands within braces, and returns what stands behind them. A text in quotes
// without a value is the name of the metric.
func (s *sample) labelSet(src []byte) (rest []byte, err error) {
	for {
		if len(src) == 0 {
			return nil, errLabel
		}
		if src[0] == '}' {
			return skip(src[1:]), nil
		}
		quoted := src[0] == '"'
		var name []byte
		if quoted {
			name, src, err = s.quoted(src[1:])
			if err != nil {
				return nil, err
			}
		} else {
			n := nameLength(src)
			name, src = src[:n], src[n:]
		}
		src = skip(src)
		switch {
		case len(src) > 0 && src[0] == '=':
			if src, err = s.pair(name, skip(src[1:])); err != nil {
				return nil, err
			}
		case !quoted:
			return nil, errLabel
		case len(s.name) > 0:
			return nil, errNames
		default:
			s.name = name
		}
		if src = skip(src); len(src) > 0 && src[0] == ',' {
			src = skip(src[1:])
		} else if len(src) > 0 && src[0] != '}' {
			return nil, errLabel
		}
	}
}

// pair reads the value of a label.
func (s *sample) pair(name, src []byte) (rest []byte, err error) {
	if len(src) == 0 || src[0] != '"' || len(name) == 0 {
		return nil, errLabel
	}
	text, rest, err := s.quoted(src[1:])
	switch {
	case err != nil:
		return nil, err
	case string(name) != "__name__":
		s.list = append(s.list, labels.Label{Name: name, Value: text})
	case len(s.name) > 0:
		return nil, errNames
	default:
		s.name = text
	}
	return rest, nil
}

// quoted reads a text behind its first quote. \n, \" and \\ are escapes; any other backslash
// stands for itself.
func (s *sample) quoted(src []byte) (text, rest []byte, err error) {
	end := bytes.IndexByte(src, '"')
	if end < 0 {
		return nil, nil, errQuotes
	}
	if bytes.IndexByte(src[:end], '\\') < 0 {
		return src[:end:end], src[end+1:], nil
	}
	from := len(s.plain)
	for i := 0; i < len(src); i++ {
		c := src[i]
		if c == '"' {
			return s.plain[from:len(s.plain):len(s.plain)], src[i+1:], nil
		}
		if c == '\\' && i+1 < len(src) {
			switch src[i+1] {
			case 'n':
				i, c = i+1, '\n'
			case '"', '\\':
				i++
				c = src[i]
			}
		}
		s.plain = append(s.plain, c)
	}
	return nil, nil, errQuotes
}

// time reads the time of a sample.
func (s *sample) time(text []byte, f Format) error {
	s.timed = true
	if f == OpenMetrics {
		var err error
		s.ns, err = seconds(text)
		return err
	}
	ms, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return errTime
	}
	if ms < 0 || ms > math.MaxInt64/1_000_000 {
		return errNegative
	}
	s.ns = ms * 1e6
	return nil
}

// seconds reads a time in seconds, and returns it in ns. Nanoseconds are exact, which they would
// not be in a double.
func seconds(text []byte) (ns int64, err error) {
	whole, fraction, _ := bytes.Cut(text, []byte{'.'})
	v, err := strconv.ParseUint(string(whole), 10, 63)
	scale := int64(1e8)
	for _, c := range fraction {
		if c-'0' > 9 {
			err = errTime // 1.5e9
			break
		}
		ns += int64(c-'0') * scale
		scale /= 10
	}
	if err != nil {
		f, ok := float(text)
		if !ok || math.IsNaN(f) {
			return 0, errTime
		}
		if f < 0 || f >= math.MaxInt64/1_000_000_000 {
			return 0, errNegative
		}
		return int64(math.Round(f*1e3)) * 1e6, nil
	}
	if v >= math.MaxInt64/1_000_000_000 {
		return 0, errNegative
	}
	return int64(v)*1e9 + ns, nil
}

// value reads a number. Most are short integers.
func value(text []byte) (word uint64, ok bool) {
	const short = 15
	if n := len(text); n > 0 && n <= short {
		v, i := int64(0), 0
		for i < n && text[i]-'0' <= 9 {
			v = v*10 + int64(text[i]-'0')
			i++
		}
		if i == n {
			return acked.Word(float64(v)), true
		}
	}
	v, ok := float(text)
	return acked.Word(v), ok
}

// float reads a double: of what Go takes no hexadecimal and no underscores.
func float(text []byte) (v float64, ok bool) {
	if bytes.ContainsAny(text, "xXpP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

// nameLength returns how many bytes at the front are a name that needs no quotes.
func nameLength(src []byte) int {
	for i, c := range src {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':'
		if !letter && (i == 0 || c-'0' > 9) {
			return i
		}
	}
	return len(src)
}

// word cuts the text up to the next blank off, and the blanks.
func word(src []byte) (text, rest []byte) {
	for i, c := range src {
		if c == ' ' || c == '\t' {
			return src[:i], skip(src[i:])
		}
	}
	return src, nil
}

// skip cuts blanks off the front.
func skip(src []byte) []byte {
	for len(src) > 0 && (src[0] == ' ' || src[0] == '\t') {
		src = src[1:]
	}
	return src
}
