package reference

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// Small cases of every rule of what a query means, computed by hand. Times are seconds: slot 1000
// of bucket b is at 1000 s.

// fake is a source of the buckets b, m and w, of 1 s, 1 min and 150 s per slot.
type fake map[string]map[int64]uint64 // words by bucket, key and slot

var fakeBuckets = map[string]int64{"b": 1000, "m": 60_000, "w": 150_000}

func (f fake) Find(bucket string) (uint64, int64, error) {
	return uint64(bucket[0]), fakeBuckets[bucket], nil
}

func (f fake) Keys(bucket uint64) (keys [][]byte) {
	for name := range f {
		if name[0] == byte(bucket) {
			keys = append(keys, []byte(name[1:]))
		}
	}
	return keys
}

func (f fake) Word(bucket uint64, key []byte, slot int64) uint64 {
	return f[string(rune(bucket))+string(key)][slot]
}

// fakeOf reads lines of a bucket, a metric and its points: @n goes to a slot, _ is unset, numbers
// with a dot are floats.
func fakeOf(t *testing.T, text string) fake {
	f := fake{}
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		key, err := metric.Key(strings.Split(fields[1], ".")...)
		if err != nil {
			t.Fatal(err)
		}
		words, at := map[int64]uint64{}, int64(0)
		for _, p := range fields[2:] {
			if n, ok := strings.CutPrefix(p, "@"); ok {
				if at, err = strconv.ParseInt(n, 10, 64); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if v, err := strconv.ParseInt(p, 10, 64); err == nil {
				words[at] = point.FromInt(v)
			} else if v, err := strconv.ParseFloat(p, 64); err == nil {
				words[at] = point.FromFloat(v)
			} else if p != "_" {
				t.Fatal(err)
			}
			at++
		}
		f[fields[0]+string(key)] = words
	}
	return f
}

func shown(values []float64) string {
	var list []string
	for _, v := range values {
		if math.IsNaN(v) {
			list = append(list, "_")
		} else {
			list = append(list, fmt.Sprintf("%.6g", v))
		}
	}
	return strings.Join(list, " ")
}

// farFuture is long after all points.
var farFuture = time.UnixMilli(100_000_000)

