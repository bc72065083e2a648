package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/eventstest"
	"dalmatiner/internal/write"
)

// someEvents refuses events at 13 ns.
type someEvents struct{ *eventstest.Store }

func (s someEvents) Write(bucket string, list []events.Event) (w events.Written, err error) {
	var kept []events.Event
	for i, e := range list {
		if e.Time == 13 {
			w.Counts.Refused[account.Future]++
			w.Refused = append(w.Refused, events.Refused{At: i, Why: account.Future})
			continue
		}
		kept = append(kept, e)
	}
	refused := w
	w, err = s.Store.Write(bucket, kept)
	w.Counts.Refused, w.Refused, w.Token.Position = refused.Counts.Refused, refused.Refused, 1
	return w, err
}

// durableNow is a target that knows every bucket, and counts who waits for it.
type durableNow struct {
	write.Target
	waits int
}

func (d *durableNow) EnsureBucket(name string, _ buckets.Form) (buckets.Info, error) {
	if name == "forbidden" {
		return buckets.Info{}, fmt.Errorf("bucket %s: %w", name, buckets.ErrUnknown)
	}
	return buckets.Info{Name: name, Resolution: 1000}, nil
}

func (d *durableNow) Durable() bool { return true }

func (d *durableNow) WaitDurable(context.Context, write.Token) error {
	d.waits++
	return nil
}

type eventsAPI struct {
	*testing.T
	h      http.Handler
	store  *eventstest.Store
	points *durableNow
	engine *query.Engine
}

func newEventsAPI(t *testing.T) *eventsAPI {
	a := &eventsAPI{T: t, store: new(eventstest.Store), points: new(durableNow)}
	o := testOptions(newFakeStore(t))
	o.MaxBody = 4 << 20
	o.Events, o.Points = someEvents{a.store}, a.points
	a.engine = o.Engine.(*query.Engine)
	a.engine.Events = a.store
	a.h = New(o)
	return a
}

var took = regexp.MustCompile(`"(t|query_time)":\d+`)

func (a *eventsAPI) ask(method, target, body string, headers ...string) string {
	a.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.h.ServeHTTP(w, r)
	return fmt.Sprintf("%d %s", w.Code,
		strings.TrimSpace(took.ReplaceAllString(w.Body.String(), `"$1":0`)))
}

