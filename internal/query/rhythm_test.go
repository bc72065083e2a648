package query_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/point"
	"dalmatiner/internal/query"
)

// TestRhythmOfASlowSender: of a sender that is slower than its bucket, what stands no
// further than one and a half times its rhythm behind a point is no gap, and what is
// damaged is; nothing else differs from what confidences say without.
func TestRhythmOfASlowSender(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const res, slots = 1000, 600
		every := rapid.Int64Range(1, 20).Draw(rt, "every")
		at := rapid.Int64Range(0, 40).Draw(rt, "first")
		words := make([]uint64, slots)
		for n := int64(0); at < slots; n++ {
			if rapid.IntRange(0, 9).Draw(rt, "misses") > 0 {
				words[at] = point.FromInt(100 * n)
			}
			at += every
			if rapid.IntRange(0, 9).Draw(rt, "late") == 0 {
				at += rapid.Int64Range(0, every/2).Draw(rt, "by")
			}
		}
		m := newMemory(t)
		m.addBucket("b", res, 0)
		m.load("b", key(t, "m"), 0, words)
		d := damaged{memory: m, lost: map[string][]query.Unknown{}}
		var holes []query.Unknown
		if rapid.Bool().Draw(rt, "damaged") {
			from := rapid.Int64Range(0, slots-1).Draw(rt, "hole")
			holes = []query.Unknown{{From: from, Past: from + rapid.Int64Range(1, 50).Draw(rt, "long"), Why: "x"}}
			d.lost[string(key(t, "m"))] = holes
		}
		e := engine(d, slots*res)
		start := rapid.Int64Range(1, 300_000).Draw(rt, "start")
		of := rapid.SampledFrom([]string{"m BUCKET b", "rate(m BUCKET b)", "derivate(m BUCKET b)", "avg(m BUCKET b, 3s)"}).Draw(rt, "of")
		times := fmt.Sprintf(" AFTER %d FOR %dms", start, rapid.Int64Range(1, 400_000).Draw(rt, "length"))
		text := "SELECT " + of + times
		series := func(text string, o query.Options) query.Series {
			r, err := e.Query(t.Context(), text, o)
			if err != nil {
				rt.Fatalf("%s: %v", text, err)
			}
			return r.Series[0]
		}
		ask := func(o query.Options) query.Series { return series(text, o) }
		past := start/res + int64(len(series("SELECT m BUCKET b"+times, query.Options{}).Values)) // of what is read
		width := rapid.SampledFrom([]int{0, 0, 7, 100}).Draw(rt, "width")
		plain, got := ask(query.Options{Confidence: true, Width: width}), ask(query.Options{Confidence: true, Rhythm: true, Width: width})
		if !slices.Equal(got.Values, plain.Values) && width == 0 {
			rt.Fatalf("%s: values are %v, without %v", text, got.Values, plain.Values)
		}
		for i, c := range plain.Confidence {
			want := c > 0
			slow := plain.Interval > plain.BucketResolution && plain.Interval > plain.Resolution
			slot := func(i int) int64 { return start/res + int64(i)*plain.Resolution/res }
			for j := i; !want && slow && j >= 0; j-- {
				if slices.ContainsFunc(holes, func(u query.Unknown) bool { return u.From < min(slot(j+1), past) && slot(j) < u.Past }) && plain.Confidence[j] == 0 {
					break
				}
				want = plain.Confidence[j] > 0 && 2*int64(i-j)*plain.Resolution < 3*plain.Interval
			}
			if has := got.Confidence[i] > 0; has != want {
				rt.Fatalf("%s, a point every %d ms, %d of %d ms: a value is %v, want %v\nwithout %v\nwith    %v\nunknown %+v",
					text, plain.Interval, i, plain.Resolution, has, want, plain.Confidence, got.Confidence, holes)
			}
		}
	})
}
