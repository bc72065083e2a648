package dql

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// names parses text and returns the canonical names of its fields.
func names(t *testing.T, text string) []string {
	t.Helper()
	q, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	again, err := Parse(q.String())
	if err != nil {
		t.Fatalf("the text of %s does not parse: %s: %v", text, q, err)
	}
	if q.String() != again.String() {
		t.Fatalf("the text of %s is not stable:\n%s\n%s", text, q, again)
	}
	var list []string
	for _, f := range q.Fields {
		list = append(list, Name(f.Expr, math.MaxInt))
	}
	return list
}

func TestNames(t *testing.T) {
	f := func(field, want string) {
		t.Helper()
		if got := names(t, "SELECT "+field+" LAST 1m"); len(got) != 1 || got[0] != want {
			t.Errorf("name of %s = %s, want %s", field, got, want)
		}
	}
	f("t BUCKET b", `'t' BUCKET 'b'`)
	f("avg(a.b BUCKET c, 5s)", `avg('a'.'b' BUCKET 'c')`)
	f("sum(a.* BUCKET b)", `sum('a'.* BUCKET 'b')`)
	f("*.mps BUCKET b", `*.'mps' BUCKET 'b'`)
	f("t BUCKET b + 1", `add('t' BUCKET 'b')`)
	f("1 - t BUCKET b", `sub('t' BUCKET 'b')`)
	f("t BUCKET b - 1 - 2", `sub(sub('t' BUCKET 'b'))`)
	f("t BUCKET b -1", `sub('t' BUCKET 'b')`)
	f("t BUCKET b * -1.5e-3", `mul('t' BUCKET 'b')`)
	f("a BUCKET x - b BUCKET x - c BUCKET x",
		`diff(diff('a' BUCKET 'x', 'b' BUCKET 'x'), 'c' BUCKET 'x')`)
	f("a BUCKET x / b BUCKET x * c BUCKET x",
		`product(quotient('a' BUCKET 'x', 'b' BUCKET 'x'), 'c' BUCKET 'x')`)
	f("a BUCKET x + b BUCKET x * c BUCKET x",
		`sum('a' BUCKET 'x', product('b' BUCKET 'x', 'c' BUCKET 'x'))`)
	f("(a BUCKET x + b BUCKET x) / 2", `divide(sum('a' BUCKET 'x', 'b' BUCKET 'x'))`)
	f("t BUCKET b SHIFT BY 10000", `'t' BUCKET 'b' SHIFT BY 10000`)
	f("t BUCKET b SHIFT BY 1h", `'t' BUCKET 'b' SHIFT BY 1h`)
	f("m FROM coll WHERE ns:k = v", `'m' FROM 'coll' WHERE 'ns':'k' = 'v'`)
	f("m IN coll WHERE k NOT 'v'", `'m' FROM 'coll' WHERE 'k' != 'v'`)
	f("m FROM c WHERE NOT a AND NOT (b = x OR d)",
		`'m' FROM 'c' WHERE NOT ('a') AND (NOT ('b' = 'x' OR ('d')))`)
	f(`m FROM c WHERE a LIKE 'web*.\*' AND n:b NOT LIKE x`,
		`'m' FROM 'c' WHERE 'a' LIKE 'web*.\*' AND ('n':'b' NOT LIKE 'x')`)
	f(`m FROM c WHERE a =~ 'web\d+\'' OR b!~x`, `'m' FROM 'c' WHERE 'a' =~ 'web\d+\'' OR ('b' !~ 'x')`)
	f("all from coll", `ALL FROM 'coll'`)
	f("m FROM c WHERE a = x OR b = y AND d", `'m' FROM 'c' WHERE 'a' = 'x' OR ('b' = 'y') AND ('d')`)
	f("sum(m FROM c GROUP BY $k, $n:k USING sum, 5m)",
		`sum('m' FROM 'c' GROUP BY $'k', $'n':'k' USING sum)`)
	f("percentile(t BUCKET b, 0.5, 4s)", `percentile('t' BUCKET 'b')`)
	f("EVENTS FROM b WHERE aa.b == 1 AND (c ~= 'x' OR NOT dd[0] > 2) AND e != 'q'",
		`EVENTS FROM 'b' WHERE 'aa'.'b' == 1 AND ('c' ~= 'x' OR (NOT ('dd'[0] > 2))) AND ('e' != 'q')`)
	f("sum(count(EVENTS FROM b WHERE a == 1 shift by 5m, 1m), 1h) / count(EVENTS FROM b, 1h)",
		`quotient(sum(count(EVENTS FROM 'b' WHERE 'a' == 1 SHIFT BY 5m)), count(EVENTS FROM 'b'))`)
}

