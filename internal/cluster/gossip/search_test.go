package gossip

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines are what a node logs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

// A node that finds nobody says so, and why: in its log, and to who asks. When it finds somebody it
// stops.
func TestANodeThatFindsNobody(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := silent.Addr().String()
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	other := testOptions(1)
	other.Cookie = "another secret"
	stranger := open(t, other)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = port.Close() })
	go func() { // a port of something else
		for {
			c, err := port.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	for what, c := range map[string]struct{ addr, says string }{
		"nobody":           {nobody, "nobody listens at " + nobody},
		"another cookie":   {stranger.Addr(), "does not speak gossip with this cookie"},
		"the port of HTTP": {port.Addr().String(), "does not speak gossip with this cookie"},
	} {
		t.Run(what, func(t *testing.T) {
			o, log := testOptions(2, c.addr), &lines{}
			o.Timeout = 200 * time.Millisecond
			o.Logger = slog.New(slog.NewTextHandler(log, nil))
			n := open(t, o)
			says := func() bool {
				return len(n.NotFound()) == 1 && strings.Contains(n.NotFound()[0].Error(), c.says)
			}
			waitFor(t, "NotFound", says)
			waitFor(t, "a line of the log", func() bool {
				return log.has("no other node is found") && log.has(c.says)
			})
			friend := open(t, testOptions(3, n.Addr()))
			waitFor(t, "it was found", func() bool {
				return len(n.NotFound()) == 0 && len(friend.NotFound()) == 0
			})
		})
	}
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain for: " + what)
		}
	}
}
