package query_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/query"
)

// The first and the last value of every field cover the range that was asked for, whatever
// steps stand beside each other, and no value begins behind it.
func TestAlignedRangesCoverWhatIsAsked(t *testing.T) {
	const minute, hour, day = 60_000, 3_600_000, 86_400_000
	m := newMemory(t)
	for _, b := range []struct {
		name       string
		resolution int64
	}{{"s", 1000}, {"m", minute}, {"h", hour}} {
		m.addBucket(b.name, b.resolution, 0)
		m.load(b.name, key(t, "x"), 0, ints(10, func(i int64) int64 { return i }))
	}
	spans := []string{"17s", "1m", "90s", "5m", "30m", "1h", "7h", "1d", "1w"}
	rapid.Check(t, func(rt *rapid.T) {
		bucket, longest := "s", int64(2*hour)
		switch rapid.IntRange(0, 2).Draw(rt, "scale") {
		case 1:
			bucket, longest = "m", 30*day
		case 2:
			bucket, longest = "h", 730*day
		}
		length := rapid.Int64Range(minute, longest).Draw(rt, "length")
		now := 3*730*day + rapid.Int64Range(0, day).Draw(rt, "now")
		fields := []string{"x BUCKET " + bucket}
		for range rapid.IntRange(0, 3).Draw(rt, "fields") {
			fields = append(fields,
				fmt.Sprintf("avg(x BUCKET %s, %s)", bucket, rapid.SampledFrom(spans).Draw(rt, "span")))
		}
		end, text := now, fmt.Sprintf("SELECT %s LAST %dms", strings.Join(fields, ", "), length)
		if rapid.Bool().Draw(rt, "past") {
			end = now - rapid.Int64Range(1, 100*day).Draw(rt, "before")
			text = fmt.Sprintf("SELECT %s BEFORE %d FOR %dms", strings.Join(fields, ", "), end, length)
		}
		width := rapid.IntRange(200, 4000).Draw(rt, "width")
		r, err := engine(m, now).Query(t.Context(), text, query.Options{Align: true, Width: width})
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		for _, s := range r.Series {
			n := int64(len(s.Values))
			last := s.Start + (n-1)*s.Resolution
			// A range is cut to whole slots of the bucket, so what covers it may begin within one.
			slot := s.BucketResolution
			if s.Start > end-length || last+s.Resolution < end-end%slot || last >= end ||
				len(s.Values) > width {
				rt.Fatalf("%s, width %d: %s has %d values every %d ms from %d to %d, asked for %d to %d", text,
					width,
					s.Name, n, s.Resolution, s.Start, last+s.Resolution, end-length, end)
			}
		}
	})
}
