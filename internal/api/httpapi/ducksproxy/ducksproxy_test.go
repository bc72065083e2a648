package ducksproxy

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What ducks gets and says is what the page sent and sees, without what is of no concern to the
// other.
func TestRequestsAreHandedOn(t *testing.T) {
	seen := make(chan *http.Request, 1)
	ducks := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		seen <- r
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"error": "it is on"}`)
	}))
	defer ducks.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ducks.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(ducks.URL)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(to, ca)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPatch, Path+"devices/a%2Fb?x=1", strings.NewReader("{}"))
	for name, value := range map[string]string{"Authorization": "Bearer s",
		"Content-Type": "application/json", "Cookie": "c=d", "X-Dalmatiner": "1",
		"X-Forwarded-For": "192.0.2.1"} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	if err := p.Serve(w, r); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusConflict || w.Body.String() != `{"error": "it is on"}` ||
		w.Header().Get("Set-Cookie") != "" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	got := <-seen
	body, err := io.ReadAll(got.Body)
	if err != nil || string(body) != "{}" || got.Method != http.MethodPatch ||
		got.RequestURI != "/api/v1/devices/a%2Fb?x=1" {
		t.Errorf("%s %s %q %v", got.Method, got.RequestURI, body, err)
	}
	if got.Header.Get("Authorization") != "Bearer s" ||
		got.Header.Get("Cookie")+got.Header.Get("X-Dalmatiner")+got.Header.Get("X-Forwarded-For") != "" {
		t.Errorf("it got %v", got.Header)
	}

	if p, err = New(to, ""); err != nil {
		t.Fatal(err)
	}
	if err := p.Serve(httptest.NewRecorder(),
		httptest.NewRequest(http.MethodGet, Path+"pool", nil)); err == nil ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a server that nobody trusts: %v", err)
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), os.DevNull} {
		if _, err := New(to, file); err == nil {
			t.Errorf("%s is taken as a certificate", file)
		}
	}
}
