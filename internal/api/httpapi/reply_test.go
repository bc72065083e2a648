package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	seam "dalmatiner/internal/query/source"
)

func TestLongAnswersAreCompressed(t *testing.T) {
	o := testOptions(newFakeStore(t))
	o.Engine = engineFunc(func(_ context.Context, text string) (*query.Result, error) {
		if text == "short" {
			return &query.Result{}, nil
		}
		return manyValues(), nil
	})
	h := New(o)
	plain := ask("long").send(h)
	if plain.Header().Get("Content-Encoding") != "" {
		t.Error("compressed without being asked")
	}
	for accept, packed := range map[string]bool{
		"gzip": true, "deflate, GZIP;q=0.5": true, "*": true, "x-gzip": true,
		"gzip;q=0": false, "gzip; q=0.000": false, "br": false, "": false, "identity": false,
	} {
		w := ask("long", "Accept-Encoding: "+accept).send(h)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("%q: compressed %v", accept, got)
			continue
		}
		body := w.Body.Bytes()
		if packed {
			body = unzip(t, body)
		}
		if !bytes.Equal(body, plain.Body.Bytes()) {
			t.Errorf("%q: another answer", accept)
		}
		if w.Header().Get("Vary") != "Accept, Accept-Encoding" {
			t.Errorf("%q: Vary is %q", accept, w.Header().Get("Vary"))
		}
	}
	if w := ask("short", "Accept-Encoding: gzip").send(h); w.Header().Get("Content-Encoding") != "" ||
		!strings.HasPrefix(w.Body.String(), "{") {
		t.Errorf("a short answer: %v %q", w.Header(), w.Body)
	}
}

func unzip(t *testing.T, packed []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestReplyIsTheSameInAnyPieces: compressed or not, whatever is written comes
// out, with the status.
func TestReplyIsTheSameInAnyPieces(t *testing.T) {
	all := newPackers()
	rapid.Check(t, func(rt *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 900), 0, 8).Draw(rt, "pieces")
		w := httptest.NewRecorder()
		out := &reply{ResponseWriter: w, packers: all}
		out.WriteHeader(http.StatusTeapot)
		for _, p := range pieces {
			if n, err := out.Write(p); n != len(p) || err != nil {
				rt.Fatalf("%d, %v", n, err)
			}
		}
		out.end(true)
		got := w.Body.Bytes()
		if w.Header().Get("Content-Encoding") == "gzip" {
			got = unzip(t, got)
		}
		want := bytes.Join(pieces, nil)
		if !bytes.Equal(got, want) || w.Code != http.StatusTeapot {
			rt.Fatalf("%d bytes with %d, want %d", len(got), w.Code, len(want))
		}
		if packed := w.Header().Get("Content-Encoding") == "gzip"; packed != (len(want) >= worthPacking) {
			rt.Fatalf("%d bytes, compressed %v", len(want), packed)
		}
	})
	if len(all) != packersAtOnce {
		t.Errorf("%d of %d compressors came back", len(all), packersAtOnce)
	}
}

// TestBusyPackers: when all compressors are in use, answers go out as they are.
func TestBusyPackers(t *testing.T) {
	o := testOptions(newFakeStore(t))
	o.Engine = engineFunc(func(context.Context, string) (*query.Result, error) {
		return manyValues(), nil
	})
	h := New(o).(*api)
	for range packersAtOnce {
		<-h.packers
	}
	w := ask("x", "Accept-Encoding: gzip").send(h)
	if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "" ||
		!strings.HasPrefix(w.Body.String(), "{") {
		t.Errorf("%d %v %.20q", w.Code, w.Header(), w.Body)
	}
}

// TestCutListIsNoWholeArchive: a compressed list that is cut short reads as
// broken.
func TestCutListIsNoWholeArchive(t *testing.T) {
	s := newFakeStore(t)
	fillBucket(s, sortedNames+10)
	s.failure = errBroken
	h := New(testOptions(s)).(*api)
	server := httptest.NewServer(h)
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "/buckets/b") // the transport asks for gzip
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if !resp.Uncompressed {
		t.Error("not compressed")
	}
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%d bytes read as whole", len(body))
	}
	if len(h.packers) != packersAtOnce {
		t.Errorf("%d of %d compressors came back", len(h.packers), packersAtOnce)
	}
}

