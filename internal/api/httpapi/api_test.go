package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"dalmatiner/internal/api/httpapi/page"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/plan"
)

func TestLimitOfNames(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	for limit := 1; limit <= 4; limit++ {
		var names []string
		body := get(fmt.Sprintf("/buckets/b?contains='A'.&limit=%d", limit)).send(h).Body.Bytes()
		if err := json.Unmarshal(body, &names); err != nil || len(names) != min(limit, 3) {
			t.Errorf("limit %d: %s, %v", limit, body, err)
		}
	}
}

func TestThePage(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	for _, target := range []string{"/", "/?query=SELECT"} {
		w := get(target, "Accept: text/html,application/xhtml+xml,*/*;q=0.8").send(h)
		if w.Code != http.StatusOK || w.Header().Get("Content-Security-Policy") != page.Security ||
			w.Body.String() != string(page.Index("127.0.0.1:8080")) {
			t.Errorf("%s: status %d, policy %q, body %.100s", target, w.Code,
				w.Header().Get("Content-Security-Policy"), w.Body)
		}
	}
	for _, target := range []string{"/assets/", "/assets/none.js", "/assets/../index.html",
		"/assets/%2e%2e/index.js"} {
		if w := get(target).send(h); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", target, w.Code)
		}
	}
}

func TestStatusOfEngineErrors(t *testing.T) {
	limit := &query.LimitError{What: "points", Got: 2, Limit: 1, Remedy: "ask for less"}
	for _, c := range []struct {
		err    error
		status int
		reason string
	}{
		{query.ErrNoResults, 404, reasonNoResults},
		{dql.NewError("x", 0, nil, "wrong"), 400, reasonSyntax},
		{dql.NewError("x", 0, limit, limit.Error()), 400, reasonLimit},
		{dql.NewError("x", 0, query.ErrUnsupported, "no"), 400, reasonUnsupported},
		{dql.NewError("x", 0, fmt.Errorf("%w 'b'", buckets.ErrUnknown), "no"), 404,
			reasonUnknownBucket},
		{context.DeadlineExceeded, 503, reasonBusy},
		{errBroken, 500, ""},
	} {
		s := newFakeStore(t)
		o := testOptions(s)
		o.Engine = engineFunc(func(context.Context, string) (*query.Result, error) { return nil, c.err })
		w := ask("x").send(New(o))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.err.Error()) {
			t.Errorf("%v: got %d %q", c.err, w.Code, w.Body)
		}
		counted := s.ledger.Requests()
		if c.reason != "" && counted[c.reason] != 1 || c.reason == "" && len(counted) != 0 {
			t.Errorf("%v: counted as %v", c.err, counted)
		}
	}
}

func TestNotReady(t *testing.T) {
	o := testOptions(newFakeStore(t))
	o.Ready = func() bool { return false }
	h := New(o)
	for _, r := range []request{get("/ready"), ask("SELECT t BUCKET b LAST 1s")} {
		if w := r.send(h); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: got %d", r.target, w.Code)
		}
	}
	if w := get("/health").send(h); w.Code != http.StatusOK {
		t.Errorf("/health: got %d", w.Code)
	}
}

