package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"dalmatiner/internal/host/config"
)

func TestGoldenGuard(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	body := `{"name":"b"}`
	compareGolden(t, "guard.golden", h, []request{
		{http.MethodPost, "/admin/buckets/delete", []string{"Content-Type: application/json"}, body},
		{http.MethodPost, "/admin/buckets/delete",
			[]string{"X-Dalmatiner: 1", "Content-Type: text/plain"}, body},
		change("/admin/buckets/delete", body, "Origin: http://evil.example"),
		change("/admin/buckets/delete", body, "Host: evil.example:8080",
			"Origin: http://evil.example:8080"),
		change("/admin/buckets/delete", body, "Origin: null"),
		get("/admin/buckets/delete", "X-Dalmatiner: 1"),
		{http.MethodOptions, "/admin/buckets/delete", []string{"Origin: http://evil.example"}, ""},
		change("/admin/flush", "{}", "Host: localhost:8080"),
		change("/admin/flush", "{}", "Host: DB.example"),
		change("/admin/flush", "{}", "Host: [::1]:8080"),
		change("/admin/flush", "{}", "Host: [::1]"),
		get("/buckets/b/t"),
	})
}

// Reads of what is not public data are behind the guard as well: a name that an
// attacker points at this node must not read them, nor a page of another origin.
func TestPrivateReadsAreGuarded(t *testing.T) {
	o := testOptions(newFakeStore(t))
	o.Pprof = config.PprofOn
	h := New(o)
	private := []string{"/admin/log", "/admin/status", "/admin/account", "/admin/stats",
		"/admin/segments", "/admin/caches", "/admin/snapshots", "/debug/pprof/", "/debug/pprof/cmdline"}
	public := []string{"/", "/buckets", "/buckets/b", "/functions", "/collections", "/health",
		"/ready", "/metrics"}
	for _, c := range []struct {
		headers []string
		status  int
		says    string
	}{
		{nil, http.StatusOK, ""},
		{[]string{"Host: evil.example:8080"}, http.StatusForbidden, "http.hosts"},
		{[]string{"Host: evil.example:8080", "Origin: http://evil.example:8080"}, http.StatusForbidden,
			"http.hosts"},
		{[]string{"Host: "}, http.StatusForbidden, "http.hosts"},
		{[]string{"Origin: http://evil.example"}, http.StatusForbidden, "other origins"},
		{[]string{"Origin: null"}, http.StatusForbidden, "other origins"},
		{[]string{"Sec-Fetch-Site: cross-site"}, http.StatusForbidden, "other origins"},
		{[]string{"Host: DB.example", "Origin: http://db.example", "Sec-Fetch-Site: same-origin"},
			http.StatusOK, ""},
		{[]string{"Host: localhost:1"}, http.StatusOK, ""},
	} {
		for _, path := range private {
			w := get(path, c.headers...).send(h)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%s with %q: %d %.200s, want %d", path, c.headers, w.Code, w.Body, c.status)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: pages of other origins may read the answer", path)
			}
		}
		for _, path := range public {
			if w := get(path, c.headers...).send(h); w.Code == http.StatusForbidden {
				t.Errorf("%s with %q is refused: %s", path, c.headers, w.Body)
			}
		}
	}
}
