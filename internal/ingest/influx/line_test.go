package influx

import (
	"fmt"
	"strings"
	"testing"

	"dalmatiner/internal/codec/point"
)

// shown prints a line in its parts, or why it is none.
func (l *line) shown(err error) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q", l.measurement)
	for _, t := range l.tags {
		fmt.Fprintf(&b, " %q:%q", t.Name, t.Value)
	}
	for _, f := range l.fields {
		switch {
		case f.text:
			fmt.Fprintf(&b, " %q=text", f.name)
		case point.KindOf(f.word) == point.KindInt:
			fmt.Fprintf(&b, " %q=%d", f.name, point.Int(f.word))
		default:
			fmt.Fprintf(&b, " %q=%gf", f.name, point.Float(f.word))
		}
	}
	if l.timed {
		fmt.Fprintf(&b, " @%d", l.time)
	}
	return b.String()
}

// The lines up to the first blank are examples of InfluxDB's own documentation.
func TestLines(t *testing.T) {
	var l line
	for _, c := range []struct{ src, want string }{
		{`myMeasurement,tag1=value1,tag2=value2 fieldKey="fieldValue" 1556813561098000000`,
			`"myMeasurement" "tag1":"value1" "tag2":"value2" "fieldKey"=text @1556813561098000000`},
		{`myMeasurement fieldKey=1.0`, `"myMeasurement" "fieldKey"=1`},
		{`myMeasurement fieldKey=-1.234456e+78`, `"myMeasurement" "fieldKey"=-1.234456e+78f`},
		{`myMeasurement fieldKey=12485903i`, `"myMeasurement" "fieldKey"=12485903`},
		{`myMeasurement fieldKey=12485903u`, `"myMeasurement" "fieldKey"=12485903`},
		{`myMeasurement fieldKey=true`, `"myMeasurement" "fieldKey"=1`},
		{`myMeasurement,tagKey=🍭 fieldKey="Launch 🚀" 1`,
			`"myMeasurement" "tagKey":"🍭" "fieldKey"=text @1`},
		{`my\ Measurement fieldKey="string value"`, `"my Measurement" "fieldKey"=text`},
		{`myMeasurement fieldKey="\"string\" within a string"`, `"myMeasurement" "fieldKey"=text`},
		{`myMeasurement,tag\ Key1=tag\ Value1,tag\ Key2=tag\ Value2 fieldKey=100`,
			`"myMeasurement" "tag Key1":"tag Value1" "tag Key2":"tag Value2" "fieldKey"=100`},
		{`myMeasurement,tagKey=tagValue fieldKey=1,other="a,b c=d",third=2i  7 `,
			`"myMeasurement" "tagKey":"tagValue" "fieldKey"=1 "other"=text "third"=2 @7`},

		{`a\,b,c\=d=e\,f g\=h=1 -5`, `"a,b" "c=d":"e,f" "g=h"=1 @-5`},
		{`a\b,c\d=e\f g\h=1`, `"a\\b" "c\\d":"e\\f" "g\\h"=1`},
		{`a=b,c=d e=1`, `"a=b" "c":"d" "e"=1`},
		{`a f=F,t=T,x=0.5`, `"a" "f"=0 "t"=1 "x"=0.5f`},
		{`a f=9223372036854775807i,u=18446744073709551615u`,
			`"a" "f"=9.223372036854776e+18f "u"=1.8446744073709552e+19f`},
		{`a f=.5,g=5.,h=+1`, `"a" "f"=0.5f "g"=5 "h"=1`},
		{"a f=1\r", "invalid field value"},
		{`a f=""`, `"a" "f"=text`},

		{`,a=b f=1`, errMeasurement.Error()},
		{` f=1`, errMeasurement.Error()},
		{`a`, errFields.Error()},
		{`a,b=c`, errFields.Error()},
		{`a `, errFields.Error()},
		{`a,b f=1`, errTag.Error()},
		{`a,=c f=1`, errTag.Error()},
		{`a,b= f=1`, errTag.Error()},
		{`a,b=c=d f=1`, errTag.Error()},
		{`a f`, errField.Error()},
		{`a f=`, errField.Error()},
		{`a =1`, errField.Error()},
		{`a f=1,`, errField.Error()},
		{`a f="x`, errString.Error()},
		{`a f="x"y`, errValue.Error()},
		{`a f=x`, errValue.Error()},
		{`a f=1x`, errValue.Error()},
		{`a f=i`, errValue.Error()},
		{`a f=1.5i`, errValue.Error()},
		{`a f=-1u`, errValue.Error()},
		{`a f=NaN`, errValue.Error()},
		{`a f=inf`, errValue.Error()},
		{`a f=0x10`, errValue.Error()},
		{`a f=1_0`, errValue.Error()},
		{`a f=1e999`, errValue.Error()},
		{`a f=9223372036854775808i`, errValue.Error()},
		{`a f=1 x`, errTime.Error()},
		{`a f=1 1.5`, errTime.Error()},
		{`a f=1 1 2`, errTime.Error()},
	} {
		if got := l.shown(l.parse([]byte(c.src))); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.src, got, c.want)
		}
	}
}

func TestLinesAreCutAtNewlinesOutsideOfStrings(t *testing.T) {
	for src, want := range map[string][]string{
		"":                         nil,
		"a":                        {"a"},
		"a\nb\n":                   {"a", "b"},
		"a\n\nb":                   {"a", "", "b"},
		"a f=\"x\ny\" 1\nb f=1":    {"a f=\"x\ny\" 1", "b f=1"},
		"a f=\"x\\\"\ny\" 1\nb":    {"a f=\"x\\\"\ny\" 1", "b"},
		"a f=\"x\nb f=1\nc":        {"a f=\"x", "b f=1", "c"},
		"a\"b,c=\"d f=1\nb f=1":    {"a\"b,c=\"d f=1", "b f=1"},
		"a\\ \"b f=1\nb f=\"\"\nc": {"a\\ \"b f=1", "b f=\"\"", "c"},
	} {
		var got []string
		for rest := []byte(src); len(rest) > 0; {
			var l []byte
			l, rest = next(rest)
			got = append(got, string(l))
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q: %q, want %q", src, got, want)
		}
	}
}

// FuzzLine reads what nobody sent: it never panics, and what it takes has a name and a field.
func FuzzLine(f *testing.F) {
	for _, src := range []string{`a,b=c d=1,e="f" 5`, `a\ b,c\=d=e f=t`, "a f=\"x\ny\""} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var l line
		for rest := src; len(rest) > 0; {
			var first []byte
			before := len(rest)
			if first, rest = next(rest); len(rest) >= before {
				t.Fatalf("%d bytes are left of %d", len(rest), before)
			}
			if l.parse(first) == nil && (len(l.measurement) == 0 || len(l.fields) == 0) {
				t.Fatalf("%q is taken as %s", first, l.shown(nil))
			}
		}
	})
}