// evaluate asks in the far future.
func evaluate(t *testing.T, data, text string) []Series {
	list, err := Evaluate(fakeOf(t, data), "SELECT "+text, farFuture, Old{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return list
}

type ruleCase struct{ data, query, values, confidence string }

func (c ruleCase) check(t *testing.T) {
	var values, sure []string
	for _, s := range evaluate(t, c.data, c.query) {
		values, sure = append(values, shown(s.Values)), append(sure, shown(s.Confidence))
	}
	if got := strings.Join(values, " | "); got != c.values {
		t.Errorf("%s\n%s\n= %s, want %s", c.data, c.query, got, c.values)
	}
	if got := strings.Join(sure, " | "); c.confidence != "" && got != c.confidence {
		t.Errorf("%s\n%s\nhas confidences %s, want %s", c.data, c.query, got, c.confidence)
	}
}

func checkRules(t *testing.T, data, times string, cases [][3]string) {
	for _, c := range cases {
		ruleCase{data, c[0] + " " + times, c[1], c[2]}.check(t)
	}
}

func TestR0NaN(t *testing.T) {
	checkRules(t, "b x @1000 1 NaN 3 +Inf", "AFTER 1000000 FOR 5s", [][3]string{
		{"x BUCKET b", "1 _ 3 +Inf _", "1 0 1 1 0"},
		{"count(x BUCKET b, 5s)", "3", "0.6"},
		{"x BUCKET b - x BUCKET b", "0 _ 0 _ _", "1 0 1 0 0"}, // Inf - Inf is NaN
		{"x BUCKET b * 2", "2 _ 6 +Inf _", "1 0 1 1 0"},
		{"min(x BUCKET b, 2s)", "1 3 _", "0.5 1 0"},
		{"sum(x BUCKET b, 3s)", "4 +Inf", ""},
	})
}

func TestR1Read(t *testing.T) {
	checkRules(t, "b x @999 9 _ 5 _ 7 _", "AFTER 1000000 FOR 5s", [][3]string{
		{"x BUCKET b", "_ 5 _ 7 _", "0 1 0 1 0"},
		{"x BUCKET b, none BUCKET b", "_ 5 _ 7 _ | _ _ _ _ _", ""},
		{"x BUCKET b SHIFT BY 1s", "9 _ 5 _ 7", "1 0 1 0 1"},
	})
}

func TestR2Spans(t *testing.T) {
	// Spans of four: _ 1 4 _, then _ 7 3 _, then NaN 2.
	data := "b x @1000 _ 1 4 _ _ 7 3 _ NaN 2\nb y @1001 1"
	checkRules(t, data, "AFTER 1000000 FOR 10s", [][3]string{
		{"sum(x BUCKET b, 4s)", "5 10 2", "0.5 0.5 0.5"},
		{"sum(x BUCKET b * 1, 4s)", "5 10 2", "0.5 0.5 0.5"},
		{"avg(x BUCKET b, 4s)", "2.5 5 2", "0.5 0.5 0.5"},
		{"mean(x BUCKET b, 4s)", "2.5 5 2", "0.5 0.5 0.5"},
		{"min(x BUCKET b, 4s)", "1 3 2", "0.5 0.5 0.5"},
		{"max(x BUCKET b, 4s)", "4 7 2", "0.5 0.5 0.5"},
		{"first(x BUCKET b, 4s)", "1 7 2", "0.5 0.5 0.5"},
		{"last(x BUCKET b, 4s)", "4 3 2", "0.5 0.5 0.5"},
		{"median(x BUCKET b, 4s)", "1 3 2", "0.5 0.5 0.5"},
		{"percentile(x BUCKET b, 1.0, 4s)", "4 7 2", "0.5 0.5 0.5"},
		{"variance(x BUCKET b, 4s)", "2.25 4 0", "0.5 0.5 0.5"},
		{"stddev(x BUCKET b, 4s)", "1.5 2 0", "0.5 0.5 0.5"},
		{"first_above(x BUCKET b, 3, 4s)", "4 7 _", "0.5 0.5 0"},
		{"last_below(x BUCKET b, 4, 4s)", "1 3 2", "0.5 0.5 0.5"},
		{"count_above(x BUCKET b, 3, 4s)", "1 1 0", "0.5 0.5 0.5"},
		{"count_below(x BUCKET b, 9, 4s)", "2 2 1", "0.5 0.5 0.5"},
		{"last_above_conf(x BUCKET b, 0.5, 4s)", "4 3 2", "0.5 0.5 0.5"},
		{"first_below_conf(x BUCKET b, 0.5, 4s)", "_ _ _", "0 0 0"}, // gaps are no values
		{"count_below_conf(x BUCKET b, 0.5, 4s)", "0 0 0", "0.5 0.5 0.5"},
		{"count(x BUCKET b, 4s)", "2 2 1", "0.5 0.5 0.5"},
		{"empty(x BUCKET b, 4s)", "2 2 1", "0.5 0.5 0.5"}, // the last span has two outputs
		{"sum(y BUCKET b, 4s)", "1 _ _", "0.25 0 0"},
		{"avg(y BUCKET b, 4s)", "1 _ _", "0.25 0 0"},
		{"count(y BUCKET b, 4s)", "1 0 0", "0.25 0 0"},
		{"empty(y BUCKET b, 4s)", "3 4 2", "0.25 0 0"},
		{"count_above(y BUCKET b, 0, 4s)", "1 0 0", "0.25 0 0"},
		{"max(sum(x BUCKET b, 2s), 4s)", "4 7 2", "0.5 0.5 0.5"},
		{"sum(x BUCKET b, 1ms)", "_ 1 4 _ _ 7 3 _ _ 2", ""},
	})
}

func TestR2Means(t *testing.T) {
	tenth, large := []float64{0.1, 0.1, 0.1}, []float64{math.MaxFloat64, math.MaxFloat64}
	if got := mean(sum(tenth), tenth); got != 0.1 {
		t.Errorf("the mean of 0.1 is %v", got)
	}
	if got := mean(sum(large), large); got != math.MaxFloat64 {
		t.Errorf("the mean of the greatest floats is %v", got)
	}
	minus := math.Copysign(0, -1)
	for _, zeros := range [][]float64{{0, minus}, {minus, 0}} {
		least, greatest := extreme(zeros, less), extreme(zeros, more)
		first := math.Signbit(zeros[0])
		if math.Signbit(least) != first || math.Signbit(greatest) != first {
			t.Errorf("of %v the least is %v and the greatest %v", zeros, least, greatest)
		}
	}
}

// Lanes of 60 slots are added up by themselves: one begins at slot 1020. A sum of integers is
// exact, and rounded once.
func TestR2OrderOfSums(t *testing.T) {
	data := `b x @1018 1.0 1e16 1.0 _ 1.0 1.0 1.0
b i @1018 1 10000000000000000 1 _ 1 1 NaN`
	for query, want := range map[string]float64{
		"sum(x BUCKET b, 10s)":     1e16 + 4, // (1 + 1e16) + (1 + 1 + 1 + 1)
		"sum(x BUCKET b + 0, 10s)": 1e16,     // ((1 + 1e16) + 1) + …
		"sum(i BUCKET b, 10s)":     1e16 + 4,
	} {
		if got := evaluate(t, data, query+" AFTER 1018000 FOR 10s")[0].Values[0]; got != want {
			t.Errorf("%s = %.17g, want %.17g", query, got, want)
		}
	}
}

func TestR3Counters(t *testing.T) {
	checkRules(t, "b x @1000 10 12 _ 15 3\nb y @998 7 _ 10 12 _ 15 3", "AFTER 1000000 FOR 5s",
		[][3]string{
			{"increase(x BUCKET b, 5s)", "8", "0.8"}, // 2 + 3 + 3, the last after a reset
			{"rate(x BUCKET b, 5s)", "2", "0.8"},     // in 4 s
			{"increase(y BUCKET b, 5s)", "11", "0.8"},
			{"rate(y BUCKET b, 5s)", "1.83333", "0.8"},             // in 6 s
			{"increase(x BUCKET b, 2s)", "2 3 3", "1 0.5 1"},       // to the span in which a pair ends
			{"rate(x BUCKET b, 2s)", "2 1.5 3", "1 0.5 1"},         // 3 in 2 s
			{"increase(x BUCKET b, 1s)", "_ 2 _ 3 3", "0 1 0 1 1"}, // no pair: a gap
		})
	// Of different spans, at most 5 min apart; of one span any distance.
	checkRules(t, "b far @699 1 @1000 10 11\nb close @700 1 @1000 10 11", "AFTER 1000000 FOR 2s",
		[][3]string{
			{"increase(far BUCKET b, 1s)", "_ 1", "0 1"},
			{"increase(close BUCKET b, 1s)", "9 1", "1 1"},
			{"rate(close BUCKET b, 1s)", "0.03 1", "1 1"},
		})
	checkRules(t, "b x @1000 1 @1400 5", "AFTER 1000000 FOR 500s", [][3]string{
		{"increase(x BUCKET b, 500s)", "4", "0.004"},
		{"rate(x BUCKET b, 500s)", "0.01", "0.004"},
		{"increase(x BUCKET b, 250s)", "_ _", "0 0"},
	})
	// At 150 s per slot 2.5 slots are more than 5 min.
	checkRules(t, "w x @10 1 _ 3 _ _ 6", "AFTER 1500000 FOR 900s", [][3]string{
		{"increase(x BUCKET w, 150s)", "_ _ 2 _ _ _", ""},
	})
}

func TestR4Steps(t *testing.T) {
	checkRules(t, "b x @1000 10 _ 16 4\nb y @998 4 NaN 10 _ 16 4", "AFTER 1000000 FOR 4s", [][3]string{
		{"derivate(x BUCKET b)", "_ _ 3 -12", "0 0 1 1"},
		{"derivate(y BUCKET b)", "3 _ 3 -12", "1 0 1 1"},
		{"increase(y BUCKET b)", "6 _ 6 4", "1 0 1 1"},
		{"rate(y BUCKET b)", "3 _ 3 4", "1 0 1 1"},
		{"derivate(sum(y BUCKET b, 2s))", "3 5", "0.5 0.75"}, // of 4, 10 and 20
	})
	checkRules(t, "b far @699 1 @1000 7\nb close @700 1 @1000 7", "AFTER 1000000 FOR 1s", [][3]string{
		{"derivate(far BUCKET b)", "_", "0"},
		{"derivate(close BUCKET b)", "0.02", "1"},
	})
	checkRules(t, "w x @10 1 _ 7 _ _ 6", "AFTER 1500000 FOR 900s", [][3]string{
		{"derivate(x BUCKET w)", "_ _ 0.02 _ _ _", ""},
	})
}

// How long a value is held: z has a value at every step.
func TestR5Patience(t *testing.T) {
	z := "\nb z @0" + strings.Repeat(" 0", 1700)
	for _, c := range []struct {
		data string
		last int64 // slot at which it is held for the last time
	}{
		{"b x @990 4", 1290},                      // 5 min: one value
		{"b x @980 1 @990 4", 1290},               // two
		{"b x @990 1 2 3 4", 995},                 // 2.5 times 1 s
		{"b x @960 1 @970 1 @980 1 @990 4", 1015}, // 2.5 times 10 s
		{"b x @970 1 @980 1 @990 4", 1015},        // three values are enough
		{"b x @940 1 @988 1 1 4", 1110},           // p4 counts: 2.5 times 48 s
		{"b x @800 1 @988 1 1 4", 992},            // more than 2 min before p3: not looked at
		{"b x @800 1 @850 1 @989 1 4", 1290},      // p1, p2 are two only
		{"b x @750 1 @870 1 @990 4", 1290},        // 2.5 times 120 s
		{"b x @632 1 @752 1 @871 1 @990 4", 1290}, // 2.5 times 120 s, which are 11 min before 1290
		{"b x @900 1 @988 1 NaN 4", 1210},         // NaN is no value: 2.5 times 88 s
	} {
		for _, from := range []int64{600, 991, c.last} { // the answer does not depend on the range
			query := fmt.Sprintf("sum(x BUCKET b, z BUCKET b) BETWEEN %d AND 1700000", from*1000)
			values := evaluate(t, c.data+z, query)[0].Values
			last := int64(0)
			for i, v := range values {
				if v == 4 {
					last = from + int64(i)
				}
			}
			if last != c.last {
				t.Errorf("%s from %d on: held up to %d, want %d", c.data, from, last, c.last)
			}
		}
	}
	checkRules(t, "w x @10 5\nw y @10 1 1 1 1 1", "AFTER 1500000 FOR 750s", [][3]string{
		{"sum(x BUCKET w, y BUCKET w)", "6 6 6 1 1", ""}, // 2.5 times 150 s
	})
	checkRules(t, "m x @20 5\nm y @20 1 1 1 1 1 1 1", "AFTER 1200000 FOR 420s", [][3]string{
		{"sum(x BUCKET m, y BUCKET m)", "6 6 6 6 6 6 1", ""}, // 5 min
	})
}

func TestR5Combinations(t *testing.T) {
	data := "b x.1 @1000 6 _ _ 8 _\nb x.2 @1000 2 4 _ 0 _\nb y @1003 1"
	one, two := "x.1 BUCKET b", "x.2 BUCKET b"
	both := one + ", " + two
	checkRules(t, data, "AFTER 1000000 FOR 5s", [][3]string{
		{"sum(" + both + ")", "8 10 _ 8 _", "1 1 0 1 0"},
		{"sum(x.* BUCKET b)", "8 10 _ 8 _", ""},
		{"avg(" + both + ")", "4 5 _ 4 _", ""},
		{"min(" + both + ")", "2 4 _ 0 _", ""},
		{"max(" + both + ")", "6 6 _ 8 _", ""},
		{"quantile(" + both + ", 1.0)", "6 6 _ 8 _", ""},
		{one + " + " + two, "8 10 _ 8 _", ""},
		{one + " - " + two, "4 2 _ 8 _", ""},
		{"product(" + both + ")", "12 24 _ 0 _", ""},
		{one + " / " + two, "3 1.5 _ _ _", "1 1 0 0 0"},
		{"quotient(" + both + ")", "3 1.5 _ _ _", ""},
		// y takes part at its first value only, and functions of all series wait for it.
		{"sum(" + both + ", y BUCKET b)", "8 10 _ 9 _", ""},
		{"avg(" + both + ", y BUCKET b)", "4 5 _ 3 _", ""},
		{"diff(" + both + ", y BUCKET b)", "_ _ _ 7 _", "0 0 0 1 0"},
		{"y BUCKET b + " + two, "_ _ _ 1 _", ""},
		{"sum(y BUCKET b)", "_ _ _ 1 _", ""},
		{"none BUCKET b + y BUCKET b", "_ _ _ _ _", ""},
		// A held value has the confidence of its point: 0.5 of 4 in the first span.
		{"max(sum(" + one + ", 2s), sum(" + two + ", 2s))", "6 8 _", "0.75 0.5 0"},
		{"sum(sum(" + one + ", 1s), count(" + two + ", 1s))", "7 7 6 9 8", "1 1 0.5 1 0.5"},
	})
	// Both have a value of every slot; the range of the first ends before that of the second.
	checkRules(t, "b x @0 1 2 4 8 16", "BETWEEN 1000 AND 4500", [][3]string{
		{"x BUCKET b, x BUCKET b SHIFT BY 400", "2 4 8 | 1 2 4 8", ""},
		{"sum(x BUCKET b, x BUCKET b SHIFT BY 400)", "3 6 12 16", ""},
		{"x BUCKET b - x BUCKET b SHIFT BY 400", "1 2 4 0", ""},
	})
}

func TestR5Ranks(t *testing.T) {
	data := "b x @1000 6 _ 7 _ 1\nb y @1000 2 4 9 _ 1\nb z @1000 _ 5"
	all := "x BUCKET b, y BUCKET b, z BUCKET b"
	checkRules(t, data, "AFTER 1000000 FOR 5s", [][3]string{
		// At 1001 the 6 of x is held: nothing is shown with k 1, as y and z are less.
		{"topk(" + all + ", 1)", "6 _ _ _ _ | _ _ 9 _ _", "1 0 0 0 0 | 0 0 1 0 0"},
		{"topk(" + all + ", 2)", "6 _ 7 _ 1 | 2 _ 9 _ 1 | _ 5 _ _ _", ""},
		{"bottomk(" + all + ", 1)", "_ _ _ _ 1 | 2 4 _ _ 1", ""},
		{"topk(x BUCKET b, x BUCKET b, 1)", "6 _ 7 _ 1 | 6 _ 7 _ 1", ""},
	})
}

func TestR6Numbers(t *testing.T) {
	checkRules(t, "b x @1000 2 0 _ -3", "AFTER 1000000 FOR 4s", [][3]string{
		{"x BUCKET b + 1", "3 1 _ -2", "1 1 0 1"},
		{"6 - x BUCKET b", "4 6 _ 9", "1 1 0 1"},
		{"6 / x BUCKET b", "3 _ _ -2", "1 0 0 1"},
		{"x BUCKET b / 2", "1 0 _ -1.5", ""},
		{"abs(x BUCKET b)", "2 0 _ 3", "1 1 0 1"},
		{"sqrt_scale(x BUCKET b * 2)", "2 0 _ -2.44949", ""},
		{"log10_scale(x BUCKET b * 5)", "1 0 _ -1.17609", ""},
		{"min(x BUCKET b, 1.0)", "1 0 _ -3", ""},
		{"max(x BUCKET b, 1.0)", "2 1 _ 1", ""},
		{"max(avg(x BUCKET b, 3s), 0.0)", "1 0", "0.666667 1"},
	})
	for _, text := range []string{"x BUCKET b / 0", "divide(x BUCKET b, 0)"} {
		if _, err := Evaluate(fake{}, "SELECT "+text+" LAST 1s", time.UnixMilli(1),
			Old{}); !errors.Is(err, ErrZero) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestR7MovingMeans(t *testing.T) {
	checkRules(t, "b x @998 1 2 3 _ 5 _ _ _ 9", "AFTER 1000000 FOR 7s", [][3]string{
		{"mavg(x BUCKET b, 3s)", "2 _ 4 _ _ _ 9", "1 0 0.666667 0 0 0 0.333333"},
		{"ewma(x BUCKET b, 0.5)", "3 _ 4 _ _ _ 6.5", "1 0 1 0 0 0 1"},
		// 1 - 1/e after 2 s, 1 - 1/e² after 4 s
		{"ewma(x BUCKET b, 2s)", "3 _ 4.26424 _ _ _ 8.35908", ""},
		{"mavg(sum(x BUCKET b, 2s), 4s)", "3 4 _ 9", "0.75 0.5 0 0.5"},
		{"ewma(sum(x BUCKET b, 2s), 1)", "3 5 _ 9", "0.5 0.5 0 1"}, // the last span is short
		{"derivate(ewma(x BUCKET b, 1))", "_ _ 1 _ _ _ 1", ""},     // no ewma before the range
	})
}

func TestR8Fill(t *testing.T) {
	checkRules(t, "b x @999 9 _ 2 _ NaN 5 _", "AFTER 1000000 FOR 6s", [][3]string{
		{"fill(x BUCKET b, null)", "_ 2 _ _ 5 _", "0 1 0 0 1 0"},
		{"fill(x BUCKET b, zero)", "0 2 0 0 5 0", "0 1 0 0 1 0"},
		{"fill(x BUCKET b, previous)", "_ 2 2 2 5 5", "0 1 0 0 1 0"},
		{"fill(x BUCKET b, linear)", "_ 2 3 4 5 _", "0 1 0 0 1 0"},
		{"replace_below_confidence(x BUCKET b, 0.5, 7)", "7 2 7 7 5 7", "0 1 0 0 1 0"},
		{"confidence(x BUCKET b)", "0 1 0 0 1 0", "1 1 1 1 1 1"},
		{"count(fill(x BUCKET b, zero), 3s)", "3 3", "0.333333 0.333333"},
		{"derivate(fill(x BUCKET b, zero))", "-9 2 -2 0 5 -5", ""},
		{"derivate(fill(x BUCKET b, previous))", "_ _ 0 0 3 0", ""}, // it begins with the range
		{"derivate(fill(x BUCKET b, null))", "_ -3.5 _ _ 1 _", ""},
	})
}

func TestR9Histograms(t *testing.T) {
	of := "(histogram(x BUCKET b, 1000, 3, 4s)"
	checkRules(t, "b x @1000 _ 1 4 NaN _ _ _ _ 7 8 -1\nb y @1000 -1", "AFTER 1000000 FOR 11s",
		[][3]string{
			{"max" + of + ")", "4 _ 8", "1 0 1"}, // the last span is short
			{"min" + of + ")", "1 _ 7", "1 0 1"},
			{"mean" + of + ")", "2.5 _ 7.5", "1 0 1"},
			{"stddev" + of + ")", "1.5 _ 0.5", "1 0 1"},
			{"median" + of + ")", "1 _ 7", "1 0 1"},
			{"percentile" + of + ", 100.0)", "4 _ 8", "1 0 1"},
			{"max(histogram(y BUCKET b, 1000, 3, 4s))", "_ _ _", "0 0 0"}, // -1 is not counted
		})
}

func TestR11Limits(t *testing.T) {
	data := "b x @900 99 @1000 1 2\nb y @1000 _ 5\nb z @1000 NaN\nb u @1000 3 _"
	fields := "x BUCKET b, y BUCKET b, z BUCKET b, u BUCKET b AFTER 1000000 FOR 2s "
	for limit, want := range map[string]string{
		"TOP 2 BY max()":         "_ 5 | 3 _",
		"TOP 4 BY max()":         "1 2 | _ 5 | _ _ | 3 _", // no more than four: as they are
		"BOTTOM 3 BY min()":      "1 2 | 3 _ | _ 5",
		"TOP 3 BY last()":        "_ 5 | 3 _ | 1 2",
		"BOTTOM 1 BY count()":    "_ _",
		"TOP 1 BY increase()":    "1 2", // others have no pair
		"BOTTOM 1 BY increase()": "1 2",
	} {
		ruleCase{data: data, query: fields + limit, values: want}.check(t)
	}
}

// With compat gaps are filled, and a result says its coverage alone.
func TestCompat(t *testing.T) {
	data := fakeOf(t, "b x @1000 _ 1 _ 4")
	for query, want := range map[string]string{
		"x BUCKET b":                 "1 1 1 4 4",
		"sum(x BUCKET b, 3s)":        "3 12", // the short last span is continued
		"derivate(x BUCKET b)":       "0 0 0 3 0",
		"6 / (x BUCKET b - 1)":       "6 6 6 2 2",
		"fill(x BUCKET b, zero)":     "0 1 0 4 0",
		"x BUCKET b + none BUCKET b": "1 1 1 4 4",
	} {
		old := Old{Compat: true, Restart: 100_000}
		list, err := Evaluate(data, "SELECT "+query+" AFTER 1000000 FOR 5s", time.UnixMilli(2_000_000),
			old)
		if err != nil {
			t.Fatal(err)
		}
		s := list[0]
		if got := shown(s.Values); got != want {
			t.Errorf("%s = %s, want %s", query, got, want)
		}
		coverage := float64(s.Set) / float64(s.Slots)
		if s.Points != 0 || s.Ended || s.HasPoint || s.Interval != 0 || s.Set != 2 ||
			s.Coverage() != coverage {
			t.Errorf("%s says of itself %+v", query, s)
		}
	}
}