func TestSpansOfSeveralUnits(t *testing.T) {
	f := func(span, want string) {
		t.Helper()
		q, err := Parse("SELECT avg(a BUCKET b SHIFT BY " + span + ", " + span + ") LAST " + span)
		if err != nil {
			t.Errorf("%s: %v", span, err)
			return
		}
		text := "SELECT avg('a' BUCKET 'b' SHIFT BY " + want + ", " + want + ") LAST " + want
		if q.String() != text {
			t.Errorf("%s: got %s, want %s", span, q, text)
		}
	}
	f("1h30m", "90m")
	f("1 h30m", "90m")
	f("-1h30m", "-90m")
	f("1w2d3h4m5s6ms", "788645006ms")
	f("1m0s", "60s")
	f("2m90s", "210s")
	f("1s001ms", "1001ms")
	for span, want := range map[string]string{"1y6mo": "18mo", "-2y1mo": "-25mo", "3 mo": "3mo",
		"1y": "1y"} {
		q, err := Parse("SELECT a BUCKET b LAST " + span)
		if err != nil || q.String() != "SELECT 'a' BUCKET 'b' LAST "+want {
			t.Errorf("%s: got %v, %v, want %s", span, q, err, want)
		}
	}
	for _, span := range []string{"1m1h", "1h1h", "1h30", "1h30min", "1h-30m", "1h3.5m", "0h30m",
		"1h30m2"} {
		if q, err := Parse("SELECT a BUCKET b LAST " + span); err == nil {
			t.Errorf("%s is a span: %s", span, q)
		}
	}
	for _, span := range []string{"8000000000000w1s", "1w999999999999999s", "70389527h9999999999m"} {
		if _, err := Parse("SELECT a BUCKET b LAST " + span); err == nil ||
			!strings.Contains(err.Error(), "out of range") {
			t.Errorf("%s: %v, want a span out of range", span, err)
		}
	}
}

func TestPartsAfterADotNeedNoQuotes(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := names(t, "SELECT "+text+" BUCKET b LAST 1m"); got[0] != want+` BUCKET 'b'` {
			t.Errorf("%s = %s, want %s", text, got[0], want)
		}
	}
	f("a.7d1a1a3b-f3e9-4388", `'a'.'7d1a1a3b-f3e9-4388'`)
	f("a.1.5.1e3", `'a'.'1'.'5'.'1e3'`)
	f("a.last.m.-x.@1", `'a'.'last'.'m'.'-x'.'@1'`)
	f("m.s", `'m'.'s'`)
	f("''.'it\\'s'.'\\xff\\\\'", `''.'it\'s'.'\xff\\'`)
	f(`'\=\xff\x01'`, `'\=\xff\x01'`)
	f("a.*.7b", `'a'.*.'7b'`)
}

func TestKeywordsInAnyCaseAndComments(t *testing.T) {
	got := names(t, "select x, avg(x, 2s) as 'a b' % a comment\n alias t bucket b as x between now "+
		"and 5m ago bottom 2 by percentile(0.5)")
	want := []string{`'t' BUCKET 'b'`, `avg('t' BUCKET 'b')`}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %s, want %s", got, want)
	}
	q, err := Parse("SELECT m FROM c AS $host.$'d c'.$1.lit METADATA {host: $ns:host, n: 1 + 2*-3, " +
		"x: $1, y: 'lit'} AFTER \"2016-04-19 EST\" FOR 5s TOP 3 BY avg()")
	if err != nil {
		t.Fatal(err)
	}
	const text = `SELECT 'm' FROM 'c' AS $'host'.$'d c'.$1.'lit' METADATA {'host': $'ns':'host', 'n': -5, 'x': $1, 'y': 'lit'} AFTER "2016-04-19 EST" FOR 5s TOP 3 BY avg()`
	if q.String() != text {
		t.Errorf("got  %s\nwant %s", q, text)
	}
}

