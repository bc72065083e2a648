package server

import (
	"bytes"
	"context"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dalmatiner/haggar"
	"dalmatiner/internal/api/admin"
)

func TestCollecting(t *testing.T) {
	log := []string{
		"time=x level=INFO msg=ready",
		"gc 1 @0.012s 2%: 0.026+0.39+0.10 ms clock, 0.5+1/2/3+0.25 ms cpu, 4->4->0 MB, 4 MB goal, 0 MB " +
			"stacks, 0 MB globals, 2 P",
		"gc 2 @0.5s 0%: 0.1+0.2+0.1 ms clock, 0.25+0/1/0+2 ms cpu, 4->4->1 MB, 4 MB goal, 0 MB stacks, " +
			"0 MB globals, 2 P (forced)",
	}
	if got, want := collecting(log), 10*time.Millisecond; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A load into the discard server ends without errors, as it does with a store.
func TestDiscard(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- discard(ln) }()
	c := haggar.Config{
		Addr: ln.Addr().String(), Bucket: haggar.DefaultBucket, Agents: 2, Metrics: 100, Steps: 50,
		Fast: true, Batch: true, CacheConnections: true, Start: time.Unix(1_700_000_000, 0),
	}
	sum, err := haggar.Run(context.Background(), c)
	if err != nil || sum.Errors != 0 || sum.Points != 2*100*50 {
		t.Errorf("got %+v, %v, want 10000 points", sum, err)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A query to the server that has its answer ready is answered with it.
func TestAnswer(t *testing.T) {
	s := httptest.NewServer(answer([]byte(`{"t":0}`)))
	defer s.Close()
	client := admin.Client{Addr: strings.TrimPrefix(s.URL, "http://"), HTTP: s.Client()}
	var body bytes.Buffer
	if err := client.CopyQuery(t.Context(), &body, "SELECT 'a' BUCKET b LAST 1s"); err != nil ||
		body.String() != `{"t":0}` {
		t.Errorf("got %q, %v", &body, err)
	}
}

// Settings that are given come before free ports.
func TestCommand(t *testing.T) {
	e := Env{Bin: "b"}
	for _, c := range []struct {
		settings []string
		want     string
	}{
		{nil, "b/ddb serve --data-dir d --set tcp.addr=127.0.0.1:0 --set http.addr=127.0.0.1:0"},
		{[]string{"http.addr=127.0.0.1:9", "a=1"},
			"b/ddb serve --data-dir d --set http.addr=127.0.0.1:9 --set a=1 --set tcp.addr=127.0.0.1:0"},
	} {
		if got := strings.Join(e.Command("d", c.settings...).Args, " "); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
