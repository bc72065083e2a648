package query_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/eventstest"
)

// happening is an event of the naive model.
type happening struct {
	at    int64 // ns
	level string
	n     int64
}

// conditions are filters with what they mean.
var conditions = map[string]func(h *happening) bool{
	"":                      func(*happening) bool { return true },
	" WHERE level == error": func(h *happening) bool { return h.level == "error" },
	" WHERE n > 2 OR level ~= 'o'": func(h *happening) bool {
		return h.n > 2 || strings.Contains(h.level, "o")
	},
	" WHERE NOT n =< 3": func(h *happening) bool { return h.n > 3 },
}

// drawHappenings draws events and writes them into bucket e of a store, and draws gaps that begin
// before past, in ms, of which the store knows nothing.
func drawHappenings(t *rapid.T, past int64) (store *eventstest.Store, all []happening) {
	store = new(eventstest.Store)
	for range rapid.IntRange(1, 60).Draw(t, "events") {
		h := happening{rapid.SampledFrom([]int64{1, 1000, 999_999, 1_000_000, 500_000_000,
			1_000_000_000}).Draw(t, "unit") * rapid.Int64Range(1, 1990).Draw(t, "at"),
			rapid.SampledFrom([]string{"error", "info", "x"}).Draw(t, "level"),
			rapid.Int64Range(0, 6).Draw(t, "n")}
		all = append(all, h)
		body, err := term.AppendFromJSON(nil, fmt.Appendf(nil, `{"level":%q,"n":%d}`, h.level, h.n))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Write("e", []events.Event{{Time: h.at, Body: body}}); err != nil {
			t.Fatal(err)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "gaps") {
		at := rapid.Int64Range(1, past*1_000_000).Draw(t, "gap")
		store.Gaps = append(store.Gaps,
			events.Gap{Start: at, End: at + rapid.Int64Range(1, 90_000_000_000).Draw(t, "long"),
				Events: 1})
	}
	slices.SortFunc(store.Gaps, func(a, b events.Gap) int { return cmp.Compare(a.Start, b.Start) })
	return store, all
}

// unknownSteps returns which steps from start on the series of an answer says are unknown.
func unknownSteps(got *query.Series, start, step int64) []bool {
	unknown := make([]bool, len(got.Values))
	if u := got.Unknown; u != nil {
		for _, r := range u.Ranges {
			for i := (r[0] - start) / step; i < (r[1]-start)/step; i++ {
				unknown[i] = true
			}
		}
	}
	return unknown
}

// TestCountsOfEventsAreTheModel compares counts of events with those of a naive model: events that
// are looked at one by one for each step.
func TestCountsOfEventsAreTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const now = int64(2_000_000)
		m := newMemory(t)
		ttl := rapid.SampledFrom([]int64{0, 0, 700}).Draw(rt, "ttl")
		m.addBucket("e", 1000, ttl)
		store, all := drawHappenings(rt, now)
		e := &query.Engine{Source: sourceOf(m), Events: store, Now: func() time.Time {
			return time.UnixMilli(now)
		}, Cache: query.NewCache(1 << 20)}
		start := rapid.Int64Range(1, now).Draw(rt, "start")
		length := rapid.Int64Range(1, 900_000).Draw(rt, "length")
		step := rapid.Int64Range(max(1, length/300), 2*length).Draw(rt, "step")
		shift := rapid.SampledFrom([]int64{0, 0, 1, 999, 60_000, now, -5000}).Draw(rt, "shift")
		where := rapid.SampledFrom([]string{"", " WHERE level == error", " WHERE n > 2 OR level ~= 'o'",
			" WHERE NOT n =< 3"}).Draw(rt, "where")
		text := fmt.Sprintf("SELECT count(EVENTS FROM e%s SHIFT BY %dms, %dms) AFTER %d FOR %dms", where,
			shift, step, start, length)
		r, err := e.WithRounds(rapid.SampledFrom([]int64{0, 1, 7, 720}).Draw(rt, "rounds")).Query(
			t.Context(), text, query.Options{Confidence: true})
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		got := r.Series[0]
		values, known := naiveCounts(all, store.Gaps, conditions[where], start-shift, start+length-shift,
			step)
		for i := range known {
			// The bucket's lifetime ends at a slot, and steps in which it does are not known.
			if ttl > 0 && (start-shift)+int64(i)*step < now-ttl*1000+1000 {
				known[i] = false
			}
		}
		if len(got.Values) != len(values) || got.Resolution != step {
			rt.Fatalf("%s: %d values every %d ms, want %d", text, len(got.Values), got.Resolution,
				len(values))
		}
		unknown := unknownSteps(&got, start, step)
		for i := range values {
			if at := start - shift + int64(i)*step; unknown[i] == known[i] &&
				(ttl == 0 || at >= now-ttl*1000+1000) {
				rt.Fatalf("%s: value %d: unknown %v, known %v", text, i, unknown[i], known[i])
			}
			if sure := got.Confidence[i] == 1; sure != known[i] || sure && got.Values[i] != values[i] {
				rt.Fatalf("%s: value %d is %v with confidence %v, want %v, known %v", text, i, got.Values[i],
					got.Confidence[i], values[i], known[i])
			}
		}
	})
}

