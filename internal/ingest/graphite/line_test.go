package graphite

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// arrival is when the lines of these tests arrive, in milliseconds.
const arrival = 1_600_000_000_999

// shown prints what a line became: key, slot and value, or the reason.
func (d *decoder) shown(r reason) string {
	if r != accepted {
		return r.String()
	}
	v := fmt.Sprintf("int %d", point.Int(d.word))
	switch point.KindOf(d.word) {
	case point.KindFloat:
		v = fmt.Sprintf("float %g", point.Float(d.word))
	case point.KindUnset:
		v = "unset"
	}
	return fmt.Sprintf("%s @%d %s", metric.Text(d.key), d.slot, v)
}

func newDecoder(resolution int64) *decoder {
	d := &decoder{}
	d.reset(arrival, resolution)
	return d
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", metric.MaxPart)
	f := func(line, want string) {
		t.Helper()
		if d := newDecoder(1000); d.shown(d.line([]byte(line))) != want {
			t.Errorf("%q\n got %s\nwant %s", line, d.shown(d.line([]byte(line))), want)
		}
	}
	f("a.b.c 5 1500000000", "'a'.'b'.'c' @1500000000 int 5")
	f("a 5 1500000000\r", "'a' @1500000000 int 5")
	f(" a\t 5 \t1500000000 \t", "'a' @1500000000 int 5")
	f("a -5 1500000000", "'a' @1500000000 int -5")
	f("a +5 1500000000", "'a' @1500000000 int 5")
	f("a 5.0 1500000000", "'a' @1500000000 float 5")
	f("a 5. 1500000000", "'a' @1500000000 float 5")
	f("a 9007199254740993.0 1500000000", "'a' @1500000000 int 9007199254740993")
	f("a .25 1500000000", "'a' @1500000000 float 0.25")
	f("a -0.0 1500000000", "'a' @1500000000 float -0")
	f("a 1e3 1500000000", "'a' @1500000000 float 1000")
	f("a 36028797018963967 1500000000", "'a' @1500000000 int 36028797018963967")
	f("a 36028797018963968 1500000000", "'a' @1500000000 float 3.602879701896397e+16")
	f("a 99999999999999999999 1500000000", "'a' @1500000000 float 1e+20")
	f("a inf 1500000000", "'a' @1500000000 float +Inf")

	for _, nan := range []string{"nan", "NaN", "NAN", "-nan"} {
		f("a "+nan+" 1500000000", "'a' @1500000000 unset")
	}
	f("a 5 -1", "'a' @1600000000 int 5")
	f("a 5 -1.0", "'a' @1600000000 int 5")
	f("a 5 1500000000.999", "'a' @1500000000 int 5")
	f("a 5 1500000000.9999998", "'a' @1500000000 int 5")
	f("a 5 1.5e9", "'a' @1500000000 int 5")
	f("a 5 0", "'a' @0 int 5")

	f("a..b 5 1500000000", "'a'.''.'b' @1500000000 int 5")
	f(".a. 5 1500000000", "''.'a'.'' @1500000000 int 5")
	f("a.k=v..unit=B.host=x 5 1500000000", "'a'.'k=v' @1500000000 int 5")
	f("a.k=v..unit 5 1500000000", "'a'.'k=v'.''.'unit' @1500000000 int 5")
	f("a.b;z=1;c=2 5 1500000000", "'a'.'b'.'c=2'.'z=1' @1500000000 int 5")
	f("a;t=x.y=z 5 1500000000", "'a'.'t=x.y=z' @1500000000 int 5")
	f("\xff\x01./\xc3\xa9 5 1500000000", `'\xff\x01'.'/é' @1500000000 int 5`)
	f(long+" 5 1500000000", "'"+long+"' @1500000000 int 5")

	f(long+"x 5 1500000000", "part_too_long")
	f("a;t="+long+" 5 1500000000", "part_too_long")
	f(strings.Repeat("abc.", 20_000)+" 5 1500000000", "name_too_long")
	f("", "malformed")
	f("a", "malformed")
	f("a 5", "malformed")
	f("a 5 ", "malformed")
	f("a 5 1500000000 x", "malformed")
	f(";k=v 5 1500000000", "malformed")
	f("a;k 5 1500000000", "bad_tag")
	f("a;k= 5 1500000000", "bad_tag")
	f("a;=v 5 1500000000", "bad_tag")
	f("a; 5 1500000000", "bad_tag")
	f("a;k=v;j=1;k=w 5 1500000000", "duplicate_tag")
	f("a;k=v;k=v 5 1500000000", "duplicate_tag")
	f("a;a-b=1;a=2;a.b=3 5 1500000000", "'a'.'a=2'.'a-b=1'.'a.b=3' @1500000000 int 5")
	for _, bad := range []string{"x", "-", ".", "-.", "5x", "0x10", "1_000", "1e400",
		"1,5", "--5", "5.5.5", "1e"} {
		f("a "+bad+" 1500000000", "bad_value")
	}
	for _, bad := range []string{"x", "-2", "-1.5", "nan", "inf", "0x10", "15000.x", ".", "1e18",
		"9999999999999999999999"} {
		f("a 5 "+bad, "bad_timestamp")
	}
}