func TestTimeZones(t *testing.T) {
	for text, want := range map[string]string{
		`LAST 1y TZ "Europe/Zagreb"`:                   ` LAST 1y TZ "Europe/Zagreb"`,
		`LAST 1y tz 'Europe/Zagreb' TOP 1 BY avg()`:    ` LAST 1y TZ "Europe/Zagreb" TOP 1 BY avg()`,
		`BETWEEN 1000 AND 2000 TZ UTC`:                 ` BETWEEN 1000 AND 2000 TZ "UTC"`,
		`AFTER "2026-03-29" FOR 1mo TZ "+02:00"`:       ` AFTER "2026-03-29" FOR 1mo TZ "+02:00"`,
		`BETWEEN 2mo AGO AND 1 mo AGO TZ "it's \"x\""`: ` BETWEEN 2mo AGO AND 1mo AGO TZ "it\'s \"x\""`,
	} {
		q, err := Parse("SELECT a BUCKET b " + text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want = "SELECT 'a' BUCKET 'b'" + want; q.String() != want {
			t.Errorf("%s: got %s, want %s", text, q, want)
		}
		if !strings.Contains(q.Timeless(), " TZ ") {
			t.Errorf("%s without its range is %s", text, q.Timeless())
		}
	}
	for _, text := range []string{`LAST 1m TZ "UTC"`, "LAST 1mo", "LAST 1y",
		"BETWEEN 2mo AGO AND NOW"} {
		if _, err := ParseCompat("SELECT a BUCKET b " + text); err == nil {
			t.Errorf("with compat %s is known", text)
		}
	}
	q, err := Parse("SELECT tz BUCKET b AS tz ALIAS y BUCKET b AS mo LAST 1m")
	if err != nil || q.Zone != nil {
		t.Errorf("TZ, y and mo as names: %v", err)
	}
}

// isError checks that a text is refused at a place, with a message that has some words.
func isError(t *testing.T, text string, line, col int, want string) {
	t.Helper()
	_, err := Parse(text)
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("Parse(%q) = %v, want an *Error", text, err)
		return
	}
	if e.Line != line || e.Col != col || !strings.Contains(e.Error(), want) {
		t.Errorf("Parse(%q): %v, want line %d, column %d and %q", text, e, line, col, want)
	}
}

func TestErrorsOfTheCalendar(t *testing.T) {
	f := func(text string, col int, want string) {
		t.Helper()
		isError(t, "SELECT a BUCKET b "+text, 1, col, want)
	}
	f("LAST 1year", 24, "write 1y")
	f("LAST 2months", 24, "write 2mo")
	f("LAST 5M", 24, "write 5m for minutes, 5mo for months")
	f("LAST 1mo2d", 24, "1mo2d: months and years have no fixed length")
	f("LAST 2w1mo", 24, "2w1mo: months and years have no fixed length")
	f("SHIFT BY 1mo LAST 1m", 28, "SHIFT BY takes a span of fixed length")
	f("LAST 8037y", 24, "8037y is out of range")
	f("LAST 1m TZ", 29, "expected a time zone such as \"Europe/Zagreb\", found the end of the query")
	f("LAST 1m TZ 1", 30, "expected a time zone")
}