// A node without a majority of its cluster says so, and when to try again.
func TestNoMajority(t *testing.T) {
	s := newFakeStore(t)
	s.failure = fmt.Errorf("bucket 'b' is left as it is: %w: 1 of 3 members", buckets.ErrNoMajority)
	w := change("/admin/buckets/delete", `{"name":"b"}`, "Accept: application/json").send(
		New(testOptions(s)))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "5" ||
		!strings.Contains(w.Body.String(), `"error":"no_majority"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if n := s.ledger.Requests()["no_majority"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
}

func TestStoreFailureIs500(t *testing.T) {
	s := newFakeStore(t)
	s.failure = errBroken
	h := New(testOptions(s))
	for _, r := range []request{get("/buckets/b"), change("/admin/flush", "{}")} {
		if w := r.send(h); w.Code != 500 || !strings.Contains(w.Body.String(), errBroken.Error()) {
			t.Errorf("%s: got %d %s", r.target, w.Code, w.Body)
		}
	}
}

// TestCutListBreaksTheConnection: once a long list is under way its failure
// must not look like the end of the list.
func TestCutListBreaksTheConnection(t *testing.T) {
	s := newFakeStore(t)
	fillBucket(s, sortedNames+10)
	h := New(testOptions(s))
	var names []string
	if err := json.Unmarshal(get("/buckets/b").send(h).Body.Bytes(), &names); err != nil ||
		len(names) != sortedNames+10 {
		t.Fatalf("%d names, %v", len(names), err)
	}
	s.failure = errBroken
	server := httptest.NewServer(h)
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "/buckets/b")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&names); err == nil {
		t.Error("a list that was cut short reads as whole")
	}
}

func fillBucket(s *fakeStore, n int) {
	all := map[string]func(int64) uint64{}
	for i := range n {
		all[string(metric.AppendPart(nil, fmt.Sprint(i)))] = func(int64) uint64 { return point.Unset }
	}
	s.series[1] = all
}

func TestClosedConnectionCancelsTheQuery(t *testing.T) {
	o := testOptions(newFakeStore(t))
	began, cancelled := make(chan struct{}), make(chan struct{})
	o.Engine = engineFunc(func(ctx context.Context, _ string) (*query.Result, error) {
		close(began)
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})
	server := httptest.NewServer(New(o))
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-began
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/?q=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := server.Client().Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("got an answer")
	}
	select {
	case <-cancelled:
	case <-time.After(time.Minute):
		t.Fatal("the query goes on without a client")
	}
}

func TestMetricsPage(t *testing.T) {
	s := newFakeStore(t)
	s.ledger.RefuseRequest("query_limit")
	w := get("/metrics").send(New(testOptions(s)))
	for _, line := range []string{
		`dalmatiner_bucket_series{bucket="b"} 7`,
		`dalmatiner_points_received_total{bucket="b"} 0`,
		`dalmatiner_requests_refused_total{reason="query_limit"} 1`,
		`dalmatiner_disk_free_bytes 1.099511627776e+12`,
		`go_goroutines `,
		`process_cpu_seconds_total `,
	} {
		if !strings.Contains(w.Body.String(), "\n"+line) {
			t.Errorf("no line %s", line)
		}
	}
}

func TestServerHasLimits(t *testing.T) {
	o := testOptions(newFakeStore(t))
	s := NewServer(New(o), o.Logger, 2*time.Minute)
	if s.MaxHeaderBytes == 0 || s.ReadHeaderTimeout == 0 || s.ReadTimeout == 0 ||
		s.WriteTimeout == 0 || s.IdleTimeout == 0 {
		t.Errorf("a limit is missing: %+v", s)
	}
}

func TestFloatsReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Custom(func(t *rapid.T) float64 {
			return math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		}).Draw(t, "v")
		if rapid.Bool().Draw(t, "short") {
			v = float64(rapid.Int64Range(-1<<60, 1<<60).Draw(t, "n")) / 100
		}
		text := appendFloat(nil, v)
		var got *float64
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			if got != nil {
				t.Fatalf("%v became %s", v, text)
			}
			return
		}
		if math.Float64bits(*got) != math.Float64bits(v) {
			t.Fatalf("%v became %s", v, text)
		}
	})
}

func TestStringsReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "text") {
			s = rapid.String().Draw(t, "s")
		}
		want := s
		if !utf8.ValidString(s) {
			want = metric.Escape(s)
		}
		text := appendString(nil, s)
		var got string
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Fatalf("%q became %s: %v", s, text, err)
		}
	})
}

func manyValues() *query.Result {
	r := &query.Result{Start: 5, QueryTime: 7 * time.Microsecond}
	values := make([]float64, 20_000)
	for i := range values {
		values[i] = float64(i) * 1.25
	}
	values[1], values[2] = math.NaN(), math.Inf(-1)
	r.Series = []query.Series{
		{Name: "'long name " + strings.Repeat("x", 300) + "'", Resolution: 1000, Values: values,
			Coverage: 0.25,
			Metadata: map[string]any{"n": 5.5, "bytes": "\xff", "nothing": nil, "nan": math.NaN()}},
		{Name: "'empty'", Resolution: 60_000},
	}
	return r
}

func TestLargeResultAsJSON(t *testing.T) {
	r := manyValues()
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	if err := encodeJSON(context.Background(), w, r); err != nil || w.Flush() != nil {
		t.Fatal(err)
	}
	var got struct {
		Start, QueryTime int64
		Results          []struct {
			Name     string
			Values   []*float64
			Coverage float64
			Metadata map[string]any
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	first := got.Results[0]
	if len(first.Values) != 20_000 || first.Values[1] != nil || first.Values[2] != nil ||
		*first.Values[19_999] != 19_999*1.25 {
		t.Error("values differ")
	}
	want := map[string]any{"n": 5.5, "bytes": `\xff`, "nothing": nil, "nan": nil}
	if !reflect.DeepEqual(first.Metadata, want) || first.Coverage != 0.25 {
		t.Errorf("got %v and %v", first.Metadata, first.Coverage)
	}
	if got.Results[1].Values == nil || len(got.Results[1].Values) != 0 {
		t.Error("a series without values is not an empty list")
	}
}

// unpack is a naive reader of the part of msgpack that results use.
func unpack(t *testing.T, src []byte) (v any, rest []byte) {
	t.Helper()
	kind, src := src[0], src[1:]
	length := func() int {
		n := int(binary.BigEndian.Uint32(src))
		src = src[4:]
		return n
	}
	switch {
	case kind < 0x80:
		return int64(kind), src
	case kind&0xe0 == 0xa0:
		return string(src[:kind&0x1f]), src[kind&0x1f:]
	case kind == 0xc2 || kind == 0xc3:
		return kind == 0xc3, src
	case kind == 0xc0:
		return nil, src
	case kind == 0xcb:
		return math.Float64frombits(binary.BigEndian.Uint64(src)), src[8:]
	case kind == 0xd3:
		return int64(binary.BigEndian.Uint64(src)), src[8:]
	case kind == 0xdb:
		n := length()
		return string(src[:n]), src[n:]
	case kind == 0xdd:
		list := make([]any, length())
		for i := range list {
			list[i], src = unpack(t, src)
		}
		return list, src
	case kind == 0xdf:
		m := map[string]any{}
		for range length() {
			var k any
			k, src = unpack(t, src)
			m[k.(string)], src = unpack(t, src)
		}
		return m, src
	}
	t.Fatalf("unexpected byte %#x", kind)
	return nil, nil
}

func TestLargeResultAsMsgpack(t *testing.T) {
	r := manyValues()
	r.Unmatched = []plan.Unmatched{{Selector: "'a'.*", Pos: 7, Series: []string{"'a'.'b'"}, More: 2}}
	o := testOptions(newFakeStore(t))
	o.Engine = engineFunc(func(context.Context, string) (*query.Result, error) { return r, nil })
	w := ask("x", "Accept: application/msgpack").send(New(o))
	if got := w.Header().Get("Content-Type"); got != "application/x-msgpack" {
		t.Errorf("the type is %s", got)
	}
	v, rest := unpack(t, w.Body.Bytes())
	if len(rest) != 0 {
		t.Fatalf("%d bytes are left", len(rest))
	}
	m := v.(map[string]any)
	first := m["results"].([]any)[0].(map[string]any)
	values := first["values"].([]any)
	if m["start"] != int64(5) || m["query_time"] != int64(7) || first["name"] != r.Series[0].Name ||
		first["coverage"] != 0.25 {
		t.Errorf("got %v, %v, %v, %v", m["start"], m["query_time"], first["name"], first["coverage"])
	}
	unmatched := fmt.Sprint(m["unmatched"])
	if unmatched != "[map[more:2 offset:7 selector:'a'.* series:['a'.'b']]]" {
		t.Errorf("unmatched is %s", unmatched)
	}
	if len(values) != 20_000 || values[1] != nil || values[19_999] != 19_999*1.25 {
		t.Error("values differ")
	}
	metadata := first["metadata"].(map[string]any)
	if metadata["bytes"] != `\xff` || metadata["n"] != 5.5 || metadata["nothing"] != nil {
		t.Errorf("got %v", metadata)
	}
}