func TestHeadHasTheHeadersOnly(t *testing.T) {
	server := httptest.NewServer(New(testOptions(newFakeStore(t))))
	defer server.Close()
	for _, path := range []string{"/health", "/buckets", "/buckets/b", "/?q=SELECT+t+BUCKET+b+LAST+1s",
		"/collections", "/metrics", "/admin/status"} {
		got, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		head, err := server.Client().Head(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(head.Body)
		head.Body.Close()
		if err != nil || len(body) != 0 || head.StatusCode != got.StatusCode ||
			head.Header.Get("Content-Type") != got.Header.Get("Content-Type") {
			t.Errorf("%s: %d bytes, %v; %v and %v", path, len(body), err, head.Header, got.Header)
		}
	}
}

func TestSecurityHeaders(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	for _, r := range []request{get("/health"), get("/nowhere"), get("/admin/status"),
		get("/", "Accept: text/html")} {
		w := r.send(h)
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", r.target, name, got)
			}
		}
		if cors := w.Header().Get("Access-Control-Allow-Origin"); (cors == "*") == strings.HasPrefix(
			r.target, "/admin") {
			t.Errorf("%s: open to %q", r.target, cors)
		}
	}
	if csp := get("/", "Accept: text/html").send(h).Header().Get(
		"Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("the page has the policy %q", csp)
	}
}

// blocking is a source whose reads end only with their query.
type blocking struct {
	source
	reading chan struct{} // closed by the first read, if there is one
}

func (b blocking) Bucket(name string) (seam.Bucket, error) {
	of, err := b.source.Bucket(name)
	return blockingBucket{of, b}, err
}

type blockingBucket struct {
	seam.Bucket
	of blocking
}

func (b blockingBucket) Series(key []byte) seam.Series {
	return blockingSeries{b.Bucket.Series(key), b.of}
}

type blockingSeries struct {
	seam.Series
	of blocking
}

func (s blockingSeries) Read(ctx context.Context, _ int64, _ []uint64) (seam.Cost, error) {
	b := s.of
	if b.reading != nil {
		close(b.reading)
	}
	<-ctx.Done()
	return seam.Cost{}, ctx.Err()
}

// TestDisconnectFreesTheTurn: a client that leaves ends its query in the middle
// of a read, and nobody is answered.
func TestDisconnectFreesTheTurn(t *testing.T) {
	s := newFakeStore(t)
	o := testOptions(s)
	reading := make(chan struct{})
	o.Engine = &query.Engine{Source: blocking{source: source{s}, reading: reading}, Now: time.Now}
	o.MaxQueries = 1
	h := New(o).(*api)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	done := make(chan int)
	go func() {
		r := ask("SELECT t BUCKET b LAST 1s")
		req := httptest.NewRequestWithContext(ctx, r.method, r.target, nil)
		done <- r.sendRequest(h, req).Body.Len()
	}()
	<-reading
	leave()
	if n := <-done; n != 0 {
		t.Errorf("%d bytes for nobody", n)
	}
	if len(h.turns) != 0 {
		t.Error("the turn is still taken")
	}
	if line := `dalmatiner_http_requests_total{route="/",status="499"} 1`; !strings.Contains(
		get("/metrics").send(h).Body.String(), "\n"+line) {
		t.Errorf("no line %s", line)
	}
}