func TestErrors(t *testing.T) {
	f := func(text string, line, col int, want string) {
		t.Helper()
		isError(t, text, line, col, want)
	}
	f("", 1, 1, "expected SELECT, found the end of the query")
	f("SELECT", 1, 7, "expected a metric")
	f(` {"q": "SELECT a BUCKET b LAST 1m"}`, 1, 2, "this is a JSON object: give the query alone")
	f("SELECT fill(a BUCKET b, liner) LAST 1m", 1, 25, "did you mean linear?")
	f("SELECT ALL FROM c WHERE a =~ 'x(' LAST 1m", 1, 30, "missing closing ): `x(`")
	f("SELECT ALL FROM c WHERE a =~ LAST 1m", 1, 30, "expected a regular expression")
	f("SELECT ALL FROM c WHERE a LIKE 1 LAST 1m", 1, 32, "expected a pattern such as 'web*'")
	f("SELECT ALL FROM c WHERE a !~ '"+strings.Repeat("a", MaxPattern+1)+"' LAST 1m", 1, 30,
		"the limit is 4096")
	f("SELECT a LAST 1m", 1, 8, "Variable 'a' referenced but not defined!")
	f("SELECT a BUCKET b", 1, 18, "time range")
	f("SELECT a BUCKET b LAST 60", 1, 26, "expected a unit of time")
	f("SELECT a BUCKET\nlast LAST 1m", 2, 1, "needs quotes")
	f("SELECT a BUCKET b LAST 1m x", 1, 27, "expected the end of the query")
	f("SELECT 'a LAST 1m", 1, 8, "not closed")
	f("SELECT 'a\\", 1, 8, "not closed")
	f("SELECT a.é BUCKET b LAST 1m", 1, 10, "illegal character 'é'")
	f("SELECT a BUCKET b LAST 5min", 1, 24,
		"5min is no span of time: the units are ms, s, m, h, d, w, mo and y; write 5m")
	f("SELECT avg(a BUCKET b, 2Hours) LAST 5m", 1, 24, "write 2h")
	f("SELECT a BUCKET b LAST 5fortnights", 1, 24, "5fortnights is no span of time")
	f("SELECT a BUCKET b SHIFT BY 5M LAST 1m", 1, 28, "write 5m")
	f("SELECT web*.x BUCKET b LAST 1m", 1, 11, "write *.x")
	f("SELECT a.web*.x BUCKET b LAST 1m", 1, 13, "write a.*.x")
	f("SELECT a.*web1.x BUCKET b LAST 1m", 1, 11, "write a.*.x")
	f("SELECT web* BUCKET b LAST 1m", 1, 11, "write *")
	f("SELECT avg(a.web*) LAST 1m", 1, 17, "write a.*")
	f(`SELECT "a"."b" BUCKET b LAST 1m`, 1, 8, "write 'a'.'b'")
	f(`SELECT a."it's".* BUCKET b LAST 1m`, 1, 10, `write a.'it\'s'.*`)
	f(`SELECT a BUCKET "b" LAST 1m`, 1, 17, "write 'b'")
	f("SELECT avg(x) LAST 1m", 1, 12, "as in avg(x BUCKET name, 1m)")
	f("SELECT errs ALIAS a BUCKET b AS errors LAST 1m", 1, 8, "did you mean errors?")
	f("SELECT a BUCKET b AFTER 1795176000000000 FOR 1m", 1, 25,
		"if microseconds are meant, which would be 2026-11-20 12:00:00 UTC, write 1795176000000")
	f("SELECT a BUCKET b AFTER 1795176000000000000 FOR 1m", 1, 25, "if nanoseconds are meant")
	f("SELECT avg(a BUCKET b 5m) LAST 1m", 1, 23, "expected ',' or ')'")
	f("SELECT a BUCKET b / 5m LAST 1m", 1, 21, "span of time")
	f("SELECT a BUCKET b + 1 / 0 LAST 1m", 1, 23, "division by the constant 0")
	f("SELECT a BUCKET b BETWEEN 5m AND NOW", 1, 30, "expected AGO")
	f("SELECT a.* FROM c LAST 1m", 1, 8, "needs BUCKET")
	f("SELECT x ALIAS a BUCKET b AS x, c BUCKET b AS x LAST 1m", 1, 47, "defined twice")
	f("SELECT a BUCKET b AS $0 LAST 1m", 1, 22, "counted from $1")
	f("SELECT a BUCKET b LAST 99999999999999999999s", 1, 24, "out of range")
	f("SELECT a BUCKET b LAST 419000w", 1, 24,
		"419000w is out of range, the limit is 253402300799999 ms")
	f("SELECT avg(a BUCKET b, 9999999999w) LAST 1m", 1, 24, "9999999999w is out of range")
	f("SELECT a BUCKET b SHIFT BY -2932897d LAST 1m", 1, 28, "-2932897d is out of range")
	f("SELECT a BUCKET b AFTER 1795176000000000 FOR 1m", 1, 25, "1795176000000000ms is out of range")
	f("SELECT a BUCKET b BETWEEN 99999999999h AGO AND NOW", 1, 27, "99999999999h is out of range")
	f("SELECT "+strings.Repeat("(", MaxDepth+1), 1, 8+MaxDepth, "deeper than 500 levels")
	f("SELECT a BUCKET b"+strings.Repeat(" + 1", MaxDepth+1), 1, 19+4*MaxDepth, "operators in a row")
	f("SELECT '"+strings.Repeat("x", 256)+"' BUCKET b LAST 1m", 1, 8, "the limit is 255")
	f("SELECT a BUCKET '"+strings.Repeat("x", 256)+"' LAST 1m", 1, 17, "the limit is 255")
	f(strings.Repeat(" ", MaxText+1), 1, MaxText+1, "the limit is 262144")
}

