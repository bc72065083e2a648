package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/api/httpapi/ducksproxy"
)

// What is for ducks reaches it, and nothing that another page in the browser asks for; a ducks that
// is gone is named.
func TestDucks(t *testing.T) {
	ducks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `"`+r.Method+" "+r.URL.Path+`"`)
	}))
	defer ducks.Close()
	to, err := url.Parse(ducks.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions(newFakeStore(t))
	if o.Ducks, err = ducksproxy.New(to, ""); err != nil {
		t.Fatal(err)
	}
	h, alone := New(o), New(testOptions(newFakeStore(t)))
	ask := func(h http.Handler, method string, header ...string) (int, string) {
		t.Helper()
		r := httptest.NewRequest(method, "http://127.0.0.1/ducks/api/v1/devices/pc1",
			strings.NewReader("{}"))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: pages of all origins may read it", method)
		}
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		method string
		header []string
		status int
		text   string
	}{
		{http.MethodGet, nil, http.StatusOK, `"GET /api/v1/devices/pc1"`},
		{http.MethodPatch, []string{admin.Header, "1"}, http.StatusOK, `"PATCH /api/v1/devices/pc1"`},
		{http.MethodPatch, nil, http.StatusForbidden, admin.Header},
		{http.MethodDelete, nil, http.StatusForbidden, admin.Header},
		{http.MethodPut, nil, http.StatusForbidden, admin.Header},
		{http.MethodGet, []string{"Origin", "http://192.0.2.1"}, http.StatusForbidden, "other origins"},
		{http.MethodOptions, nil, http.StatusMethodNotAllowed, "only GET"},
	} {
		if status, text := ask(h, c.method, c.header...); status != c.status ||
			!strings.Contains(text, c.text) {
			t.Errorf("%s %q: %d %s", c.method, c.header, status, text)
		}
	}
	if status, text := ask(alone, http.MethodGet); status != http.StatusNotFound ||
		!strings.Contains(text, "ducks.url") {
		t.Errorf("without ducks: %d %s", status, text)
	}
	ducks.Close()
	if status, text := ask(h, http.MethodGet); status != http.StatusBadGateway ||
		!strings.Contains(text, "ducks at "+ducks.URL+" does not answer") {
		t.Errorf("a ducks that is gone: %d %s", status, text)
	}
}
