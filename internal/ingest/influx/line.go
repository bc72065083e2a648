package influx

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/labels"
)

// Why a line is none, in the words of InfluxDB where it has some.
var (
	errMeasurement = errors.New("missing measurement")
	errTag         = errors.New("missing tag key or value")
	errFields      = errors.New("missing fields")
	errField       = errors.New("missing field key or value")
	errValue       = errors.New("invalid field value")
	errString      = errors.New("unbalanced quotes")
	errTime        = errors.New("bad timestamp")
)

// field is one field of a line.
type field struct {
	name []byte
	word uint64
	text bool // a string: it has no word
}

// line is a line in its parts. Its slices are valid until the next parse.
type line struct {
	measurement []byte
	tags        []labels.Label
	fields      []field
	time        int64 // in the unit of the request
	timed       bool

	plain []byte // texts without their escapes
}

// parse reads one line, which has no newline at its end, in the form of
// docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol.
func (l *line) parse(src []byte) error {
	l.tags, l.fields, l.plain, l.timed = l.tags[:0], l.fields[:0], l.plain[:0], false
	var end byte
	l.measurement, src, end = l.text(src, ", ")
	if len(l.measurement) == 0 {
		return errMeasurement
	}
	for end == ',' {
		var t labels.Label
		if t.Name, src, end = l.text(src, ",= "); end != '=' || len(t.Name) == 0 {
			return errTag
		}
		if t.Value, src, end = l.text(src, ",= "); end == '=' || len(t.Value) == 0 {
			return errTag
		}
		l.tags = append(l.tags, t)
	}
	if end != ' ' {
		return errFields
	}
	src = bytes.TrimLeft(src, " ")
	if len(src) == 0 {
		return errFields
	}
	for more := true; more; {
		var err error
		if src, more, err = l.field(src); err != nil {
			return err
		}
	}
	return l.timestamp(src)
}

// text cuts a name or a value off, up to the first of some bytes that no backslash stands before.
// end is that byte, 0 at the end of the line. A backslash stands for itself where what follows
// needs none.
func (l *line) text(src []byte, stops string) (text, rest []byte, end byte) {
	from, escaped := len(l.plain), false
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case c == '\\' && i+1 < len(src) && (src[i+1] == ',' || src[i+1] == ' ' || src[i+1] == '='):
			if !escaped {
				l.plain, escaped = append(l.plain, src[:i]...), true
			}
			i++
			c = src[i]
		case bytes.IndexByte([]byte(stops), c) >= 0:
			if escaped {
				return l.plain[from:len(l.plain):len(l.plain)], src[i+1:], c
			}
			return src[:i:i], src[i+1:], c
		}
		if escaped {
			l.plain = append(l.plain, c)
		}
	}
	if escaped {
		return l.plain[from:len(l.plain):len(l.plain)], nil, 0
	}
	return src, nil, 0
}

// field reads a field. more says that another one follows.
func (l *line) field(src []byte) (rest []byte, more bool, err error) {
	var f field
	var end byte
	if f.name, src, end = l.text(src, ",= "); end != '=' || len(f.name) == 0 || len(src) == 0 {
		return nil, false, errField
	}
	if src[0] == '"' {
		n := stringLength(src)
		if n < 0 {
			return nil, false, errString
		}
		f.text, src = true, src[n:]
		if len(src) > 0 && src[0] != ',' && src[0] != ' ' {
			return nil, false, errValue
		}
	} else {
		n := bytes.IndexAny(src, ", ")
		if n < 0 {
			n = len(src)
		}
		ok := false
		if f.word, ok = value(src[:n]); !ok {
			return nil, false, errValue
		}
		src = src[n:]
	}
	l.fields = append(l.fields, f)
	if len(src) > 0 && src[0] == ',' {
		return src[1:], true, nil
	}
	return src, false, nil
}

// stringLength returns how many bytes a string in quotes has, or -1 where it does not end.
func stringLength(src []byte) int {
	for i := 1; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// value reads a number or a boolean.
func value(text []byte) (word uint64, ok bool) {
	switch string(text) {
	case "t", "T", "true", "True", "TRUE":
		return acked.Word(1), true
	case "f", "F", "false", "False", "FALSE":
		return acked.Word(0), true
	case "":
		return 0, false
	}
	switch n := len(text) - 1; text[n] {
	case 'i':
		v, err := strconv.ParseInt(string(text[:n]), 10, 64)
		return point.FromInt(v), err == nil
	case 'u':
		v, err := strconv.ParseUint(string(text[:n]), 10, 64)
		if v > math.MaxInt64 {
			return acked.Word(float64(v)), err == nil
		}
		return point.FromInt(int64(v)), err == nil
	}
	for _, c := range text { // of what Go takes: no hexadecimal, no underscores, no names
		if c-'0' > 9 && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return acked.Word(v), err == nil
}

// timestamp reads what stands behind the fields.
func (l *line) timestamp(src []byte) error {
	text := bytes.Trim(src, " \r")
	if len(text) == 0 {
		return nil
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return errTime
	}
	l.time, l.timed = v, true
	return nil
}

// next cuts the first line off. A newline within a string in quotes belongs to it; in front of
// the fields a quote is a byte like others.
func next(src []byte) (first, rest []byte) {
	n := bytes.IndexByte(src, '\n')
	if n < 0 {
		return src, nil
	}
	if bytes.IndexByte(src[:n], '"') < 0 {
		return src[:n], src[n+1:]
	}
	inFields, inString := false, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\\':
			i++
		case c == '\n' && !inString:
			return src[:i], src[i+1:]
		case c == ' ' && !inString:
			inFields = true
		case c == '"' && inFields && (inString || src[i-1] == '='):
			inString = !inString
		}
	}
	if inString { // it does not end: the next line may be good
		return src[:n], src[n+1:]
	}
	return src, nil
}
