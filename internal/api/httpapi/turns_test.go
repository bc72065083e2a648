package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dalmatiner/internal/query"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestQueriesBeyondTheLimit: one query runs, a second waits in vain, a third
// one gives up, and when the first has ended a fourth one runs.
func TestQueriesBeyondTheLimit(t *testing.T) {
	s := newFakeStore(t)
	o := testOptions(s)
	o.MaxQueries = 1
	running, release := make(chan struct{}), make(chan struct{})
	o.Engine = engineFunc(func(_ context.Context, text string) (*query.Result, error) {
		if text == "slow" {
			close(running)
			<-release
		}
		return &query.Result{}, nil
	})
	h := New(o).(*api)
	done := make(chan int)
	go func() { done <- ask("slow").send(h).Code }()
	<-running

	h.queryWait = time.Millisecond
	w := ask("second").send(h)
	if w.Code != http.StatusServiceUnavailable ||
		!strings.Contains(w.Body.String(), "the limit is 1") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if n := s.ledger.Requests()[reasonBusy]; n != 1 {
		t.Errorf("counted %d times", n)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	h.queryWait = time.Hour
	if _, err := h.run(gone, "third", query.Options{}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	close(release)
	if code := <-done; code != http.StatusOK {
		t.Errorf("the slow query ended with %d", code)
	}
	if w := ask("fourth").send(h); w.Code != http.StatusOK {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// FuzzRequest: whatever comes in a path or body is answered, and never by a
// failure of ours.
func FuzzRequest(f *testing.F) {
	f.Add("/buckets/b/%5C=%5Cx05raw", "", "")
	f.Add("/?q=SELECT+t+BUCKET+b+LAST+1s", "", "")
	f.Add("/", "application/x-www-form-urlencoded", "q=SELECT+a.*+BUCKET+b+LAST+1s")
	f.Add("/", "text/plain; charset=x", "SELECT")
	f.Add("/admin/buckets/create", "application/json",
		`{"name":"\\x00","resolution":1,"ppf":1,"ttl":"inf"}`)
	f.Add("/", "application/json", `{"query":"SELECT t BUCKET b LAST 1s"}`)
	f.Add("/?q=SELECT+half+BUCKET+b+LAST+9s&gaps=null&width=4&format=msgpack", "", "")
	f.Add("/collections/b/metrics/AWE=?depth=2", "", "")
	f.Add("/collections/odd%20'%FF%0A%20name/metrics?depth=1&format=msgpack", "", "")
	f.Add("/admin/buckets/ttl", "application/json", `{"name":"b","ttl":1}`)
	f.Add("/admin/buckets/delete", "application/json", `{"name":"b"}`)
	f.Add("/admin/account?bucket=b&minutes=1", "", "")
	f.Fuzz(func(t *testing.T, target, contentType, body string) {
		method := http.MethodGet
		if contentType != "" {
			method = http.MethodPost
		}
		req, err := http.NewRequest(method, "http://127.0.0.1"+target, strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		s := newFakeStore(t)
		r := request{method, req.URL.RequestURI(),
			[]string{"Content-Type: " + contentType, "X-Dalmatiner: 1"}, body}
		r.headers = append(r.headers, "Accept-Encoding: gzip")
		if w := r.sendRequest(New(testOptions(s)), req); w.Code >= 500 &&
			w.Code != http.StatusNotImplemented || w.Code < 200 {
			t.Fatalf("%s %s %q: %d %s", method, target, body, w.Code, w.Body)
		}
	})
}
