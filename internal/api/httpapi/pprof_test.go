package httpapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"dalmatiner/internal/host/config"
)

// Who may take profiles, and what the others are told.
func TestProfilesAreForThoseWhoMay(t *testing.T) {
	const local, elsewhere = "127.0.0.1:5000", "192.0.2.1:5000"
	for _, c := range []struct {
		key, remote string
		request     request
		status      int
		says        string
	}{
		{"", local, get("/debug/pprof/"), http.StatusNotFound, "http.pprof = loopback"},
		{config.PprofOff, local, get("/debug/pprof/heap"), http.StatusNotFound, "http.pprof = loopback"},
		{config.PprofOff, elsewhere, get("/debug/pprof/profile?seconds=1"), http.StatusNotFound,
			"http.pprof = loopback"},
		{config.PprofLoopback, local, get("/debug/pprof/"), http.StatusOK, "goroutine"},
		{config.PprofLoopback, "[::1]:5000", get("/debug/pprof/"), http.StatusOK, "goroutine"},
		{config.PprofLoopback, "[::ffff:127.0.0.1]:5000", get("/debug/pprof/"), http.StatusOK,
			"goroutine"},
		{config.PprofLoopback, elsewhere, get("/debug/pprof/"), http.StatusForbidden, "http.pprof = on"},
		{config.PprofLoopback, "@", get("/debug/pprof/"), http.StatusForbidden, "http.pprof = on"},
		{config.PprofOn, elsewhere, get("/debug/pprof/"), http.StatusOK, "goroutine"},
		{config.PprofOn, local, get("/debug/pprof/", "Host: evil.example"), http.StatusForbidden,
			"http.hosts"},
		{config.PprofOn, local, get("/debug/pprof/", "Sec-Fetch-Site: cross-site"), http.StatusForbidden,
			"other origins"},
		{config.PprofOn, local, get("/debug/pprof/", "Sec-Fetch-Site: same-site"), http.StatusForbidden,
			"other origins"},
		{config.PprofOn, local, get("/debug/pprof/", "Sec-Fetch-Site: none"), http.StatusOK, "goroutine"},
		{config.PprofOn, local, get("/debug/pprof/profile?seconds=301"), http.StatusBadRequest,
			"up to 300 seconds"},
		{config.PprofOn, local, get("/debug/pprof/profile?seconds=0"), http.StatusBadRequest,
			"up to 300 seconds"},
		{config.PprofOn, local, get("/debug/pprof/trace?seconds=NaN"), http.StatusBadRequest,
			"up to 300 seconds"},
		{config.PprofOn, local, get("/debug/pprof/heap?seconds=ever"), http.StatusBadRequest,
			"up to 300 seconds"},
		{config.PprofOn, local, get("/debug/pprof/nothing"), http.StatusNotFound, "Unknown profile"},
		{config.PprofOn, local, get("/debug/pprof/goroutine?debug=1"), http.StatusOK,
			"goroutine profile: total"},
		{config.PprofOn, local, get("/debug/pprof/cmdline"), http.StatusOK, ".test"},
		{config.PprofOn, local, get("/debug/pprof/symbol"), http.StatusOK, "num_symbols"},
		{config.PprofOn, local, request{http.MethodPost, "/debug/pprof/heap", nil, ""},
			http.StatusMethodNotAllowed, "GET"},
		{config.PprofOn, local, get("/debug/pprofs"), http.StatusNotFound, "there is nothing at"},
	} {
		w := askForProfile(t, c.key, c.remote, c.request)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("http.pprof = %s, %s asks %s %s %q: %d %.200s, want %d and %q", c.key, c.remote,
				c.request.method, c.request.target, c.request.headers, w.Code, w.Body, c.status, c.says)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "" && c.says != "there is nothing at" {
			t.Errorf("%s: pages of other origins may read the answer", c.request.target)
		}
	}
	if w := askForProfile(t, config.PprofOn, local,
		get("/debug/pprof")); w.Code != http.StatusMovedPermanently ||
		w.Header().Get("Location") != profiles {
		t.Errorf("without its last slash: %d to %q", w.Code, w.Header().Get("Location"))
	}
}

func TestAProfileIsOne(t *testing.T) {
	for _, target := range []string{"/debug/pprof/heap", "/debug/pprof/allocs",
		"/debug/pprof/goroutine"} {
		w := askForProfile(t, config.PprofLoopback, "127.0.0.1:5000", get(target))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", target, w.Code, w.Body)
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatalf("%s is not packed as profiles are: %v", target, err)
		}
		var profile bytes.Buffer
		if _, err := profile.ReadFrom(z); err != nil ||
			!bytes.Contains(profile.Bytes(), []byte("TestAProfileIsOne")) &&
				target == "/debug/pprof/goroutine" {
			t.Errorf("%s: %d bytes, %v, without the function that asked", target, profile.Len(), err)
		}
	}
}

func askForProfile(t *testing.T, key, remote string, r request) *httptest.ResponseRecorder {
	t.Helper()
	o := testOptions(newFakeStore(t))
	o.Pprof = key
	req := httptest.NewRequest(r.method, r.target, nil)
	req.Host, req.RemoteAddr = "127.0.0.1:8080", remote
	return r.sendRequest(New(o), req)
}

// Every answer is counted under a route, those of administration under theirs.
func TestEveryAnswerHasARoute(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	for _, target := range []string{"/", "/buckets", "/metrics", "/admin/status", "/admin/nowhere",
		"/debug/pprof/heap", "/nowhere"} {
		get(target).send(h)
	}
	text := get("/metrics").send(h).Body.String()
	if strings.Contains(text, `requests_total{route=""`) ||
		!strings.Contains(text, `requests_total{route="/admin/",status="404"} 2`) {
		t.Errorf("the requests are counted as\n%s", text)
	}
}
