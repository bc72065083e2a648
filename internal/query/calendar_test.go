package query_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/calendar"
)

// windowFunctions are functions of windows, computed from all their values, and of how many slots.
var windowFunctions = map[string]func(v []float64, slots int) float64{
	"sum":   func(v []float64, _ int) float64 { return total(v) },
	"avg":   func(v []float64, _ int) float64 { return total(v) / float64(len(v)) },
	"min":   func(v []float64, _ int) float64 { return slices.Min(v) },
	"max":   func(v []float64, _ int) float64 { return slices.Max(v) },
	"first": func(v []float64, _ int) float64 { return v[0] },
	"last":  func(v []float64, _ int) float64 { return v[len(v)-1] },
	"count": func(v []float64, _ int) float64 { return float64(len(v)) },
	"empty": func(v []float64, slots int) float64 { return float64(slots - len(v)) },
	"median": func(v []float64, _ int) float64 {
		v = slices.Sorted(slices.Values(v))
		return v[(len(v)-1)/2]
	},
}

func total(v []float64) (sum float64) {
	for _, f := range v {
		sum += f
	}
	return sum
}

// localWindow names the window of a step that a time lies in, by the date on the clocks there.
func localWindow(t time.Time, step string) string {
	year, month, day := t.Date()
	switch step {
	case "1d":
		return fmt.Sprintf("%d-%d-%d", year, month, day)
	case "1w":
		year, week := t.ISOWeek()
		return fmt.Sprintf("%d week %d", year, week)
	case "1mo":
		return fmt.Sprintf("%d-%d", year, month)
	}
	return fmt.Sprint(year)
}

// Windows of the calendar hold what a walk over the slots finds, each looked up in its zone:
// however they are read, in rounds of any length.
func TestCalendarWindowsEqualAWalk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		zoneName := rapid.SampledFrom([]string{"UTC", "Europe/Zagreb", "America/New_York",
			"America/Havana",
			"Australia/Lord_Howe", "Asia/Kathmandu"}).Draw(rt, "zone")
		zone, err := calendar.Zone(zoneName)
		if err != nil {
			rt.Fatal(err)
		}
		res := rapid.SampledFrom([]int64{900_000, 3_600_000, 10_800_000}).Draw(rt, "resolution")
		step := rapid.SampledFrom([]string{"1d", "1w", "1mo", "1y"}).Draw(rt, "step")
		first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() / res
		n := rapid.IntRange(1, 4000).Draw(rt, "slots")
		dense := rapid.Bool().Draw(rt, "dense")
		words := ints(n, func(i int64) int64 { return i*7919%1000 - 300 })
		if !dense {
			for range rapid.IntRange(1, 5).Draw(rt, "gaps") {
				from := rapid.IntRange(0, n-1).Draw(rt, "gap")
				for i := from; i < min(n, from+rapid.IntRange(1, 400).Draw(rt, "length")); i++ {
					words[i] = point.Unset
				}
			}
		}
		m := newMemory(t)
		m.addBucket("b", res, 0)
		m.load("b", key(t, "m", "0"), first, words)
		m.load("b", key(t, "m", "1"), first, words)
		shift := rapid.SampledFrom([]int64{0, 0, 3_600_000, 86_400_000, 1_234_567}).Draw(rt, "shift")
		start := first*res + shift + rapid.Int64Range(0, int64(n)).Draw(rt, "from")*res +
			rapid.SampledFrom([]int64{0, 1, res - 1}).Draw(rt, "ms")
		end := start + rapid.Int64Range(0, int64(n)+100).Draw(rt, "length")*res +
			rapid.SampledFrom([]int64{1, res - 1}).Draw(rt, "ms")
		of := fmt.Sprintf("m.0 BUCKET b SHIFT BY %d", shift)
		var names, fields []string
		for range rapid.IntRange(1, 3).Draw(rt, "fields") {
			name := rapid.SampledFrom(slices.Sorted(maps.Keys(windowFunctions))).Draw(rt, "function")
			names, fields = append(names, name), append(fields, fmt.Sprintf("%s(%s, %s)", name, of, step))
		}
		fields = append(fields, fmt.Sprintf("sum(sum(m.* BUCKET b SHIFT BY %d, %s)) / 2", shift, step))
		text := fmt.Sprintf(`SELECT %s BETWEEN %d AND %d TZ "%s"`, strings.Join(fields, ", "), start, end,
			zoneName)
		for _, without := range []bool{false, true} {
			e := engine(adder{m}, end+1).WithRounds(rapid.Int64Range(1, 900).Draw(rt, "rounds"))
			e.Readers = query.NewReaders(rapid.IntRange(0, 3).Draw(rt, "readers"))
			r, err := e.Query(t.Context(), text, query.Options{NoAggregates: without, Confidence: true})
			if err != nil {
				rt.Fatalf("%s: %v", text, err)
			}
			times := r.Series[0].Times
			windows := walk(rt, words, first, res, shift, start, end, times, zone, step)
			for i, s := range r.Series {
				if i == len(names) && !dense {
					continue // a series counts with its last window for a while
				}
				if err := compareWindows(s, append(names, "sum")[i], times, windows); err != nil {
					rt.Fatalf("%s, without aggregates %v: series %d: %v", text, without, i, err)
				}
			}
		}
	})
}