// naiveCounts returns the number of events of each step of a range in ms, and which of them are
// known.
func naiveCounts(all []happening, gaps []events.Gap, want func(*happening) bool, start, end,
	step int64) (values []float64, known []bool) {
	const ms = 1_000_000
	for from := start; from < end; from += step {
		to := min(from+step, end)
		n, sure := 0.0, true
		for i := range all {
			if all[i].at >= from*ms && all[i].at < to*ms && want(&all[i]) {
				n++
			}
		}
		for _, g := range gaps {
			if g.Start < to*ms && g.End > from*ms {
				sure = false
			}
		}
		values, known = append(values, n), append(known, sure)
	}
	return values, known
}

// TestFunctionsTakeCounts compares functions of counts with the same functions of a series that has
// these numbers as its points.
func TestFunctionsTakeCounts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const step, slots = 2000, 400
		m := newMemory(t)
		m.addBucket("e", step, 0)
		var store eventstest.Store
		words := make([]uint64, slots)
		counts := make([]int64, slots)
		for range rapid.IntRange(1, 300).Draw(rt, "events") {
			at := rapid.Int64Range(1, slots*step-1).Draw(rt, "at")
			counts[at/step]++
			if _, err := store.Write("e",
				[]events.Event{{Time: at * 1_000_000, Body: []byte{131, 97, 1}}}); err != nil {
				rt.Fatal(err)
			}
		}
		for i, n := range counts {
			words[i] = point.FromInt(n)
		}
		m.load("e", key(t, "n"), 0, words)
		e := &query.Engine{Source: sourceOf(m), Events: &store, Now: func() time.Time {
			return time.UnixMilli(slots * step)
		}}
		a, b := rapid.Int64Range(1, slots-50).Draw(rt, "from")*step,
			rapid.Int64Range(1, 50).Draw(rt, "length")*step
		form := rapid.SampledFrom([]string{
			"%s", "sum(%s, 10s)", "avg(%s, 6s)", "min(%s, 40s)", "percentile(%s, 0.5, 8s)", "mavg(%s, 8s)",
			"ewma(%s, 0.5)", "derivate(%s)", "rate(%s, 10s)",
			"%s / n BUCKET e", "n BUCKET e - %s * 2", "sum(%s, n BUCKET e)", "quantile(%s, n BUCKET e, 0.5)",
			"confidence(%s)", "avg(sum(%s, 4s), 20s)", "fill(%s, null)",
		}).Draw(rt, "form")
		opt := query.Options{Confidence: true, Align: rapid.Bool().Draw(rt, "align"),
			Width:  rapid.SampledFrom([]int{0, 0, 3, 40}).Draw(rt, "width"),
			Compat: rapid.Bool().Draw(rt, "compat")}
		answer := func(of string) *query.Result {
			text := fmt.Sprintf("SELECT "+form+" AFTER %d FOR %dms", of, a, b)
			r, err := e.WithRounds(rapid.SampledFrom([]int64{0, 1, 7}).Draw(rt, "rounds")).Query(t.Context(),
				text, opt)
			if err != nil {
				rt.Fatalf("%s: %v", text, err)
			}
			return r
		}
		got, want := answer("count(EVENTS FROM e, 2s)"), answer("n BUCKET e")
		for _, list := range [][2][]float64{{got.Series[0].Values, want.Series[0].Values},
			{got.Series[0].Confidence, want.Series[0].Confidence}} {
			if len(list[0]) != len(list[1]) {
				rt.Fatalf("%s: %d values, want %d", form, len(list[0]), len(list[1]))
			}
			for i, v := range list[0] {
				if w := list[1][i]; v != w && !(math.IsNaN(v) && math.IsNaN(w)) {
					rt.Fatalf("%s: value %d is %v, want %v", form, i, v, w)
				}
			}
		}
		if got.Start != want.Start || got.Series[0].Resolution != want.Series[0].Resolution ||
			got.Series[0].Coverage != want.Series[0].Coverage {
			rt.Fatalf("%s: from %d every %d ms with %v, want %d, %d, %v", form, got.Start,
				got.Series[0].Resolution, got.Series[0].Coverage, want.Start, want.Series[0].Resolution,
				want.Series[0].Coverage)
		}
	})
}

// TestCountsAreNotKept asks twice for the same range, and writes an event in between.
func TestCountsAreNotKept(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "n"), 0, ints(100, func(n int64) int64 { return n }))
	var store eventstest.Store
	e := &query.Engine{Source: sourceOf(newHistoried(m)), Events: &store, Now: func() time.Time {
		return time.Unix(1000, 0)
	}, Cache: query.NewCache(1 << 20)}
	for i := range 3 {
		if _, err := store.Write("b",
			[]events.Event{{Time: 50_000_000_000, Body: []byte{131, 97, 1}}}); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"SELECT count(EVENTS FROM b, 100s) AFTER 1 FOR 90s",
			"SELECT sum(n BUCKET b, 90s) * 0 + count(EVENTS FROM b, 90s) AFTER 1 FOR 90s"} {
			r, err := e.Query(t.Context(), text, query.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Series[0].Values[0]; got != float64(i+1) {
				t.Errorf("%s: %v, want %d", text, got, i+1)
			}
		}
	}
}
