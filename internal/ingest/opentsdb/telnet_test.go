package opentsdb

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/store/tagstore"
)

// startTelnet serves lines until the end of the test, and returns a connection.
func startTelnet(t *testing.T, st *store.Store) net.Conn {
	t.Helper()
	s := NewTelnet(Options{Points: st.Intake(), Tags: tagstore.Tagger{Of: st.Tags()},
		Memory: st.Memory(), Account: st.Account(), Logger: slog.New(slog.DiscardHandler), Now: st.Now,
		Bucket: "b", Version: "7"})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = nc.Close()
		_ = ln.Close()
		s.Shutdown()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return nc
}

// A line that is stored has no answer, any other one has.
func TestLines(t *testing.T) {
	st := storetest.Open(t, storetest.Options())
	nc := startTelnet(t, st)
	answers := bufio.NewReader(nc)
	now := time.Now().Unix()
	for _, c := range []struct{ line, want string }{
		{fmt.Sprintf("put sys.cpu.user %d 42.5 host=webserver01 cpu=0\n", now), ""},
		{fmt.Sprintf("put  sys.cpu.user  %d250 7 host=webserver02\r\n\n", now), ""},
		{"version", "dalmatiner 7, lines and JSON of OpenTSDB 2.4"},
		{"put a 1", "put: illegal argument: not enough arguments, want metric, time, value and tags"},
		{"put a 1 x h=1", "put: illegal argument: unable to parse value to a number: put a 1 x h=1"},
		{"put a 0 1 h=1", "put: illegal argument: invalid timestamp: put a 0 1 h=1"},
		{"put a 1 1 h", "put: illegal argument: invalid tag, write name=value: put a 1 1 h"},
		{"put a 1 1 h=1 h=2", "put: illegal argument: a label without a name, or one that occurs"},
		{"dance", "unknown command: dance.  Try `help'."},
		{"help", "available commands: exit help put stats version"},
		{strings.Repeat("x", 70_000) + "\nhelp", "available commands: exit help put stats version"},
		{"stats", "dalmatiner.opentsdb.lines "},
	} {
		if _, err := nc.Write([]byte(c.line)); err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			continue
		}
		if _, err := nc.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		got, err := answers.ReadString('\n')
		if err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%.50s: %q %v, want %q", c.line, got, err, c.want)
		}
	}
	if _, err := nc.Write([]byte("exit\nput a 1 1 h=1\n")); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := answers.ReadString('\n'); err != nil {
			break // the connection is closed
		}
	}
	b, err := st.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Account().Total(b.ID); got.Accepted != 2 || got.ReceivedPoints() != 2 {
		t.Errorf("%+v", got)
	}
	if r := st.Account().Requests(); r["opentsdb_bad_line"] != 5 ||
		r["opentsdb_unknown_command"] != 1 || r["opentsdb_line_too_long"] != 1 {
		t.Errorf("%v", r)
	}
	var key []byte
	for _, part := range []string{"sys", "cpu", "user", "cpu=0", "host=webserver01"} {
		key = metric.AppendPart(key, part)
	}
	words := make([]uint64, 1)
	if err := st.Read(t.Context(), b, key, now, words); err != nil ||
		words[0] != point.FromFloat(42.5) {
		t.Errorf("%x, %v", words, err)
	}
}

// A sender that never reads its answers is not held up, and its points are stored.
func TestAnswersThatNobodyReads(t *testing.T) {
	st := storetest.Open(t, storetest.Options())
	nc := startTelnet(t, st)
	text := []byte(strings.Repeat("dance\n", 100_000))
	for range 20 {
		if _, err := nc.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fmt.Fprintf(nc, "put a %d 1 h=1\nexit\n", time.Now().Unix()); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, nc) // to the end of the connection
	b, err := st.BucketByName("b")
	if err != nil || st.Account().Total(b.ID).Accepted != 1 {
		t.Errorf("the point is not stored: %v", err)
	}
}
