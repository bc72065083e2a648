package statsd

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"dalmatiner/internal/ingest/labels"
)

// kind is what becomes of the values of a series in an interval.
type kind uint8

const (
	counter kind = iota // their sum
	gauge               // the last one
	timing              // how they are distributed
	set                 // how many different ones there are
)

// sample is a line: one or more values of a series. Its slices are valid until the next parse,
// and while the line is.
type sample struct {
	name   []byte
	kind   kind
	values []byte // between colons, of a set one
	rate   rate
	tags   []labels.Label // sorted
	timed  bool           // the values are of a time, and not of the interval
	time   int64          // ns

	merged []byte // values of tags that occur more than once
}

// rate is how many values each value of a sample stands for.
type rate struct {
	times int64   // 0 where it is not a whole number
	each  float64 // the same as a double
}

// Why a line is none.
var (
	errName   = errors.New("no name in front of a colon")
	errType   = errors.New("no type that is known, want c, g, ms, h, d or s")
	errRate   = errors.New("no rate of sampling above 0 and up to 1")
	errTime   = errors.New("no time in seconds, or of something else than a counter or an absolute gauge")
	errTags   = errors.New("a tag without a name")
	errEvent  = errors.New("no event of DogStatsD")
	errStatus = errors.New("no service check of DogStatsD")
)

// parse reads a line that is neither an event nor a service check, in the forms of
// github.com/statsd/statsd/blob/master/docs/metric_types.md and
// docs.datadoghq.com/developers/dogstatsd/datagram_shell. The values are not read.
func (m *sample) parse(line []byte) error {
	m.tags, m.merged, m.rate, m.timed = m.tags[:0], m.merged[:0], rate{1, 1}, false
	i := bytes.IndexByte(line, ':')
	if i <= 0 {
		return errName
	}
	m.name = line[:i]
	values, rest, _ := bytes.Cut(line[i+1:], bar)
	m.values = values
	section, rest, more := bytes.Cut(rest, bar)
	var ok bool
	if m.kind, ok = kindOf(section); !ok {
		return errType
	}
	for more {
		section, rest, more = bytes.Cut(rest, bar)
		if len(section) == 0 {
			continue
		}
		if err := m.section(section); err != nil {
			return err
		}
	}
	if m.timed && (m.kind > gauge || m.kind == gauge && isRelative(m.values)) {
		return errTime
	}
	return nil
}

var bar = []byte{'|'}

func kindOf(text []byte) (kind, bool) {
	switch string(text) {
	case "c":
		return counter, true
	case "g":
		return gauge, true
	case "ms", "h", "d":
		return timing, true
	case "s":
		return set, true
	}
	return 0, false
}

// section reads what stands behind the type. Anything unknown says nothing about the value: the
// id of a container (c:) and external data (e:) among it.
func (m *sample) section(text []byte) (err error) {
	switch text[0] {
	case '@':
		m.rate, err = parseRate(text[1:])
	case '#':
		err = m.parseTags(text[1:])
	case 'T':
		seconds, err := strconv.ParseInt(string(text[1:]), 10, 64)
		if err != nil || seconds <= 0 || seconds > math.MaxInt64/int64(time.Second) {
			return errTime
		}
		m.timed, m.time = true, seconds*int64(time.Second)
	}
	return err
}

// parseRate reads a rate of sampling. One whose inverse is whole but for the rounding of its
// decimals, such as 0.1, counts as that whole number.
func parseRate(text []byte) (rate, error) {
	const rounding = 1e-9
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v > 1e-9 && v <= 1) {
		return rate{}, errRate
	}
	inverse := 1 / v
	if whole := math.Round(inverse); math.Abs(whole-inverse) <= rounding*inverse {
		return rate{int64(whole), whole}, nil
	}
	return rate{0, inverse}, nil
}

// parseTags reads tags name:value between commas. One without a value has the value true. One that
// occurs with several values has all of them, sorted, with commas between them.
func (m *sample) parseTags(text []byte) error {
	for more := true; more; {
		var tag []byte
		tag, text, more = bytes.Cut(text, []byte{','})
		if len(tag) == 0 {
			continue
		}
		name, value, found := bytes.Cut(tag, []byte{':'})
		if !found {
			value = []byte("true")
		}
		if len(name) == 0 {
			return errTags
		}
		m.tags = append(m.tags, labels.Label{Name: name, Value: value})
	}
	var ok bool
	if m.tags, ok = labels.Sort(m.tags); !ok {
		m.mergeTags()
	}
	return nil
}

// mergeTags makes tags of one name one tag.
func (m *sample) mergeTags() {
	slices.SortFunc(m.tags, func(a, b labels.Label) int {
		if c := bytes.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return bytes.Compare(a.Value, b.Value)
	})
	out := m.tags[:1]
	for _, l := range m.tags[1:] {
		last := &out[len(out)-1]
		if !bytes.Equal(l.Name, last.Name) {
			out = append(out, l)
			continue
		}
		if bytes.Equal(l.Value, last.Value) ||
			bytes.HasSuffix(last.Value, append([]byte{','}, l.Value...)) {
			continue
		}
		from := len(m.merged)
		m.merged = append(append(append(m.merged, last.Value...), ','), l.Value...)
		last.Value = m.merged[from:len(m.merged):len(m.merged)]
	}
	m.tags = out
}

// isRelative reports whether a value of a gauge changes the one before.
func isRelative(value []byte) bool { return len(value) > 0 && (value[0] == '+' || value[0] == '-') }

// number is a value: an integer, or else a double.
type number struct {
	whole   int64
	float   float64
	isWhole bool
}

// parseNumber reads a number. What only Go takes for one is none.
func parseNumber(text []byte) (number, bool) {
	const mostDigits = 18 // that fit 64 bits
	digits, sign := text, int64(1)
	if len(text) > 1 && (text[0] == '-' || text[0] == '+') {
		if digits = text[1:]; text[0] == '-' {
			sign = -1
		}
	}
	n, whole := int64(0), len(digits) > 0 && len(digits) <= mostDigits
	for _, c := range digits {
		switch {
		case c-'0' <= 9:
			n = 10*n + int64(c-'0')
		case c == '.', c == 'e', c == 'E', c == '-', c == '+':
			whole = false
		default:
			return number{}, false
		}
	}
	if whole {
		return number{sign * n, float64(sign * n), true}, true
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return number{0, v, false}, err == nil
}

// eachValue calls use for each value of a sample, which has one at least. All of them are numbers,
// or it is called for none.
func (m *sample) eachValue(use func(text []byte, n number)) bool {
	for rest, more := m.values, true; more; {
		var text []byte
		text, rest, more = bytes.Cut(rest, colon)
		if _, ok := parseNumber(text); !ok {
			return false
		}
	}
	for rest, more := m.values, true; more; {
		var text []byte
		text, rest, more = bytes.Cut(rest, colon)
		n, _ := parseNumber(text)
		use(text, n)
	}
	return true
}

var colon = []byte{':'}

// parts returns the parts of a name, which dots divide, and room for one more.
func parts(name []byte) [][]byte {
	return append(bytes.Split(name, []byte{'.'}), nil)
}