// TestQueryTimeout: a query that takes too long ends, says so, is counted and
// logged; its turn is free again.
func TestQueryTimeout(t *testing.T) {
	s := newFakeStore(t)
	o := testOptions(s)
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.Engine = &query.Engine{Source: blocking{source: source{s}}, Now: time.Now}
	o.MaxQueries, o.QueryTimeout, o.SlowQuery = 1, 5*time.Millisecond, time.Millisecond
	h := New(o)
	for range 2 {
		w := ask("SELECT t BUCKET b LAST 1s").send(h)
		if w.Code != http.StatusServiceUnavailable ||
			!strings.Contains(w.Body.String(), "given up after 5ms, the limit is query.timeout") {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
	if n := s.ledger.Requests()[reasonTimeout]; n != 2 {
		t.Errorf("counted %d times", n)
	}
	if !strings.Contains(log.String(), "slow query") ||
		!strings.Contains(log.String(), "SELECT t BUCKET b LAST 1s") {
		t.Errorf("the log has\n%s", &log)
	}
	page := get("/metrics").send(h).Body.String()
	for _, line := range []string{
		"dalmatiner_http_query_seconds_count 2", "dalmatiner_http_queries_running 0",
		`dalmatiner_http_requests_total{route="/",status="503"} 2`,
	} {
		if !strings.Contains(page, "\n"+line) {
			t.Errorf("no line %s", line)
		}
	}
}

// TestLongNamesAreNotHeld: few names that are very long go out as they come.
func TestLongNamesAreNotHeld(t *testing.T) {
	s := newFakeStore(t)
	long := strings.Repeat("\xfa"+strings.Repeat("x", 250), 250)
	for i := range heldBytes/len(long) + 10 {
		key := string(metric.AppendPart(nil, fmt.Sprint(i))) + long
		s.series[1][key] = func(int64) uint64 { return point.Unset }
	}
	h := New(testOptions(s))
	for target, status := range map[string]int{
		"/buckets/b": 200, "/collections/b/metrics": 200, "/buckets/b?format=msgpack": 400,
		"/collections/b/metrics?depth=300": 400, "/collections/b/metrics?depth=1": 200,
	} {
		w := get(target).send(h)
		if w.Code != status {
			t.Errorf("%s: %d", target, w.Code)
		}
		var list []any
		if err := json.Unmarshal(w.Body.Bytes(), &list); status == 200 &&
			(err != nil || len(list) < heldBytes/len(long)) {
			t.Errorf("%s: %d names, %v", target, len(list), err)
		}
	}
}

// TestListingsAsMsgpack: the same shapes as in JSON.
func TestListingsAsMsgpack(t *testing.T) {
	s := newFakeStore(t)
	h := New(testOptions(s))
	read := func(target string) any {
		w := get(target, "Accept: application/x-msgpack").send(h)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != typeMsgpack {
			t.Fatalf("%s: %d %v", target, w.Code, w.Header())
		}
		v, rest := unpack(t, w.Body.Bytes())
		if len(rest) != 0 {
			t.Errorf("%s: %d bytes are left", target, len(rest))
		}
		return v
	}
	first := read("/buckets").([]any)[0].(map[string]any)
	if first["name"] != "b" || first["resolution"] != int64(1000) || first["hpts"] != false ||
		first["ttl"] != "infinity" {
		t.Errorf("got %v", first)
	}
	if names := read("/buckets/b/a").([]any); len(names) != 3 || names[1] != "'a'.'x'" {
		t.Errorf("got %q", names)
	}
	if names := read("/buckets/b/none").([]any); len(names) != 0 {
		t.Errorf("got %q", names)
	}
	if names := read("/collections").([]any); len(names) != 2 || names[0] != "b" {
		t.Errorf("got %q", names)
	}
	one := read("/collections/b/metrics/AWE=").([]any)[1].(map[string]any)
	if one["key"] != "AWECLi4=" || one["parts"].([]any)[1] != ".." {
		t.Errorf("got %v", one)
	}
	fillBucket(s, sortedNames+1)
	for _, target := range []string{"/buckets/b?format=msgpack",
		"/collections/b/metrics?format=msgpack", "/collections/b/metrics?format=msgpack&depth=1",
		"/collections/b/metrics?depth=1"} {
		if w := get(target).send(h); w.Code != http.StatusBadRequest ||
			!strings.Contains(w.Body.String(), "longer prefix") {
			t.Errorf("%s: %d %.100s", target, w.Code, w.Body)
		}
	}
}

func TestNear(t *testing.T) {
	wide := strings.Repeat("ä", 200)
	for _, c := range []struct {
		text string
		pos  int
		want string
	}{
		{"", 0, ""},
		{"a\n\nb", 2, ""},
		{"abc", 3, "abc\n   ^"},
		{"abc", 99, "abc\n   ^"},
		{"one\ntwo\nthree", 6, "two\n  ^"},
		{"\ttab\x00\xff|", 6, " tab  |\n      ^"},
		{wide, 200, "…" + strings.Repeat("ä", 120) + "…\n" + strings.Repeat(" ", 61) + "^"},
	} {
		if got := near(c.text, c.pos); got != c.want {
			t.Errorf("near(%.20q, %d) is\n%s\nwant\n%s", c.text, c.pos, got, c.want)
		}
	}
}

func FuzzNear(f *testing.F) {
	f.Add("SELECT x", 3)
	f.Add("\xff\xfe\n", 2)
	f.Fuzz(func(t *testing.T, text string, pos int) {
		got := near(text, pos)
		if len(got) > 4*(2*nearBefore+2*nearAfter) || strings.Count(got, "\n") > 1 {
			t.Fatalf("%q", got)
		}
	})
}

// What the configuration says about the answers of the original holds where a
// request does not say.
func TestCompatByDefault(t *testing.T) {
	o := testOptions(newFakeStore(t))
	o.Compat = true
	h := New(o)
	f := func(parameters, want string) {
		t.Helper()
		q := url.QueryEscape("SELECT t BUCKET b - 1 - 2 LAST 1s")
		if got := get("/?q=" + q + parameters).send(h).Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s has no %s", parameters, got, want)
		}
	}
	f("", `"name":"sub('t' BUCKET 'b')"`)
	f("&compat=1", `"name":"sub('t' BUCKET 'b')"`)
	f("&compat=0", `"name":"sub(sub('t' BUCKET 'b'))"`)
}