func TestDates(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		ms, err := ParseDate(text, time.FixedZone("default", 3600))
		if err != nil {
			t.Error(err)
			return
		}
		if got := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000"); got != want {
			t.Errorf("ParseDate(%q) = %s, want %s", text, got, want)
		}
	}
	f("2016-04-19", "2016-04-18T23:00:00.000")
	f("2016-04-19 UTC", "2016-04-19T00:00:00.000")
	f("2016-04-19 12:30:00", "2016-04-19T11:30:00.000")
	f("2016-04-19 12:30", "2016-04-19T11:30:00.000")
	f("2016-04-19 12:30:00 EST", "2016-04-19T17:30:00.000")
	f("2016-04-19 12:30:00Z", "2016-04-19T12:30:00.000")
	f("2016-04-19T12:30:00Z", "2016-04-19T12:30:00.000")
	f("2016-04-19T12:30:00.999+02:00", "2016-04-19T10:30:00.000")
	f("2016-04-19 12:30:00 +0200", "2016-04-19T10:30:00.000")
	f("2016-04-19 12:30:00-03", "2016-04-19T15:30:00.000")
	f("Tue, 19 Apr 2016 12:30:00 GMT", "2016-04-19T12:30:00.000")
	f("April 19, 2016 3:04 pm UTC", "2016-04-19T15:04:00.000")
	f("4/19/2016 UTC", "2016-04-19T00:00:00.000")
	for _, bad := range []string{"", "now", "2016-13-01", "2016-04-19 12:30:00 XYZ",
		"2016-04-19 25:00"} {
		if ms, err := ParseDate(bad, time.UTC); !errors.Is(err, ErrDate) {
			t.Errorf("ParseDate(%q) = %d, %v, want ErrDate", bad, ms, err)
		}
	}
}

// The form that most dates have is read at once, and by the rules of all others:
// a blank at the end leads around the short way.
func TestDatesOfTheUsualForm(t *testing.T) {
	zone := time.FixedZone("default", 3600)
	good := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := []byte(time.Unix(rapid.Int64Range(-1<<33, 1<<37).Draw(rt, "at"),
			0).UTC().Format(time.DateTime))
		for range rapid.IntRange(0, 3).Draw(rt, "changes") {
			text[rapid.IntRange(0, len(text)-1).Draw(rt, "place")] = rapid.SampledFrom(
				[]byte("0123456789 -:/,.TZ+aP")).Draw(rt, "byte")
		}
		want, wantErr := ParseDate(string(text)+" ", zone)
		got, err := ParseDate(string(text), zone)
		if got != want || (err == nil) != (wantErr == nil) {
			rt.Fatalf("%q is %d, %v, and with a blank behind it %d, %v", text, got, err, want, wantErr)
		}
		if err == nil {
			good++
		}
	})
	if good == 0 {
		t.Error("no date was right")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(
		`SELECT max(cloud.zones.cpu.nwait.e2be6f6c-2005-4f2d-aff9-f427b9 BUCKET tachyon, 1m) LAST 1h`)
	f.Add(`SELECT avg(sum(*.mps BUCKET dalmatinerdb), 5m) AS 'metrics/s' LAST 1h`)
	f.Add(
		`SELECT x - 1 * -2.5e3, 'a'.7 BUCKET '\xff' SHIFT BY 5m AS $1.$a:b METADATA {n: (1 + 2), d: $d} ALIAS m FROM c WHERE a:b = c OR NOT AS x BETWEEN "2016-04-19 EST" AND 5 m AGO TOP 3 BY avg(0.5)`)
	f.Add(
		`SELECT ALL FROM c WHERE NOT (a LIKE 'w*\*' OR b NOT LIKE c) AND n:d =~ '\d(?i)x' AND e !~ '' LAST 1m`)
	f.Add(`SELECT ALL FROM c WHERE (a != b AND x) GROUP BY $a, $'b':c USING sum BEFORE NOW FOR 3d`)
	f.Add(
		`SELECT EVENTS FROM b WHERE aa.b == 1 AND (c ~= 'x' OR NOT dd[0] > 2) AND e != 'q' AFTER 1 FOR 1s % end`)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			if e := (*Error)(nil); !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(text) {
				t.Fatalf("%v is no *Error inside the text", err)
			}
			return
		}
		again, err := Parse(q.String())
		if tooBig(err) {
			return
		}
		if err != nil || again.String() != q.String() {
			t.Fatalf("%q -> %s -> %v, %v", text, q, again, err)
		}
		for i, f := range q.Fields {
			name := Name(f.Expr, math.MaxInt)
			n, err := Parse("SELECT " + name + " LAST 1s")
			if tooBig(err) {
				continue
			}
			if err != nil || Name(n.Fields[0].Expr, math.MaxInt) != name ||
				Name(again.Fields[i].Expr, math.MaxInt) != name {
				t.Fatalf("%q: the name %s is not stable: %v", text, name, err)
			}
		}
	})
}

// tooBig tells whether a text is refused because names are longer and nest
// deeper than what they were made from.
func tooBig(err error) bool {
	return err != nil && (errors.Is(err, ErrTooLong) || strings.Contains(err.Error(), "nests deeper"))
}