func TestTimeIsDividedByTheResolution(t *testing.T) {
	d := newDecoder(100)
	d.line([]byte("a 5 1500000000.25"))
	if d.slot != 15_000_000_002 {
		t.Errorf("at 100 ms the slot is %d", d.slot)
	}
	d.line([]byte("a 5 -1"))
	if d.slot != arrival/100 {
		t.Errorf("now at 100 ms is slot %d", d.slot)
	}
	d.reset(arrival, 60_000) // the timestamp that is remembered means another slot now
	d.line([]byte("a 5 1500000000.25"))
	if d.slot != 25_000_000 {
		t.Errorf("at a minute the slot is %d", d.slot)
	}
}

// genNumber makes texts near every border of the arithmetic by hand.
func genNumber() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign")
		s += rapid.StringMatching(`[0-9]{0,21}`).Draw(t, "digits")
		if rapid.Bool().Draw(t, "point") {
			s += "." + rapid.StringMatching(`[0-9]{0,21}|0{0,21}`).Draw(t, "places")
		}
		return s + rapid.SampledFrom([]string{"", "", "", "e5", "E-300", "x"}).Draw(t, "end")
	})
}

var wholeText = regexp.MustCompile(`^([-+]?[0-9]+)(\.0*)?$`)

// naiveWord is the word of a text of which strconv makes f.
func naiveWord(text string, f float64) uint64 {
	m := wholeText.FindStringSubmatch(text)
	if m == nil || m[2] != "" && math.Abs(f) <= 1<<53 { // which every float holds
		return point.FromFloat(f)
	}
	n, ok := new(big.Int).SetString(m[1], 10)
	if !ok || !n.IsInt64() {
		return point.FromFloat(f)
	}
	return point.FromInt(n.Int64())
}

func TestValuesAreThoseOfStrconv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := genNumber().Draw(t, "text")
		got, ok := parseValue([]byte(text))
		f, err := strconv.ParseFloat(text, 64)
		if ok != (err == nil) {
			t.Fatalf("%q: ok is %t, strconv says %v", text, ok, err)
		}
		want := naiveWord(text, f)
		if ok && got != want {
			t.Fatalf("%q is %x, want %x", text, got, want)
		}
	})
}

func TestShortestFloatsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		if math.IsInf(f, 0) {
			return
		}
		for _, format := range []byte("fge") {
			text := strconv.FormatFloat(f, format, -1, 64)
			got, ok := parseValue([]byte(text))
			want := naiveWord(text, f)
			if !ok || got != want {
				t.Fatalf("%q is %x, want %x", text, got, want)
			}
		}
	})
}

func TestSecondsAreCutToMilliseconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, 1e14).Draw(t, "ms")
		more := rapid.StringMatching(`[0-9]{0,4}`).Draw(t, "more")
		text := fmt.Sprintf("%d.%03d%s", ms/1000, ms%1000, more)
		if got, now, ok := parseSeconds([]byte(text)); !ok || now || len(text) <= fastDigits &&
			got != ms {
			t.Fatalf("%s is %d ms (%t, %t), want %d", text, got, now, ok, ms)
		}
		if got, _, ok := intSeconds(ms); !ok || got != ms*1000 {
			t.Fatalf("%d s is %d ms", ms, got)
		}
		if got, _, ok := floatSeconds(float64(ms%1e13) / 1000); !ok || got != ms%1e13 {
			t.Fatalf("%d ms as a double of seconds is %d ms", ms%1e13, got)
		}
	})
	// Doubles of that size are two microseconds apart, and the nearest is below.
	if got, _, _ := floatSeconds(8599217651.803); got != 8599217651803 {
		t.Errorf("8599217651.803 s are %d ms", got)
	}
	if got, _, _ := floatSeconds(math.Nextafter(1700000001, 0)); got != 1700000001000 {
		t.Errorf("a double below 1700000001 s is %d ms", got)
	}
}

// checkLine: the short way and the long way agree on every line.
func checkLine(t interface {
	Helper()
	Fatalf(string, ...any)
}, short *decoder, line []byte) {
	t.Helper()
	long := newDecoder(short.resolution)
	got, want := short.shown(short.line(line)), long.shown(long.anyLine(line))
	if got != want {
		t.Fatalf("%q\nthe short way: %s\nthe long way:  %s", line, got, want)
	}
	if strings.ContainsRune(got, '@') && len(short.key) > metric.MaxKey {
		t.Fatalf("%q: a key of %d bytes", line, len(short.key))
	}
}

func TestBothWaysAgree(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("ab./-=; \t\r1é")), 0, 30, -1)
	rapid.Check(t, func(t *rapid.T) {
		d := newDecoder(rapid.SampledFrom([]int64{1, 1000, 60_000}).Draw(t, "resolution"))
		for range 5 { // what a line leaves behind must not change the next
			line := word.Draw(t, "path") + " " + genNumber().Draw(t, "value") + " " +
				rapid.SampledFrom([]string{"1500000000", "1500000001", "1500000000.5", "-1", "", "x", " 7",
					"7 "}).Draw(t, "time")
			checkLine(t, d, []byte(line))
		}
	})
}

func FuzzLine(f *testing.F) {
	f.Add([]byte("a.b.c 5 1500000000\na.b.c 5.25 1500000000\r\n;x 1 2"))
	f.Add([]byte("a;k=v;b=c 1e3 -1\n  a..m=1   .5\t1.5e9\n\xff 1 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newDecoder(1000)
		for _, line := range bytes.Split(data, []byte("\n")) {
			checkLine(t, d, line)
		}
	})
}