// compareWindows compares a series with what a walk finds.
func compareWindows(s query.Series, name string, times []int64, windows []window) error {
	if !slices.Equal(s.Times, times) || len(s.Values) != len(times) ||
		len(s.Confidence) != len(times) {
		return fmt.Errorf("%d values and %d confidences of %d windows", len(s.Values), len(s.Confidence),
			len(times))
	}
	for j, got := range s.Values {
		w := windows[j]
		want, sure := math.NaN(), float64(len(w.values))/float64(max(1, w.slots))
		if len(w.values) > 0 || name == "count" || name == "empty" {
			want = windowFunctions[name](w.values, w.slots)
		}
		if (got == got) != (want == want) || math.Abs(got-want) > 1e-9 {
			return fmt.Errorf("%s of window %d is %v, want %v", name, j, got, want)
		}
		if math.Abs(s.Confidence[j]-sure) > 1e-9 {
			return fmt.Errorf("the confidence of window %d is %v, want %v", j, s.Confidence[j], sure)
		}
	}
	return nil
}

// window is what a walk finds in one.
type window struct {
	values []float64
	slots  int
}

// walk puts every slot of a range into the window it begins in, and checks that it is of that day,
// week, month or year.
func walk(rt *rapid.T, words []uint64, first, res, shift, start, end int64, times []int64,
	zone *time.Location, step string) []window {
	list := make([]window, len(times))
	from, past := floor(start-shift, res), floor(end-shift, res)
	for slot := from; slot < past; slot++ {
		at := max(slot*res+shift, start)
		i := len(times) - 1
		for times[i] > at {
			i--
		}
		if a, b := localWindow(time.UnixMilli(times[i]).In(zone), step),
			localWindow(time.UnixMilli(at).In(zone), step); a != b {
			rt.Fatalf("%v of %s is in the window of %s", time.UnixMilli(at).In(zone), b, a)
		}
		list[i].slots++
		if n := slot - first; n >= 0 && n < int64(len(words)) && words[n] != point.Unset {
			list[i].values = append(list[i].values, point.Float(words[n]))
		}
	}
	return list
}

func floor(ms, res int64) int64 { return int64(math.Floor(float64(ms) / float64(res))) }

// An aligned range begins where the longest window does, and ends where it was asked for.
func TestAlignedCalendarWindows(t *testing.T) {
	m := newMemory(t)
	m.addBucket("b", 3_600_000, 0)
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() / 3_600_000
	m.load("b", key(t, "m"), first, ints(24*365, func(int64) int64 { return 1 }))
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	for _, width := range []int{0, 100} {
		e := engine(m, now)
		e.Cache = query.NewCache(1 << 20)
		r, err := e.Query(t.Context(),
			`SELECT sum(m BUCKET b, 1d), sum(m BUCKET b, 1mo), sum(m BUCKET b, 6h) LAST 1mo TZ "Europe/Zagreb"`,
			query.Options{Align: true, Width: width})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range r.Series {
			last := s.Start + int64(len(s.Values)-1)*s.Resolution
			if s.Times != nil {
				last = s.Times[len(s.Values)-1]
			}
			got += fmt.Sprintf("%d from %s to %s, ", len(s.Values),
				time.UnixMilli(s.Start).UTC().Format("01-02 15:04"),
				time.UnixMilli(last).UTC().Format("01-02 15:04"))
		}
		want := "51 from 09-30 22:00 to 11-19 23:00, 2 from 09-30 22:00 to 10-31 23:00, 203 from 09-30 " +
			"22:00 to 11-20 10:00, "
		if width > 0 {
			want = "32 from 10-19 22:00 to 11-19 23:00, 2 from 09-30 22:00 to 10-31 23:00, 63 from 10-20 " +
				"10:00 to 11-20 10:00, "
		}
		if got != want {
			t.Errorf("width %d: %s\nwant %s", width, got, want)
		}
	}
	_, err := engine(m, now).Query(t.Context(), `SELECT sum(m BUCKET b, 1d) LAST 1y`,
		query.Options{Width: 100})
	if err != nil {
		t.Errorf("days of 24 hours do share columns: %v", err)
	}
	_, err = engine(m, now).Query(t.Context(), `SELECT sum(m BUCKET b, 1d) LAST 1y TZ UTC`,
		query.Options{Width: 100})
	if err == nil || !strings.Contains(err.Error(),
		"at least 366 spans of 1d, which cannot share a column, the limit is 100") {
		t.Errorf("more days than columns: %v", err)
	}
}
