package test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/haggar"
	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/codec/point"
)

// TestPublishedQueries: verbatim over HTTP, as GET and as POST, on a day of
// haggar's series; in memory, in segments, and after a crash.
func TestPublishedQueries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir)
	r := run(t, "haggar", "-carbon", n.tcp, "-preset", "published", "-backfill", "1d", "-duration",
		"0", "-seed", "3")
	if r.code != 0 {
		t.Fatalf("haggar ends with %d: %s", r.code, r.errOut)
	}
	data := haggar.Data{Preset: haggar.Published, Seed: 3}
	check := func(state string) {
		t.Helper()
		checkMaxima(t, n, state, haggar.WaitQuery, data, 60, 60, 7)
		checkMaxima(t, n, state, haggar.UsageQuery, data, 24, 3600, 0, 1, 2, 3, 4, 5, 6)
	}
	check("in memory")
	checkRate(t, n)
	if _, err := n.admin().Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	check("in segments")
	n.kill()
	n = startNode(t, dir)
	check("after kill -9")
	for _, text := range []string{haggar.WaitQuery, haggar.UsageQuery} {
		status, body := httpGet(t, n, "/?q="+url.QueryEscape(text))
		if status != http.StatusOK || !strings.HasPrefix(body, `{"start":`) {
			t.Errorf("as GET: status %d: %.200s", status, body)
		}
	}
}

// checkMaxima compares a query for maxima with haggar's function. The last
// slots may be younger than the last point: there a query repeats it, which
// changes no maximum.
func checkMaxima(t *testing.T, n *node, state, text string, data haggar.Data, windows, width int,
	numbers ...int) {
	t.Helper()
	r := query(t, n, text)
	if len(r.Results) != len(numbers) {
		t.Fatalf("%s: %d results, want %d", state, len(r.Results), len(numbers))
	}
	c := n.dial()
	for i, number := range numbers {
		result := r.Results[i]
		words := get(t, c, haggar.PublishedBucket, data.AppendKey(nil, 0, number), r.Start/1000,
			windows*width)
		set := slices.IndexFunc(words, func(w uint64) bool { return w == point.Unset })
		if set < 0 {
			set = len(words)
		}
		if share := float64(set) / float64(len(words)); math.Abs(result.Coverage-share) > 1e-9 ||
			share < 0.95 {
			t.Errorf("%s: %s: coverage %v, the first %d of %d slots are set", state, result.Name,
				result.Coverage, set, len(words))
		}
		if len(result.Values) != windows || result.Resolution != int64(width)*1000 {
			t.Fatalf("%s: %s: %d values of %d ms", state, result.Name, len(result.Values), result.Resolution)
		}
		series := data.Series(0, number)
		for w, got := range result.Values {
			want := int64(math.MinInt64)
			for j := w * width; j < min((w+1)*width, set); j++ {
				want = max(want, series.At(r.Start/1000+int64(j)))
			}
			if got == nil || *got != float64(want) {
				t.Errorf("%s: %s, value %d: %s, want %d", state, result.Name, w, show(got), want)
			}
		}
	}
}

// checkRate compares the node's own rate with its points, and their sum with
// the account.
func checkRate(t *testing.T, n *node) {
	t.Helper()
	want := stored(n.account(haggar.PublishedBucket))
	mps := key(t, "dalmatinerdb@127.0.0.1", "mps")
	c := n.dial()
	// A second without points behind it: what is written behind the query is then
	// what the query repeats where it found nothing yet.
	eventually(t, "the node has measured what it stored, and that no more came", func() bool {
		var sum, last uint64
		for _, w := range get(t, c, "dalmatinerdb", mps, past(time.Hour), 3602) {
			if w != point.Unset {
				last = w
				sum += uint64(point.Int(w))
			}
		}
		return sum == want && point.Int(last) == 0
	})
	r := query(t, n, haggar.RateQuery)
	if len(r.Results) != 1 || r.Results[0].Name != "'metrics/s'" || len(r.Results[0].Values) != 12 {
		t.Fatalf("got %+v", r)
	}
	if want := averages(get(t, c, "dalmatinerdb", mps, r.Start/1000, 3600)); !same(r.Results[0],
		want) {
		t.Errorf("the rates are %v, the points make %v", r.Results[0], want)
	}
}

// averages returns the means of the points in 300 slots each, NaN where there is none.
func averages(words []uint64) (out []float64) {
	for chunk := range slices.Chunk(words, 300) {
		sum, n := 0.0, 0.0
		for _, w := range chunk {
			if w != point.Unset {
				sum += point.Float(w)
				n++
			}
		}
		out = append(out, sum/n)
	}
	return out
}

func same(s admin.Series, want []float64) bool {
	for i, v := range s.Values {
		if (v == nil) != math.IsNaN(want[i]) {
			return false
		}
		if v != nil && math.Abs(*v-want[i]) > 1e-9*math.Max(1, want[i]) {
			return false
		}
	}
	return true
}

func show(v *float64) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(*v)
}
