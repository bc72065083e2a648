package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// longParts is how many parts the names of longName have.
const longParts = 241

// longName returns the parts of the name of a series, some 60 KB.
func longName(series int) []string {
	parts := []string{fmt.Sprintf("s%05d", series)}
	for i := range longParts - 1 {
		parts = append(parts, fmt.Sprintf("%05d %03d %s", series, i, strings.Repeat("x", 240)))
	}
	return parts
}

// tagsOf returns the line that gives a series ten long tags and a short one.
func tagsOf(t *testing.T, series int) []byte {
	t.Helper()
	tags := map[string]string{"n": fmt.Sprint(series)}
	for i := range 10 {
		tags[fmt.Sprintf("long%d", i)] = fmt.Sprintf("%05d %d %s", series, i, strings.Repeat("v", 4000))
	}
	of := map[string]any{"bucket": "long", "metric": longName(series), "tags": tags}
	line, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return append(line, '\n')
}

// fillWithLongNames sends series and their tags until the node refuses some.
func fillWithLongNames(t *testing.T, n *node, slot int64) {
	t.Helper()
	s := openAcked(t, n, "long")
	var lines strings.Builder
	for i, refused := 0, uint64(0); refused == 0; i++ {
		s.point(key(t, longName(i)...), slot, point.FromInt(int64(i)))
		lines.Write(tagsOf(t, i))
		if i%5 != 4 { // as many as fit into a body
			continue
		}
		refused = s.flush().Refused
		in, err := n.admin().ImportTags(context.Background(), strings.NewReader(lines.String()))
		if err != nil {
			t.Fatal(err)
		}
		refused += uint64(in.Refused)
		lines.Reset()
	}
}

// TestSmallQueriesBesideLongNames: names of 60 KB and ten long tags a series fill the memory up to
// its limit. Who asks for little is answered: what others have is not charged.
func TestSmallQueriesBesideLongNames(t *testing.T) {
	n := startNode(t, t.TempDir(), "--set", "memory.limit=256MB", "--set", "storage.min_free=0")
	slot := past(time.Minute)
	fillWithLongNames(t, n, slot)
	if level := n.figure("memory_level"); level < 2 {
		t.Fatalf("the level of memory is %v", level)
	}
	seven := metric.Text(key(t, longName(7)...))
	stars := "'s00007'" + strings.Repeat(".*", longParts-1)
	const one = "ALL FROM long WHERE n = '7'"
	for _, q := range []string{
		"SELECT " + seven + " BUCKET long LAST 5m",
		"SELECT avg(" + seven + " BUCKET long, 10s) LAST 5m",
		"SELECT " + stars + " BUCKET long LAST 5m",
		"SELECT sum(" + stars + " BUCKET long) LAST 5m",
		"SELECT " + one + " LAST 5m",
		"SELECT " + one + " AS $n METADATA {'a': $long1} LAST 5m",
		"SELECT " + one + " OR n = '8' OR n = '9' LAST 5m",
		"SELECT sum(" + one + " OR long3 =~ '0001[0-3].*') LAST 5m",
		"SELECT ALL FROM long WHERE ddb:part_1 = 's00007' LAST 5m",
		"SELECT EVENTS FROM long LAST 5m",
		"SELECT " + one + ", count(EVENTS FROM long, 1s) LAST 5m",
		"EXPLAIN SELECT " + one + " LAST 5m",
	} {
		resp, err := http.PostForm("http://"+n.http+"/", url.Values{"q": {q}})
		wantOK(t, q, resp, err)
	}
	for _, path := range []string{
		"/tags/values?name=n&collection=long&limit=10", "/tags/values?name=n&limit=1000",
		"/tags/values?name=long1&collection=long&limit=3", "/tags/names",
		"/tags/names?collection=long&limit=10", "/tags/top?by=names", "/tags/top?by=values&name=n",
		"/tags/top?by=buckets", "/tags/top?by=prefixes", "/collections",
		"/collections/long/namespaces", "/collections/long/namespaces//tags/n/values?limit=2",
		"/collections/long/metrics?limit=2", "/collections/long/metrics?depth=1&limit=9",
		"/buckets", "/buckets/long?limit=5", "/buckets/long?contains=s00007&limit=1",
		"/buckets/long/s00007", "/buckets/long?depth=1", "/admin/status",
	} {
		resp, err := http.Get("http://" + n.http + path)
		wantOK(t, path, resp, err)
	}
	c := n.dial()
	keys, err := c.ListPrefix(context.Background(), "long", []byte("\x06s00007"))
	if err != nil || len(keys) != 1 {
		t.Errorf("LIST of a prefix has %d keys: %v", len(keys), err)
	}
	if words := get(t, c, "long", key(t, longName(7)...), slot, 1); words[0] != point.FromInt(7) {
		t.Errorf("GET gives %x", words)
	}
	if level := n.figure("memory_level"); level < 2 {
		t.Errorf("the level of memory is %v in the end", level)
	}
	n.stop()
}

// wantOK reads an answer, which has to be 200.
func wantOK(t *testing.T, what string, resp *http.Response, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%.100s: %v", what, err)
		return
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%.100s: %d, %v: %.300s", what, resp.StatusCode, err, body)
	}
}
