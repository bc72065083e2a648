package exposition

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/acked"
)

// show returns what a line was read as.
func (s *sample) show() string {
	text := fmt.Sprintf("%q", s.name)
	for _, l := range s.list {
		text += fmt.Sprintf(" %q=%q", l.Name, l.Value)
	}
	if s.timed {
		text += fmt.Sprintf(" at %d", s.ns)
	}
	if s.exemplar {
		text += " #"
	}
	return text
}

// The lines are those of the examples of both specifications, and what senders make of them.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		line string
		f    Format
		want string
		word uint64
	}{
		{`http_requests_total{method="post",code="200"} 1027 1395066363000`, Text,
			`"http_requests_total" "method"="post" "code"="200" at 1395066363000000000`, point.FromInt(1027)},
		{`msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9`, Text,
			`"msdos_file_access_time_seconds" "path"="C:\\DIR\\FILE.TXT" ` +
				`"error"="Cannot find file:\n\"FILE.TXT\""`, point.FromInt(1458255915)},
		{"metric_without_timestamp_and_labels 12.47", Text, `"metric_without_timestamp_and_labels"`,
			point.FromFloat(12.47)},
		{`something_weird{problem="division by zero"} +Inf 3982045`, Text,
			`"something_weird" "problem"="division by zero" at 3982045000000`,
			acked.Word(math.Inf(1))},
		{"down -Inf", Text, `"down"`, acked.Word(math.Inf(-1))},
		{"none NaN", Text, `"none"`, acked.Word(math.NaN())},
		{"minus -0", Text, `"minus"`, acked.Word(math.Copysign(0, -1))},
		{"small 1e-7", Text, `"small"`, point.FromFloat(1e-7)},
		{"huge 1e999", Text, `"huge"`, acked.Word(math.Inf(1))},
		{"m \t { a = \"1\" , } \t 1 \t 2", Text, `"m" "a"="1" at 2000000`, point.FromInt(1)},
		{`m{a="\\\x"}1`, Text, `"m" "a"="\\\\x"`, point.FromInt(1)},
		{`m{} 1`, Text, `"m"`, point.FromInt(1)},
		{`{"my.dotted.metric", "label.ä"="x", b="y"} 1`, Text,
			`"my.dotted.metric" "label.ä"="x" "b"="y"`, point.FromInt(1)},
		{`{a="1","late\"name"} 1`, Text, `"late\"name" "a"="1"`, point.FromInt(1)},
		{`{__name__="m",a="1"} 1`, Text, `"m" "a"="1"`, point.FromInt(1)},
		{"foo_total 17.0 1520879607.789", OpenMetrics, `"foo_total" at 1520879607789000000`,
			point.FromInt(17)},
		{"foo 1 1520879607.123456789123", OpenMetrics, `"foo" at 1520879607123456789`, point.FromInt(1)},
		{"foo 1 1.520879607e9", OpenMetrics, `"foo" at 1520879607000000000`, point.FromInt(1)},
		{`foo_bucket{le="0.1"} 8 # {trace_id="a # b"} 0.054 1520879607.7`, OpenMetrics,
			`"foo_bucket" "le"="0.1" #`, point.FromInt(8)},
	} {
		var s sample
		if err := s.parse([]byte(c.line), c.f); err != nil || s.show() != c.want || s.word != c.word {
			t.Errorf("%s: %s, %x, %v, want %s, %x", c.line, s.show(), s.word, err, c.want, c.word)
		}
	}
}

func TestBadLines(t *testing.T) {
	for line, want := range map[string]error{
		"m": errValue, "m x": errValue, "m 0x1p2": errValue, "m 1_0": errValue, "m 1 x": errTime,
		"m 1 1.5": errTime, "m 1 -1": errNegative, "m 1 9223372036855": errNegative, "m 1 2 3": errRest,
		"1m 1": errName, "a.b 1": errValue, "{} 1": errName, `{"a","b"} 1`: errNames,
		`m{"b"} 1`: errNames, "m{a} 1": errLabel, "m{a=1} 1": errLabel, `m{a="1} 1`: errQuotes,
		`m{a="1" b="2"} 1`: errLabel, `m{="1"} 1`: errLabel, `m{a="1"`: errLabel, `m{a="\`: errQuotes,
		`m{a="1"}`: errValue, `m{a="\"`: errQuotes, "<html>": errName,
	} {
		var s sample
		if err := s.parse([]byte(line), Text); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", line, err, want)
		}
	}
	var s sample
	for line, want := range map[string]error{"m 1 x": errTime, "m 1 NaN": errTime,
		"m 1 -1": errNegative, "m 1 9223372036.9": errNegative, "m 1 1e30": errNegative,
		"m 1 9.2233720368546e9": errNegative} {
		if err := s.parse([]byte(line), OpenMetrics); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", line, err, want)
		}
	}
}

// FuzzParse: no line breaks the parser, and what it takes has a name.
func FuzzParse(f *testing.F) {
	for _, line := range []string{`m{a="1",} 1 2`, `{"a.b","c"="\n\\"} NaN`, `m 1 1.5 # {a="b"} 1`} {
		f.Add([]byte(line), true)
		f.Add([]byte(line), false)
	}
	var s sample
	f.Fuzz(func(t *testing.T, line []byte, open bool) {
		format := Text
		if open {
			format = OpenMetrics
		}
		if err := s.parse(line, format); err == nil && (len(s.name) == 0 || s.timed && s.ns < 0) {
			t.Errorf("%q is %s", line, s.show())
		}
	})
}
