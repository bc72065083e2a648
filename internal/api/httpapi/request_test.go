package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A query's body may be compressed: what counts is what it becomes, of which
// there may be as much as of a plain body.
func TestCompressedBodies(t *testing.T) {
	o := testOptions(newFakeStore(t))
	h := New(o)
	const q = "SELECT t BUCKET b LAST 2s"
	post := func(path, contentType, encoding string, body []byte) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Content-Encoding", encoding)
		r.Header.Set("X-Dalmatiner", "1")
		r.Host = "127.0.0.1"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	want := post("/", "text/plain", "", []byte(q)).Body.String()
	if !strings.Contains(want, `"values"`) {
		t.Fatal(want)
	}
	const form, plain = "application/x-www-form-urlencoded", "text/plain"
	for _, c := range []struct {
		path, contentType, encoding string
		body                        []byte
		status                      int
		text                        string
	}{
		{"/", plain, "gzip", packed(t, q), 200, `"values"`},
		{"/", plain, "GZip", packed(t, q), 200, `"values"`},
		{"/", form, "x-gzip", packed(t, "q="+url.QueryEscape(q)), 200, `"values"`},
		{"/", typeJSON, "gzip", packed(t, `{"query": "`+q+`"}`), 200, `"values"`},
		{"/", plain, "gzip", append(packed(t, q[:9]), packed(t, q[9:])...), 200, `"values"`},
		{"/", plain, "gzip", packed(t, q+strings.Repeat(" ", 1000-len(q))), 200, `"values"`},
		{"/", plain, "gzip", packed(t, q+strings.Repeat(" ", 1001-len(q))), 413,
			"more than 1000 bytes, the limit is http.max_body"},
		{"/", plain, "gzip", packed(t, strings.Repeat(" ", 100_000)), 413,
			"more than 1000 bytes, the limit is http.max_body"},
		{"/", form, "gzip", packed(t, "q="+strings.Repeat("+", 100_000)), 413,
			"more than 1000 bytes, the limit is http.max_body"},
		{"/", plain, "gzip", bytes.Repeat(packed(t, ""), 100), 413,
			"more than 1000 bytes, the limit is http.max_body"},
		{"/", plain, "gzip", packed(t, q)[:20], 400, "malformed body"},
		{"/", plain, "gzip", nil, 400, "malformed body"},
		{"/", plain, "deflate", []byte(q), 415, "Content-Encoding deflate"},
		{"/", plain, "gzip, gzip", []byte(q), 415, "Content-Encoding gzip, gzip"},
		{"/admin/flush", typeJSON, "gzip", packed(t, "{}"), 415, "Content-Encoding gzip"},
	} {
		w := post(c.path, c.contentType, c.encoding, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s %s %s, %d bytes: %d, %s; want %d and %q", c.path, c.contentType, c.encoding,
				len(c.body), w.Code, w.Body, c.status, c.text)
		}
	}
	if n := o.Store.Account().Requests(); n[reasonTooLarge] != 4 || n[reasonType] != 3 {
		t.Errorf("counted: %v", fmt.Sprint(n))
	}
}

// What is not known is refused by name, on every route, with what may be meant.
func TestUnknownParameters(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	const q = "SELECT t BUCKET b LAST 2s"
	for _, c := range []struct{ method, target, contentType, body, want string }{
		{"GET", "/?q=" + url.QueryEscape(q) + "&widht=5", "", "",
			`unknown parameter "widht"; did you mean width?`},
		{"GET", "/?query=" + url.QueryEscape(q), "", "",
			`unknown parameter "query"; did you mean q? known here are q,`},
		{"GET", "/?q=" + url.QueryEscape(q) + "&debug=1&trace_id=7&parent_id=8&graph=x", "", "",
			`"values":[198,199]`},
		{"GET", "/?tz=Europe/Zagrab&q=" + url.QueryEscape(q), "", "",
			`tz: unknown time zone "Europe/Zagrab"; did you mean Europe/Zagreb`},
		{"GET", "/?tz=UTC&compat=1&q=" + url.QueryEscape(q), "", "",
			"tz: the answers of the original know no time zones"},
		{"GET", "/?tz=Europe/Zagreb&q=" + url.QueryEscape(q), "", "", `"values":[198,199]`},
		{"POST", "/?gap=null", "application/x-www-form-urlencoded", "q=" + url.QueryEscape(q),
			`unknown parameter "gap"; did you mean gaps?`},
		{"POST", "/", "application/x-www-form-urlencoded", "gap=null&q=" + url.QueryEscape(q),
			`unknown parameter "gap"; did you mean gaps?`},
		{"POST", "/", "application/x-www-form-urlencoded", `{"q": "` + q + `"}`,
			"the form is a JSON object: send it with Content-Type application/json"},
		{"POST", "/", "application/x-www-form-urlencoded", url.QueryEscape(q), "the form has no field q"},
		{"POST", "/", "text/plain", `{"q": "` + q + `"}`, "the body is a JSON object"},
		{"POST", "/", typeJSON, `{"q": "` + q + `"}`, `"values":[198,199]`},
		{"POST", "/", typeJSON, `{"q": "x", "query": "y"}`, "both query and q"},
		{"POST", "/", typeJSON, `{"text": "x"}`,
			`unknown field "text": there is query, parameters stand in the URL`},
		{"POST", "/", typeJSON, `"` + q + `"`, "it is a JSON string, and has to be an object"},
		{"POST", "/", typeJSON, `{"query": 5}`, "query cannot be a number"},
		{"GET", "/?query=" + url.QueryEscape(q), "", "", `unknown parameter "query"; did you mean q?`},
		{"GET", "/buckets?x=1", "", "", `unknown parameter "x"`},
		{"GET", "/buckets/b?contain=1", "", "", `unknown parameter "contain"; did you mean contains?`},
		{"GET", "/buckets/bb", "", "", "did you mean 'b'?"},
		{"GET", "/collections?x=1", "", "", `unknown parameter "x"`},
		{"GET", "/collections/b/metrics?dept=1", "", "", "did you mean depth?"},
		{"GET", "/functions?x=1", "", "", `unknown parameter "x"`},
		{"GET", "/health?x=1", "", "", `unknown parameter "x"`},
		{"GET", "/ready?x=1", "", "", `unknown parameter "x"`},
		{"GET", "/metrics?x=1", "", "", `unknown parameter "x"`},
		{"GET", "/assets/x.js?x=1", "", "", `unknown parameter "x"`},
		{"GET", "/admin/account?buckets=b", "", "", "did you mean bucket?"},
		{"GET", "/admin/account?bucket=bb", "", "", "did you mean 'b'?"},
		{"GET", "/admin/segments?minutes=1", "", "", `unknown parameter "minutes"`},
		{"GET", "/admin/status?x=1", "", "", `unknown parameter "x"`},
		{"POST", "/admin/flush?x=1", "", "", `unknown parameter "x"`},
		{"GET", "/debug/pprof/heap?second=1", "", "", "did you mean seconds?"},
	} {
		r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.contentType)
		r.Header.Set("X-Dalmatiner", "1")
		r.Host = "127.0.0.1"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), c.want) ||
			(w.Code == 200) != strings.HasPrefix(c.want, `"values"`) {
			t.Errorf("%s %s %s: status %d, %s, want %s", c.method, c.target, c.body, w.Code, w.Body, c.want)
		}
	}
}
