package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/testkit/golden"
)

// request is one request of a golden test. Headers are "Name: value".
type request struct {
	method, target string
	headers        []string
	body           string
}

func get(target string, headers ...string) request {
	return request{http.MethodGet, target, headers, ""}
}

func ask(dql string, headers ...string) request {
	return get("/?q="+url.QueryEscape(dql), headers...)
}

// change is a request to an admin route as the client sends it.
func change(path, body string, headers ...string) request {
	return request{http.MethodPost, path,
		append([]string{"X-Dalmatiner: 1", "Content-Type: application/json"}, headers...), body}
}

func (r request) send(h http.Handler) *httptest.ResponseRecorder {
	req := httptest.NewRequest(r.method, r.target, strings.NewReader(r.body))
	req.Host = "127.0.0.1:8080"
	return r.sendRequest(h, req)
}

// sendRequest adds the headers to a request and serves it.
func (r request) sendRequest(h http.Handler, req *http.Request) *httptest.ResponseRecorder {
	for _, line := range r.headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// shown are the headers that golden files hold.
var shown = []string{"Content-Type", "Link", "Access-Control-Allow-Origin",
	"Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Expose-Headers",
	"Access-Control-Max-Age", "Allow", "Vary"}

func compareGolden(t *testing.T, file string, h http.Handler, requests []request) {
	t.Helper()
	var b strings.Builder
	for _, r := range requests {
		target, err := url.QueryUnescape(r.target)
		if err != nil || strings.HasPrefix(r.target, "/buckets") {
			target = r.target
		}
		fmt.Fprintf(&b, "> %s %s\n", r.method, target)
		for _, line := range r.headers {
			fmt.Fprintf(&b, "> %s\n", line)
		}
		if r.body != "" {
			fmt.Fprintf(&b, "> %.80s\n", r.body)
		}
		w := r.send(h)
		fmt.Fprintf(&b, "%d\n", w.Code)
		for _, name := range shown {
			if v := w.Header().Get(name); v != "" {
				fmt.Fprintf(&b, "%s: %s\n", name, v)
			}
		}
		body := w.Body.String()
		if strings.HasPrefix(body, "<!doctype") {
			body = "(the page)\n"
		}
		fmt.Fprintf(&b, "%s\n", body)
	}
	golden.Same(t, "testdata/"+file, b.String())
}

func TestGoldenQueries(t *testing.T) {
	const form = "Content-Type: application/x-www-form-urlencoded"
	h := New(testOptions(newFakeStore(t)))
	compareGolden(t, "query.golden", h, []request{
		ask("SELECT t BUCKET b, f BUCKET b AFTER 100000 FOR 4s"),
		ask("SELECT avg(half BUCKET b, 2s) AS 'a \"quoted\" name' LAST 6s"),
		ask("SELECT a.* BUCKET b AS $2 METADATA {part: $2, n: 5} LAST 1s"),
		ask(`SELECT '\xff\'\\"'.'' BUCKET b LAST 1s`),
		ask("SELECT a.* BUCKET b / a.* BUCKET b, a.* BUCKET b - *.'' BUCKET b LAST 1s"),
		ask("SELECT 'm' BUCKET 'odd \\'\\xff\\x0a name' LAST 20s"),
		{http.MethodPost, "/", []string{form}, "q=" + url.QueryEscape("SELECT t BUCKET b LAST 2s")},
		{http.MethodPost, "/", []string{"Content-Type: text/plain; charset=utf-8"},
			"SELECT t BUCKET b LAST 2s"},
		{http.MethodPost, "/", nil, "SELECT t BUCKET b LAST 2s"},
		{http.MethodPost, "/", []string{form}, "SELECT t BUCKET b LAST 2s"},
		{http.MethodPost, "/", []string{"Content-Type: image/png"}, "x"},
		{http.MethodPost, "/", []string{"Content-Type: text/plain"}, "SELECT " +
			strings.Repeat("x", 2000)},
		{http.MethodPost, "/", []string{form}, "q=SELECT+" + strings.Repeat("x", 2000)},
		ask("SELECT t BUCKET b\nLAST sometime"),
		ask("SELECT t BUCKET nowhere LAST 1s"),
		ask("SELECT no.*.such BUCKET b LAST 1s"),
		ask("SELECT max(t BUCKET b, 1m) LAST 3m"),
		ask("SELECT sum(t BUCKET b, m BUCKET 'odd \\'\\xff\\x0a name') LAST 20s"),
		ask(""),
		{http.MethodPost, "/", []string{"Content-Type: application/json"},
			`{"query": "SELECT t BUCKET b LAST 2s"}`},
		{http.MethodPost, "/", []string{"Content-Type: application/json"},
			`{"q": "SELECT t BUCKET b LAST 2s"}`},
		{http.MethodPost, "/", []string{"Content-Type: application/json"}, `{}`},
		{http.MethodPost, "/", []string{"Content-Type: application/json"}, `{"query": "x"} {}`},
		{http.MethodPost, "/", []string{"Content-Type: text/plain", "Content-Encoding: gzip"},
			"no gzip at all"},
		{http.MethodPost, "/", []string{"Content-Type: text/plain", "Content-Encoding: br"}, "x"},
		{http.MethodPost, "/", []string{form}, "gaps=null&format=json&q=" +
			url.QueryEscape("SELECT half BUCKET b LAST 5s")},
		get("/?gaps=null&q=" + url.QueryEscape("SELECT half BUCKET b, avg(half BUCKET b, 2s) LAST 6s")),
		get("/?gaps=carry&q=" + url.QueryEscape("SELECT half BUCKET b LAST 6s")),
		get("/?gaps=nil&q=x"),
		get("/?compat=1&q=" + url.QueryEscape("SELECT t BUCKET b - 1 - 2 LAST 2s")),
		get("/?compat=0&q=" + url.QueryEscape("SELECT t BUCKET b - 1 - 2 LAST 2s")),
		get("/?compat=yes&q=x"),
		get("/?explain=1&q=" + url.QueryEscape("SELECT avg(t BUCKET b, 5s), t BUCKET b - 1 LAST 10s")),
		ask("EXPLAIN SELECT max(t BUCKET b, 5s) LAST 10s"),
		get("/?explain=yes&q=x"),
		get("/?width=3&q=" + url.QueryEscape("SELECT t BUCKET b LAST 10s")),
		get("/?width=5&gaps=null&q=" + url.QueryEscape("SELECT half BUCKET b LAST 5s")),
		get("/?width=0&q=x"),
		get("/?width=16385&q=x"),
		{http.MethodGet, "/?q=100%", nil, ""},
		{http.MethodDelete, "/?q=x", nil, ""},
		{http.MethodOptions, "/?q=x", nil, ""},
	})
}

func TestGoldenNegotiation(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	const q = "SELECT t BUCKET b LAST 1s"
	const browser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	compareGolden(t, "negotiation.golden", h, []request{
		ask(q, "Accept: */*"),
		ask(q, "Accept: application/json"),
		ask(q, "Accept: text/csv, application/json;q=0.1"),
		ask(q, browser),
		ask(q, "Accept: text/html"),
		ask(q, "Accept: image/png"),
		get("/?format=json&q="+url.QueryEscape(q), "Accept: image/png"),
		get("/?format=csv&q=x", "Accept: application/json"),
		get("/buckets?format=csv"),
		get("/", browser),
		get("/", "Accept: application/json"),
		get("/", "Accept: image/png"),
		get("/buckets", "Accept: text/html"),
		get("/health"),
		get("/ready"),
		get("/nowhere"),
	})
}

// TestGoldenErrors: errors as text with a mark at the place, and as JSON.
func TestGoldenErrors(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	const wantJSON = "Accept: application/json"
	long := "SELECT sum(" + strings.Repeat("t BUCKET b, ", 20) + "t BUCKET nowhere, " +
		strings.Repeat("t BUCKET b, ", 20) + "t BUCKET b) LAST 1s"
	compareGolden(t, "errors.golden", h, []request{
		ask("SELECT t BUCKET b\nLAST\tsometime\n% the end"),
		ask("SELECT t BUCKET b\nLAST\tsometime\n% the end", wantJSON),
		ask("SELECT t BUCKET b LAST 60"),
		ask(long),
		ask("SELECT 'größe' BUCKET ü LAST 1s", wantJSON),
		ask("SELECT '\x01\xff' BUCKET nowhere LAST 1s", wantJSON),
		ask("SELECT max(t BUCKET b, 1m) LAST 3m", wantJSON),
		get("/?format=json&q=x", "Accept: text/plain"),
		get("/?q=x", "Accept: text/html,application/json"),
		get("/?q=x", "Accept: application/msgpack"),
		get("/nowhere", wantJSON),
		get("/admin/nowhere", wantJSON),
		get("/events?bucket=b"),
		get("/events", wantJSON),
		{http.MethodDelete, "/", []string{wantJSON}, ""},
		change("/admin/buckets/create", `{"name":""}`, wantJSON),
	})
}

func TestGoldenFunctions(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	compareGolden(t, "functions.golden", h, []request{
		get("/functions?format=text"),
		get("/functions", "Accept: text/plain"),
		get("/functions", "Accept: image/png"),
		get("/functions?format=html"),
		{http.MethodPost, "/functions", nil, ""},
	})
}

// TestFunctionsAreThoseOfTheRegistry: nothing is missing, and the keys of the
// original are there.
func TestFunctionsAreThoseOfTheRegistry(t *testing.T) {
	var list []map[string]any
	if err := json.Unmarshal(get("/functions").send(New(testOptions(newFakeStore(t)))).Body.Bytes(),
		&list); err != nil {
		t.Fatal(err)
	}
	registry := query.Functions()
	if len(list) != len(registry) {
		t.Fatalf("%d functions, want %d", len(list), len(registry))
	}
	for i, f := range registry {
		got := list[i]
		if got["name"] != f.Name || got["desc"] != f.Help || got["help"] != f.About ||
			got["combiner_type"] != f.Combiner || got["return"] != f.Returns {
			t.Errorf("got %v, want %+v", got, f)
		}
		if signature, ok := got["signature"].([]any); !ok || len(signature) != len(f.Signature) {
			t.Errorf("got %v, want %v", got["signature"], f.Signature)
		}
	}
}

func TestGoldenCollections(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	compareGolden(t, "collections.golden", h, []request{
		get("/collections"),
		get("/collections/"),
		get("/collections/b/metrics"),
		get("/collections/b/metrics/"),
		get("/collections/b/metrics?depth=1"),
		get("/collections/b/metrics/AWE="),
		get("/collections/b/metrics/AWE%3D?depth=2"),
		get("/collections/b/metrics/AWEBeA"),
		get("/collections/b/metrics/Av8"),
		get("/collections/b/metrics/AQ"),
		get("/collections/b/metrics/A"),
		get("/collections/b/metrics?depth=0"),
		get("/collections/b/metrics?limit=2"),
		get("/collections/b/metrics?limit=2&after=AWEDeS96"),
		get("/collections/b/metrics?depth=1&limit=2&token=secret"),
		get("/collections/b/metrics?depth=1&limit=9&after=AXQ="),
		get("/collections?limit=1"),
		get("/collections/odd%20'%FF%0A%20name/metrics"),
		get("/collections/odd%20'%FF%0A%20name/metrics?depth=1"),
		get("/collections/nowhere/metrics"),
		get("/collections/b/namespaces"),
		get("/collections/b/metrics/AWE=/namespaces"),
		get("/collections/b/metrics/AWE=/namespaces/ns/tags/t/values"),
		get("/collections/b"),
		get("/collections/b/nothing"),
	})
}

// taggedOptions returns those of a node with tags, and the name of a metric in base64.
func taggedOptions(t *testing.T) (o Options, cpu string) {
	t.Helper()
	o = testOptions(newFakeStore(t))
	key := func(parts ...string) []byte {
		k, err := metric.Key(parts...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	tag := func(namespace, name, value string) tags.Tag {
		return tags.Tag{TagName: tags.TagName{Namespace: []byte(namespace), Name: []byte(name)},
			Value: []byte(value)}
	}
	recent := uint64(time.Now().UnixNano())
	o.Tags = newFakeTags(t,
		tags.Change{Bucket: 1, Key: key("a", "x"), Collection: []byte("b"), Name: key("cpu"), Clock: 1,
			Set: []tags.Tag{tag("", "host", "web1"), tag("", "dc", "eu"), tag("label", "a/b:c", "1")}},
		tags.Change{Bucket: 1, Key: key("t"), Collection: []byte("b"), Clock: recent,
			Set: []tags.Tag{tag("", "host", "web2"), tag("", "dc", "eu")}},
		tags.Change{Bucket: 2, Key: key("m"), Collection: []byte("ho\xffsts"), Clock: 1,
			Set: []tags.Tag{tag("", "host", "db'1"), tag("la:bel", "x", "2")}},
	)
	return o, base64.StdEncoding.EncodeToString(key("cpu"))
}

// TestGoldenTags: what the original's index listed, and our own lists.
func TestGoldenTags(t *testing.T) {
	o, cpu := taggedOptions(t)
	compareGolden(t, "tags.golden", New(o), []request{
		get("/collections"),
		get("/collections/b/namespaces"),
		get("/collections/b/namespaces/"),
		get("/collections/b/namespaces//tags"),
		get("/collections/b/namespaces/label/tags"),
		get("/collections/b/namespaces/ddb/tags"),
		get("/collections/b/namespaces//tags/host/values"),
		get("/collections/b/namespaces/label/tags/a%2Fb:c/values"),
		get("/collections/b/namespaces/ddb/tags/part_1/values"),
		get("/collections/b/namespaces//tags/none/values"),
		get("/collections/b/metrics/" + cpu + "/namespaces"),
		get("/collections/b/metrics/" + cpu + "/namespaces//tags"),
		get("/collections/b/metrics/" + cpu + "/namespaces//tags/host/values"),
		get("/collections/b/metrics/AWE=/namespaces"),
		get("/collections/b/metrics/AW/namespaces"),
		get("/collections/ho%5Cxffsts/namespaces"),
		get("/collections/ho%FFsts/namespaces/la:bel/tags"),
		get("/collections/nowhere/namespaces"),
		get("/collections/b/namespaces/x"),
		get("/collections/b/namespaces/x/tags/y/none"),
		get("/collections/b/namespaces//tags?limit=1"),
		get("/collections/b/namespaces//tags?limit=1&after=dc"),
		get("/collections/b/namespaces?limit=1"),
		get("/collections/b/namespaces?limit=2&after="),
		get("/collections/b/namespaces?limit=0"),
		get("/collections/b/namespaces/label/tags/a/b:c/values"),
		get("/collections?limit=1"),
		get("/collections?limit=2&after=b"),
		get("/collections/b/metrics"),
		get("/collections/b/metrics?limit=1"),
		get("/collections/b/metrics?limit=1&after=AXQ"),
		get("/collections/b/metrics?limit=1&after=A"),
		get("/collections/ho%FFsts/metrics"),
		get("/collections/ho%FFsts/metrics?depth=1&format=msgpack"),
		get("/collections/ho%FFsts/metrics/" + cpu),
		get("/tags/collections"),
		get("/tags/collections?prefix=%5Cx62&limit=1"),
		get("/tags/collections?prefix=none"),
		get("/tags/collections?collection=b"),
		get("/tags/names"),
		get("/tags/names?collection=b&prefix=h"),
		get("/tags/names?namespace=&limit=1"),
		get("/tags/names?collection=b&where=host+%3D+web2&namespace="),
		get("/tags/values?collection=b&where=host+%3D+web2&name=dc"),
		get("/tags/values?collection=b&where=host+%3D&name=dc"),
		get("/tags/values?where=host&name=dc"),
		get("/tags/names?namespace=ddb&collection=b&metric='cpu'"),
		get("/tags/names?namespace=%5Cxzz"),
		get("/tags/names?metric='cpu'"),
		get("/tags/names?limit=0"),
		get("/tags/names?what=1"),
		get("/tags/values?name=host"),
		get("/tags/values?name=host&prefix=web&limit=1"),
		get("/tags/values?name=ddb:part_1&collection=b"),
		get("/tags/values?name=none"),
		get("/tags/values?name=label:a/b:c"),
		get("/tags/values"),
		get("/tags/values?name=host&limit=100001"),
		get("/tags/values?name=host&format=csv"),
		get("/tags"),
		{http.MethodPost, "/tags/values", nil, ""},
	})
}

func TestGoldenBuckets(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	compareGolden(t, "buckets.golden", h, []request{
		get("/buckets"),
		get("/buckets/b"),
		get("/buckets/b/"),
		get("/buckets/b?contains=Y"),
		get("/buckets/b/a?contains=a&limit=9"),
		get("/buckets/b?depth=1"),
		get("/buckets/b/a?depth=1"),
		get("/buckets/b?prefix='a'&depth=1"),
		get("/buckets/b?prefix=a&contains=y"),
		get("/buckets/b?prefix='a"),
		get("/buckets/b/a?prefix=a"),
		get("/buckets/b/a?depth=2&contains=Y"),
		get("/buckets/b?depth=1&limit=1"),
		get("/buckets/b?depth=0"),
		get("/buckets/b?limit=0"),
		get("/buckets/b/a"),
		get("/buckets/b/a/"),
		get("/buckets/b/a/x"),
		get("/buckets/b/a/y%2Fz"),
		get("/buckets/b/a/.."),
		get("/buckets/b/a/%2e%2e"),
		get("/buckets/b/%FF'%5C%5C%22"),
		get(`/buckets/b/%5Cxff%5C'%5C%5C%22`),
		get("/buckets/b/nothing"),
		get("/buckets/odd%20'%FF%0A%20name"),
		get("/buckets/odd%20%5C'%5Cxff%5Cx0a%20name"),
		get("/buckets/odd%20'%FF%0A%20name/%5C=%5Cx05raw"),
		get("/buckets/nowhere"),
		get("/buckets/%5C"),
		get("/buckets/b/%5C"),
		get("/buckets/b/" + strings.Repeat("x", 256)),
		{http.MethodPost, "/buckets/b", nil, ""},
		{http.MethodOptions, "/buckets/b", nil, ""},
	})
}

func TestGoldenAdmin(t *testing.T) {
	s := newFakeStore(t)
	s.ledger.Add(1, 3,
		&account.Counts{Accepted: 10, Duplicate: 1, Refused: refused(account.Future, 2)})
	s.ledger.Add(1, 4, &account.Counts{Accepted: 20, Conflicting: 2, Late: 3, Unset: 4,
		Refused: refused(account.Expired, 5)})
	s.ledger.Add(77, 4, &account.Counts{Accepted: 7})
	s.ledger.Lose("damaged", 6)
	s.ledger.Recover("damaged", 2)
	s.ledger.RefuseRequest("frame_too_large")
	h := New(testOptions(s))
	compareGolden(t, "admin.golden", h, []request{
		get("/admin/account"),
		get("/admin/account?bucket=b"),
		get("/admin/account?bucket=b&minutes=5"),
		get("/admin/account?bucket=b&minutes=1"),
		get("/admin/account?bucket=b&minutes=0"),
		get("/admin/account?minutes=5"),
		get("/admin/log"),
		get("/admin/account?bucket=nowhere"),
		get("/admin/stats"),
		change("/admin/flush", "{}"),
		change("/admin/merge", "{}"),
		change("/admin/buckets/create", `{"name":"new","resolution":1000,"ppf":3600,"ttl":"infinity"}`),
		change("/admin/buckets/create", `{"name":"new","resolution":1000,"ppf":3600,"ttl":60}`),
		change("/admin/buckets/create", `{"name":"\\xfe","resolution":1000,"ppf":3600}`,
			"Origin: http://127.0.0.1:8080"),
		change("/admin/buckets/create", `{"name":"zero","resolution":0,"ppf":3600}`),
		change("/admin/buckets/create", `{"name":"neg","resolution":1,"ppf":3600,"ttl":-1}`),
		change("/admin/buckets/create", `{"nome":"new"}`),
		change("/admin/buckets/create", `{"name":""}`),
		change("/admin/buckets/create", `{"name":"a\\"}`),
		change("/admin/buckets/create", `{"name":"x"} {}`),
		change("/admin/buckets/create", `{"name":"`+strings.Repeat("x", 2000)+`"}`),
		change("/admin/buckets/ttl", `{"name":"new","ttl":120}`),
		change("/admin/series/delete", `{"bucket":"b","prefix":"a","dry_run":true}`),
		change("/admin/series/delete", `{"bucket":"b","metric":"'a'.'x'"}`),
		change("/admin/series/delete", `{"bucket":"b","metric":"a.x"}`),
		change("/admin/series/delete", `{"bucket":"b","metric":"hafl"}`),
		change("/admin/series/delete", `{"bucket":"b"}`),
		change("/admin/series/delete", `{"bucket":"b","prefix":"a..b"}`),
		change("/admin/series/delete", `{"bucket":"nowhere","metric":"a.x"}`),
		change("/admin/buckets/ttl", `{"name":"new"}`),
		change("/admin/buckets/ttl", `{"name":"nowhere","ttl":"inf"}`),
		change("/admin/buckets/delete", `{"name":"new"}`),
		change("/admin/buckets/delete", `{"name":"new"}`),
		get("/buckets"),
	})
}

func refused(r account.Reason, n uint64) (out [account.NumReasons]uint64) {
	out[r] = n
	return out
}
