package test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/wire"
)

// staleQueries are asked of a bucket with stale markers and of one without them.
var staleQueries = []string{
	"SELECT jobs.* BUCKET %s", "SELECT jobs.alone BUCKET %s", "SELECT jobs.ended BUCKET %s",
	"SELECT avg(jobs.* BUCKET %s, 60s)",
	"SELECT sum(jobs.* BUCKET %s)", "SELECT min(jobs.* BUCKET %s, 10s)",
	"SELECT count(jobs.* BUCKET %s, 1h)", "SELECT max(jobs.* BUCKET %s, 7s)",
	"SELECT rate(jobs.ended BUCKET %s)", "SELECT increase(jobs.ended BUCKET %s, 60s)",
	"SELECT derivate(jobs.* BUCKET %s)",
	"SELECT percentile(jobs.* BUCKET %s, 0.9, 60s)", "SELECT mavg(jobs.ended BUCKET %s, 10s)",
	"SELECT first(jobs.* BUCKET %s, 1h)",
	"SELECT last(jobs.* BUCKET %s, 1h)", "SELECT jobs.ended BUCKET %[1]s + jobs.live BUCKET %[1]s",
}

// TestStaleMarkers: what an acknowledged stream sends of them is there for our client, from memory,
// log and files. Nobody else sees any: not clients of the original, and not queries, which answer
// as if there were none.
func TestStaleMarkers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir, "--set", "wal.sync=always")
	base := past(time.Hour)
	words := map[string][]uint64{"alone": {point.Unset, point.Stale, point.Unset, point.Stale}}
	for i := range int64(900) { // more than a chunk
		words["live"] = append(words["live"], point.FromInt(1000-i))
		if i%10 == 0 {
			words["ended"] = append(words["ended"],
				append([]uint64{point.FromFloat(float64(i) / 8)}, make([]uint64, 9)...)...)
		}
	}
	words["ended"] = append(words["ended"], point.Stale)
	words["back"] = []uint64{point.FromInt(1), point.Stale, point.Stale, point.FromInt(-4)}
	for name, list := range words {
		plain := slices.Clone(list)
		point.HideStale(plain)
		send(t, n, "marked", key(t, "jobs", name), base, list...)
		send(t, n, "plain", key(t, "jobs", name), base, plain...)
	}
	// Values stay, whatever comes behind them, and take the place of a marker.
	send(t, n, "marked", key(t, "jobs", "back"), base, point.Stale, point.FromInt(7), point.Stale,
		point.Stale)
	send(t, n, "plain", key(t, "jobs", "back"), base+1, point.FromInt(7))
	words["back"][1] = point.FromInt(7)
	if row := n.account("marked"); stored(row) != 2+90+1+900+2*4 || row.Unset != 2+90*9 {
		t.Errorf("the account of the markers: %+v", row)
	}
	check := func(when string) {
		t.Helper()
		for name, want := range words {
			if got := get(t, n.dial(), "marked", key(t, "jobs", name), base, len(want)); !slices.Equal(got,
				want) {
				t.Fatalf("%s: %s has %x, want %x", when, name, got, want)
			}
			old := slices.Clone(want)
			point.HideStale(old)
			for i, w := range oldGet(t, n, "marked", key(t, "jobs", name), base, len(old)) {
				if w != point.EvenWord(old[i]) {
					t.Fatalf("%s: of slot %d of %s old clients get %x, want %x", when, i, name, w,
						point.EvenWord(old[i]))
				}
			}
		}
		for _, text := range staleQueries {
			got, want := staleAnswer(t, n, text, "marked", base), staleAnswer(t, n, text, "plain", base)
			if got != want {
				t.Fatalf("%s: %s is answered with\n%s\nand without markers with\n%s", when, text, got, want)
			}
		}
	}
	restart := func() {
		n.kill()
		n = startNode(t, dir, "--set", "wal.sync=always")
	}
	check("in memory")
	restart()
	check("behind a kill")
	if _, err := n.admin().Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	check("flushed")
	restart()
	check("behind a flush and a kill")
	if r, err := n.admin().Check(context.Background(), 0, func(fsck.Progress) {}); err != nil ||
		r.Damaged > 0 {
		t.Errorf("check: %+v, %v", r, err)
	}
}

// staleAnswer returns the answer to a query, by its text but for the name of the bucket and times.
func staleAnswer(t *testing.T, n *node, text, bucket string, base int64) string {
	t.Helper()
	text = fmt.Sprintf(text, bucket) + fmt.Sprintf(" BETWEEN %d AND %d", (base-100)*1000,
		(base+1000)*1000)
	resp, err := http.Get("http://" + n.http + "/?" + url.Values{"q": {text}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s, %v", text, resp.Status, body, err)
	}
	answer := regexp.MustCompile(`"query_time":\d+`).ReplaceAllString(string(body), "")
	return strings.ReplaceAll(answer, bucket, "bucket")
}

// TestStaleMarkersOfOldClients: on a stream that clients of the original know, all words of their
// type are unset.
func TestStaleMarkersOfOldClients(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	slot, k := past(time.Minute), key(t, "old")
	s, err := n.dial().OpenStream("b", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Point(k, slot, point.Stale); err == nil {
		t.Error("our client sends stale markers where they are unset")
	}
	raw := wire.AppendEntry(nil, k, uint64(slot), point.FromInt(1), point.Stale, point.Stale+1)
	raw = wire.AppendBatchEnd(wire.AppendBatchPoint(wire.AppendBatchStart(raw, uint64(slot+3)), k,
		point.Stale))
	if err := s.Write(wire.AppendFlush(raw)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the points are counted", func() bool { return n.account("b").Received == 4 })
	if row := n.account("b"); row.Accepted != 1 || row.Unset != 3 {
		t.Errorf("the account: %+v", row)
	}
	want := []uint64{point.FromInt(1), 0, 0, 0}
	if got := get(t, n.dial(), "b", k, slot, 4); !slices.Equal(got, want) {
		t.Errorf("%x is there, want %x", got, want)
	}
}
