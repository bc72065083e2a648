package httpapi

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Paths are taken as they come: nothing is cleaned, and nobody is sent elsewhere,
// since parts of names may be empty, dots or slashes.
func TestPathsAreTakenAsTheyAre(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	for path, want := range map[string]int{
		"":                                    404,
		"*":                                   404,
		"//":                                  404,
		"/assets":                             404,
		"/admin":                              404,
		"/admin/":                             404,
		"/admin/none":                         404,
		"/admin//flush":                       404,
		"/admin/../functions":                 404,
		"/buckets":                            200,
		"/buckets/":                           200,
		"/buckets/b/":                         200,
		"/buckets/b/a//":                      200,
		"/buckets/b/../../admin/flush":        200,
		"/buckets/b/..%2f..%2fadmin":          200,
		"/buckets/../admin/status":            404,
		"/collections/":                       200,
		"/collections/b":                      404,
		"/collections//metrics":               404,
		"/collections/b/metrics/":             200,
		"/collections/b/namespaces":           200,
		"/collections/b/namespaces/":          200,
		"/collections/b/namespaces//tags":     200,
		"/collections/b/namespaces/x/y":       404,
		"/collections/b/metrics/a/namespaces": 400,
		"/collections/b/metrics/AWE=/namespaces/x": 404,
		"/collections/b/metrics/namespaces":        200,
		"/debug/pprof":                             301,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/", nil)
		r.URL = &url.URL{Path: path, RawPath: path}
		if decoded, err := url.PathUnescape(path); err == nil {
			r.URL.Path = decoded
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d: %.200s", path, w.Code, want, strings.TrimSpace(w.Body.String()))
		}
	}
}