func (a *eventsAPI) expect(want, got string) {
	a.Helper()
	if got != want {
		a.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPostAndGetEvents(t *testing.T) {
	a := newEventsAPI(t)
	a.expect(`200 {"received":4,"accepted":4,"late":0,"duplicate":0,"refused":0,"bad":0}`, a.ask("POST", "/events/b", `{"time":"1970-01-01T00:00:01.000000002Z","a":1,"host":"web1"}

{"time":"1970-01-01T00:00:03Z","a":2.5,"tags":["x",{"deep":null}]}
{"a":3,"time":"1970-01-01T00:00:02Z"}
{"time":"1970-01-01T00:00:04Z","a":"text"}`))
	if a.points.waits != 1 {
		t.Errorf("%d waits for durability", a.points.waits)
	}
	a.expect(
		`200 {"e":[{"timestamp":1000000002,"event":{"a":1,"host":"web1"}},{"timestamp":2000000000,"event":{"a":3}},{"timestamp":3000000000,"event":{"a":2.5,"tags":["x",{"deep":null}]}}],"t":0}`,
		a.ask("GET", "/events?bucket=b&start=1000&end=1970-01-01T00:00:04Z", ""))
	a.expect(`200 {"e":[{"timestamp":2000000000,"event":{"a":3}}],"t":0}`,
		a.ask("GET", "/events?bucket=b&start=1970-01-01+00:00:02&filter=a+%3E+2.5+AND+a+%3C+text", ""))
	a.expect(`200 {"e":[{"timestamp":1000000002,"event":{"a":1,"host":"web1"}}],"more":true,"t":0}`,
		a.ask("GET", "/events?bucket=b&start=0&limit=1", ""))
	a.expect(
		`200 {"e":[{"timestamp":4000000000,"event":{"a":"text"}},{"timestamp":3000000000,"event":{"a":2.5,"tags":["x",{"deep":null}]}}],"more":true,"t":0}`,
		a.ask("GET", "/events?bucket=b&start=0&limit=2&order=desc", ""))
	a.expect(
		`200 {"e":[{"timestamp":2000000000,"event":{"a":3}},{"timestamp":1000000002,"event":{"a":1,"host":"web1"}}],"t":0}`,
		a.ask("GET", "/events?bucket=b&start=0&end=3000&order=desc", ""))
	a.expect(`400 order=up: known are asc, the oldest first, and desc, the newest first`,
		a.ask("GET", "/events?bucket=b&start=0&order=up", ""))
	a.store.Gaps = []events.Gap{{Start: 5, End: 9, Events: 3}}
	a.expect(`200 {"e":[],"damaged":[{"start":5,"end":9,"events":3}],"t":0}`,
		a.ask("GET", "/events?bucket=b&start=0&end=1", ""))
}

func TestPostEventsByLine(t *testing.T) {
	a := newEventsAPI(t)
	a.expect(`200 {"received":6,"accepted":1,"late":0,"duplicate":0,"refused":1,"bad":4,"errors":[`+
		`{"line":1,"error":"malformed term: an event is a JSON object, not \"[1]\""},`+
		`{"line":2,"error":"time \"yesterday\" is not of the form 2026-01-02T15:04:05.999999999Z"},`+
		`{"line":5,"error":"malformed term: JSON that ends too early"},`+
		`{"line":6,"error":"time -1 is not in the years 1970 to 2262; give the unit of numbers, as with ?unit=ms"},`+
		`{"line":3,"error":"the event is refused: future"}]}`,
		a.ask("POST", "/events/b",
			"[1]\n{\"time\":\"yesterday\"}\n{\"time\":13}\n{\"time\":14}\n{\"a\":\n{\"time\":-1}\n"))
	a.expect(
		`400 {"received":1,"accepted":0,"late":0,"duplicate":0,"refused":0,"bad":1,"errors":[{"line":1,"error":"malformed term: an event is a JSON object, not \"x\""}]}`,
		a.ask("POST", "/events/b", "x"))
	if got := a.ask("POST", "/events/b", `{"a":"`+strings.Repeat("x", 2<<20)+`"}`); !strings.Contains(
		got, "what follows it was not read") {
		t.Error(got)
	}
	a.expect(`200 {"received":2,"accepted":2,"late":0,"duplicate":0,"refused":0,"bad":0}`,
		a.ask("POST", "/events/units?unit=s", "{\"time\":1.5}\n{\"time\":1e3}"))
	a.expect(
		`200 {"e":[{"timestamp":1500000000,"event":{}},{"timestamp":1000000000000,"event":{}}],"t":0}`,
		a.ask("GET", "/events?bucket=units&start=0", ""))
}

func TestEventsRefused(t *testing.T) {
	a := newEventsAPI(t)
	a.expect(`404 bucket forbidden: unknown bucket`, a.ask("POST", "/events/forbidden", "{}"))
	a.expect(`404 bucket c: unknown bucket`, a.ask("GET", "/events?bucket=c&start=0", ""))
	a.expect(`400 unit=h: known are s, ms, us, and ns, which is the default`,
		a.ask("POST", "/events/b?unit=h", ""))
	a.expect(`400 Bad bucket: no name: the bucket's name is missing`,
		a.ask("GET", "/events?start=0", ""))
	a.expect(`400 Bad start: it is missing; give a date, or a number of milliseconds since 1970`,
		a.ask("GET", "/events?bucket=b", ""))
	a.expect(`400 start: follow=1 gives the events from now on`,
		a.ask("GET", "/events?bucket=b&follow=1&start=1", ""))
	for _, origin := range []string{"http://evil.example", "http://example.com"} {
		if got := a.ask("POST", "/events/b", "{}", "Origin", origin); !strings.HasPrefix(got, "403 ") {
			t.Errorf("a page of %s writes: %s", origin, got)
		}
	}
	for target, want := range map[string]string{
		"/events?bucket=b&start=x":              "Bad start: ",
		"/events?bucket=b&start=0&end=y":        "Bad end: ",
		"/events?bucket=b&start=0&limit=0":      "limit=0: ",
		"/events?bucket=b&start=0&filter=a+%3D": "line 1, column 3: expected one of == != >= =< > < ~=",
		"/events?bucket=b&start=0&frm=x":        "unknown parameter \"frm\"",
	} {
		if got := a.ask("GET", target, ""); !strings.HasPrefix(got, "400 "+want) {
			t.Errorf("%s: %s", target, got)
		}
	}
}

func TestQueriesOfEvents(t *testing.T) {
	a := newEventsAPI(t)
	a.ask("POST", "/events/b?unit=s",
		"{\"time\":101,\"user\":\"ann\",\"n\":9007199254740993}\n{\"time\":102,\"user\":\"bob\"}\n{\"time\":110,\"user\":\"ann\"}")
	q := func(text string, headers ...string) string {
		a.Helper()
		return a.ask("POST", "/", text, append([]string{"Content-Type", "text/plain"}, headers...)...)
	}
	a.expect(
		`200 {"start":100000,"query_time":0,"results":[{"type":"events","name":"EVENTS FROM 'b' WHERE 'user' == 'ann'","metadata":{},"values":[{"timestamp":101000000000,"event":{"user":"ann","n":9007199254740993}}]}]}`,
		q("SELECT EVENTS FROM b WHERE user == 'ann' AFTER 100000 FOR 10s"))
	got := q("SELECT EVENTS FROM b AS 'who'.$1 METADATA {k: 'v', n: 2, d: $host}, t BUCKET b TOP 1 " +
		"BY max() AFTER 100000 FOR 3s")
	if !strings.HasPrefix(got, "400 ") {
		t.Error(got)
	}
	got = q("SELECT EVENTS FROM b AS 'who'.$1 METADATA {k: 'v', n: 2, d: $host}, t BUCKET b AFTER " +
		"100000 FOR 3s TOP 1 BY max()")
	if !strings.Contains(got, `"type":"metrics"`) ||
		!strings.Contains(got,
			`{"type":"events","name":"'who'.''","metadata":{"d":null,"k":"v","n":2},"values":[{"timestamp":101000000000`) {
		t.Error(got)
	}
	if strings.Index(got, "metrics") > strings.Index(got, `"events"`) {
		t.Error("events come before metrics")
	}
	if got := q("SELECT EVENTS FROM b AFTER 100000 FOR 10s", "Accept",
		"application/msgpack"); !strings.Contains(got, "\xa9timestamp") ||
		!strings.Contains(got, "\xd3\x00\x20\x00\x00\x00\x00\x00\x01") {
		t.Errorf("msgpack: %q", got)
	}
	a.expect("404 line 1, column 8: bucket c: unknown bucket\nSELECT EVENTS FROM c LAST 1m\n       ^",
		q("SELECT EVENTS FROM c LAST 1m"))
	a.expect("400 line 1, column 28: bad filter: error parsing regexp: missing closing ): "+
		"`(`\nSELECT EVENTS FROM b WHERE a ~= '(' LAST 1m\n                           ^",
		q("SELECT EVENTS FROM b WHERE a ~= '(' LAST 1m"))
	if got := q("EXPLAIN SELECT EVENTS FROM b LAST 1m"); !strings.Contains(got,
		`"plan_text":"EVENTS FROM 'b': files 0, blocks 0, bytes 0, in memory 0, read 0, found 0`) {
		t.Error(got)
	}
}

// TestStreamedEvents: JSON has the first events up to the limit of a result, and says that there
// are more. All fields share the limit. msgpack is refused, since its lists have their lengths
// ahead of them.
func TestStreamedEvents(t *testing.T) {
	a := newEventsAPI(t)
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, "{\"time\":%d,\"i\":%d}\n", 100+i, i)
	}
	a.ask("POST", "/events/b?unit=s", lines.String())
	q := func(text string, headers ...string) string {
		a.Helper()
		return a.ask("POST", "/", text, append([]string{"Content-Type", "text/plain"}, headers...)...)
	}
	const all = "SELECT EVENTS FROM b AS x, EVENTS FROM b WHERE i < 3 AS y AFTER 0 FOR 10000s"
	got := q(all)
	if n := strings.Count(got, `"timestamp"`); n != 5003 || strings.Contains(got, `"more"`) ||
		!strings.HasPrefix(got, "200 ") {
		t.Fatalf("%d events: %.200s", n, got)
	}
	a.engine.Limits.MaxOutput = 5001
	got = q(all)
	if n := strings.Count(got, `"timestamp"`); n != 5001 || strings.Count(got, `"more":true`) != 1 ||
		!strings.HasSuffix(got, `{"i":0}}],"more":true}]}`) {
		t.Errorf("%d events: …%s", n, got[max(0, len(got)-200):])
	}
	a.engine.Limits.MaxOutput = 4999
	got = q(all)
	if n := strings.Count(got, `"timestamp"`); n != 4999 || strings.Count(got, `"more":true`) != 2 ||
		!strings.Contains(got, `"values":[],"more":true}`) {
		t.Errorf("%d events: …%s", n, got[max(0, len(got)-200):])
	}
	if got := q(all, "Accept", "application/msgpack"); !strings.HasPrefix(got, "400 ") ||
		!strings.Contains(got, "5000 events in its result, the limit is 4999") {
		t.Errorf("msgpack: %.300s", got)
	}
	if got := q("SELECT EVENTS FROM b, EVENTS FROM c AFTER 0 FOR 10000s"); !strings.HasPrefix(got,
		"404 line 1, column 23: bucket c: unknown bucket") {
		t.Errorf("an unknown bucket behind a known one: %.200s", got)
	}
}

