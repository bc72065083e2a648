package test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// strangeNames are the buckets and metrics of TestNamesOfAnyBytes.
var strangeNames = []struct {
	bucket string
	key    string
}{
	{"plain", "\x01a"},
	{"zero\x00byte", "\x03\x00\x00\x00"},
	{"quote'\"\\", "\x02a'\x02\\x\x01\""},
	{"line\nbreak\ttab", "\x05a\nb\rc\x00"},
	{"not utf-8 \xff\xfe", "\x02\xff\xc3\x03a.b\x01*"},
	{"schön/../%2F ?&#", "\x06schön\x02..\x04a/%b"},
	{"select", "\x06SELECT\x02 5\x02m$"},
	{"no part list", "\x09abc"},
	{"\\=", "\xff\\='"},
	{strings.Repeat("\x80", 255), "\xff" + strings.Repeat("'", 255) +
		strings.Repeat("\xfa"+strings.Repeat("\x01", 250), 4)},
}

// TestNamesOfAnyBytes: every byte is legal in names. What listings print can be
// given back: in a query, in a path, on the command line.
func TestNamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir)
	slot := past(time.Minute)
	for i, name := range strangeNames {
		send(t, n, name.bucket, []byte(name.key), slot, point.FromInt(int64(i+1)))
	}
	n.kill()
	n = startNode(t, dir)
	buckets, err := n.admin().Buckets(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var printed []string
	for _, b := range buckets {
		printed = append(printed, b.Name)
	}
	wireNames, err := n.dial().Buckets(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range strangeNames {
		if !slices.Contains(wireNames, name.bucket) {
			t.Errorf("BUCKETS lacks %q: %q", name.bucket, wireNames)
		}
		escaped := metric.Escape(name.bucket)
		if !slices.Contains(printed, escaped) {
			t.Errorf("/buckets lacks %s: %q", escaped, printed)
			continue
		}
		checkName(t, n, escaped, name.bucket, name.key, slot, int64(i+1))
	}
}

// lastIs reports whether the last value that is not a gap is a number.
func lastIs(values []*float64, want int64) bool {
	for _, v := range slices.Backward(values) {
		if v != nil {
			return *v == float64(want)
		}
	}
	return false
}

// checkName gives back what is printed for a bucket with one metric.
func checkName(t *testing.T, n *node, escaped, bucket, key string, slot, want int64) {
	t.Helper()
	keys, err := n.dial().List(context.Background(), bucket)
	if err != nil || len(keys) != 1 || keys[0] != key {
		t.Errorf("bucket %s: LIST gives %q: %v", escaped, keys, err)
	}
	if words := get(t, n.dial(), bucket, []byte(key), slot, 1); words[0] != point.FromInt(want) {
		t.Errorf("bucket %s: GET gives %x", escaped, words)
	}
	texts := list(t, n, "/buckets/"+url.PathEscape(escaped))
	if len(texts) != 1 {
		t.Fatalf("bucket %s: /buckets/ gives %q", escaped, texts)
	}
	r := query(t, n, "SELECT "+texts[0]+" BUCKET '"+escaped+"' LAST 5m")
	if len(r.Results) != 1 || len(r.Results[0].Values) != 300 || !lastIs(r.Results[0].Values, want) {
		t.Errorf("bucket %s: the query for %s gives %+v", escaped, texts[0], r)
	}
	// The name of the result is itself a query for it.
	again := query(t, n, "SELECT "+r.Results[0].Name+" LAST 5m")
	if len(again.Results) != 1 || again.Results[0].Name != r.Results[0].Name ||
		!lastIs(again.Results[0].Values, want) {
		t.Errorf("bucket %s: the query for %s gives %+v", escaped, r.Results[0].Name, again)
	}
	// The path takes the parts as the list prints them, without the quotes.
	var path strings.Builder
	path.WriteString("/buckets/" + url.PathEscape(escaped))
	if parts, ok := metric.Parts([]byte(key)); ok {
		for _, p := range parts {
			path.WriteString("/" + url.PathEscape(metric.Escape(string(p))))
		}
	} else {
		path.WriteString("/" + url.PathEscape(texts[0][1:len(texts[0])-1]))
	}
	if below := list(t, n, path.String()); len(below) != 1 || below[0] != texts[0] {
		t.Errorf("%s gives %q", path.String(), below)
	}
	out := run(t, "ddb", "admin", "buckets", "ttl", "--addr", n.http, "--", escaped)
	if out.code != 0 || !strings.Contains(out.out, escaped) {
		t.Errorf("ddb admin buckets ttl %s ends with %d: %s%s", escaped, out.code, out.out, out.errOut)
	}
}

// list returns a JSON list of texts.
func list(t *testing.T, n *node, path string) []string {
	t.Helper()
	status, body := httpGet(t, n, path)
	var out []string
	if err := json.Unmarshal([]byte(body), &out); status != http.StatusOK || err != nil {
		t.Fatalf("%s: status %d, %v: %s", path, status, err, body)
	}
	return out
}
