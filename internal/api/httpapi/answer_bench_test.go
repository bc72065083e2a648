package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"dalmatiner/internal/query"
)

// hourAnswer is the answer to the maximum of each minute of an hour.
func hourAnswer(context.Context, string) (*query.Result, error) {
	values := make([]float64, 60)
	for i := range values {
		values[i] = float64(i * 7919 % 1000)
	}
	return &query.Result{Start: 1_700_000_000_000, QueryTime: 50 * time.Microsecond,
		Series: []query.Series{
			{Name: "max('base'.'haggar'.'1'.'17' BUCKET 'haggar', 60s)", Resolution: 60_000, Values: values,
				Coverage: 1}}}, nil
}

const hourRequest = "/?q=SELECT+max%28%27base%27.%27haggar%27.%271%27.%2717%27+BUCKET+haggar%2C+1m%29+BEFORE+%222023-11-14+22%3A13%3A20%22+FOR+3600s"

// discardReply is a reply that nobody gets.
type discardReply struct{ h http.Header }

func (w discardReply) Header() http.Header         { return w.h }
func (w discardReply) WriteHeader(int)             {}
func (w discardReply) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkHandler is what the routes do of a query beside the engine, without a
// connection.
func BenchmarkHandler(b *testing.B) {
	h := New(benchOptions(b))
	u, err := url.Parse(hourRequest)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r := &http.Request{Method: "GET", URL: u, Host: "x", Body: http.NoBody,
			Header: http.Header{"Accept-Encoding": {"gzip"}}}
		h.ServeHTTP(discardReply{http.Header{}}, r)
	}
}

// BenchmarkAnswer asks over one connection: a server with all routes, and one
// that knows nothing but the same bytes, which is what net/http and the system
// take.
func BenchmarkAnswer(b *testing.B) {
	o := benchOptions(b)
	routes := New(o)
	w := httptest.NewRecorder()
	routes.ServeHTTP(w, httptest.NewRequest("GET", hourRequest, nil))
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{
		{"routes", routes},
		{"floor", http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
			maps.Copy(to.Header(), w.Header())
			_, _ = to.Write(w.Body.Bytes())
		})},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchAnswer(b, NewServer(c.handler, o.Logger, 2*time.Minute))
		})
	}
}

func benchAnswer(b *testing.B, srv *http.Server) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	defer func() {
		_ = srv.Close()
		<-done
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	request := []byte("GET " + hourRequest + " HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n")
	if _, err := conn.Write(request); err != nil {
		b.Fatal(err)
	}
	var whole bytes.Buffer // all answers are as long as the first
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &whole)), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp, err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
	answer := make([]byte, whole.Len())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, answer); err != nil {
			b.Fatal(err)
		}
	}
	if !bytes.HasPrefix(answer, whole.Bytes()[:15]) {
		b.Fatalf("%q", answer)
	}
}

func benchOptions(b *testing.B) Options {
	o := testOptions(newFakeStore(b))
	o.Engine = engineFunc(hourAnswer)
	return o
}