// lentEvents is a store of events whose reads hold the whole of a pool.
type lentEvents struct {
	*eventstest.Store
	pool *memory.Leases
}

func (s lentEvents) Read(ctx context.Context, bucket string, start, end int64,
	fn func(*events.Event) error) ([]events.Gap, error) {
	lease := s.pool.LeaseFor(ctx)
	defer lease.Release()
	if err := lease.Grow(1 << 20); err != nil {
		return nil, err
	}
	return s.Store.Read(ctx, bucket, start, end, fn)
}

// slowClient calls stand for each piece of an answer, while it is written.
type slowClient struct {
	*httptest.ResponseRecorder
	stand func()
}

func (w slowClient) Write(p []byte) (int, error) {
	w.stand()
	return w.ResponseRecorder.Write(p)
}

// TestSlowReadersOfEventsGiveWay: what the read of a streamed answer holds is awaited with the
// client, so one that stands still is cut off when others need the memory.
func TestSlowReadersOfEventsGiveWay(t *testing.T) {
	for _, target := range []string{
		"/events?bucket=b&start=0&end=10000", "/?q=" + url.QueryEscape("SELECT EVENTS FROM b LAST 200s"),
	} {
		clock := now
		budget := memory.New(1<<30, func() time.Time { return clock }, nil)
		store := lentEvents{new(eventstest.Store),
			budget.NewLeases(memory.LeaseOptions{Name: "event-reads", Limit: 1 << 20, Small: 1 << 20})}
		long := term.AppendText(term.Begin(nil), strings.Repeat("x", 2*replyBuffer))
		if _, err := store.Write("b",
			[]events.Event{{Time: 1e9, Body: long}, {Time: 2e9, Body: long}}); err != nil {
			t.Fatal(err)
		}
		o := testOptions(newFakeStore(t))
		o.Memory = budget.NewLeases(memory.LeaseOptions{Name: "queries", Limit: 64 << 20,
			Small: 64 << 20})
		o.Events, o.Points = store, new(durableNow)
		o.Engine.(*query.Engine).Events = store
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		w := slowClient{httptest.NewRecorder(), func() {
			clock = clock.Add(2 * time.Second)
			other := store.pool.Lease()
			defer other.Release()
			if err := other.GrowWhenFree(gone, 1<<20); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: another read gets %v", target, err)
			}
		}}
		New(o).ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if got := store.pool.Counts(); w.Code != http.StatusOK || got.CutPressure == 0 {
			t.Errorf("%s: %d %s\n%+v", target, w.Code, w.Body, got)
		}
		for _, p := range budget.Pools() {
			if p.Use != 0 {
				t.Errorf("%s: %d bytes of %s are held after the answer", target, p.Use, p.Name)
			}
		}
	}
}
