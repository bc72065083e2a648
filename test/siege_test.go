package test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
	"dalmatiner/test/siege"
)

const (
	siegeTime   = 4 * time.Second
	siegeSeries = 5_000
)

// guests are the good ones beside an attack: a sender of known series over a
// connection of its own, and somebody who asks queries, each with a new connection.
type guests struct {
	n       *node
	known   *flood
	stop    chan struct{}
	sent    chan error
	asked   chan struct{}
	took    []time.Duration // by queries
	refused []string
}

// welcome lets the good ones begin.
func welcome(t *testing.T, n *node) *guests {
	t.Helper()
	g := &guests{n: n, known: newFlood(t, n, "known"), stop: make(chan struct{}),
		sent: make(chan error, 1), asked: make(chan struct{})}
	g.known.send(0, siegeSeries, time.Now().Unix())
	go func() { g.sent <- g.send() }()
	go func() {
		defer close(g.asked)
		g.ask()
	}()
	return g
}

func (g *guests) send() error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for slot := time.Now().Unix() - 300; ; slot++ {
		select {
		case <-g.stop:
			return nil
		case <-tick.C:
			if err := g.known.round(0, siegeSeries, slot); err != nil {
				return err
			}
		}
	}
}

func (g *guests) ask() {
	httpClient := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	q := url.QueryEscape("SELECT avg('requests'.'host1'.'1' BUCKET known, 10s) LAST 5m")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-tick.C:
		}
		began := time.Now()
		resp, err := httpClient.Get("http://" + g.n.http + "/?q=" + q)
		text := ""
		if err == nil {
			var body []byte
			body, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close() // it was read
			if resp.StatusCode != http.StatusOK {
				text = fmt.Sprintf("%d %.200s", resp.StatusCode, body)
			}
		}
		if err != nil {
			text = err.Error()
		}
		if text != "" {
			g.refused = append(g.refused, text)
			continue
		}
		g.took = append(g.took, time.Since(began))
	}
}

// leave ends the good ones and checks that they were served.
func (g *guests) leave(t *testing.T, took time.Duration) {
	t.Helper()
	close(g.stop)
	if err := <-g.sent; err != nil {
		t.Errorf("the good sender was cut off: %v", err)
	}
	<-g.asked
	slices.Sort(g.took)
	if len(g.took) == 0 {
		t.Fatalf("no query was answered: %q", g.refused)
	}
	t.Logf("beside it: %.0f points/s, slowest round %v; %d queries, median %v, slowest %v, %d "+
		"refused %.1q",
		float64(g.known.sent)/took.Seconds(), g.known.slowest.Round(time.Millisecond),
		len(g.took), g.took[len(g.took)/2].Round(time.Microsecond),
		g.took[len(g.took)-1].Round(time.Millisecond), len(g.refused), g.refused)
	if g.known.refused != 0 {
		t.Errorf("%d points of known series are refused", g.known.refused)
	}
	if len(g.refused) > len(g.took)/4 {
		t.Errorf("%d of %d queries were refused: %q", len(g.refused), len(g.refused)+len(g.took),
			g.refused[0])
	}
}

// besiege runs an attack beside good senders and queries and checks the memory.
func besiege(t *testing.T, n *node, peak func() int64, attack func() *siege.Attack,
	enough func(a *siege.Attack) bool) {
	t.Helper()
	g := welcome(t, n)
	began := time.Now()
	a := attack()
	defer a.Close()
	eventually(t, "the attack has lasted long enough", func() bool {
		return time.Since(began) >= siegeTime && enough(a)
	})
	took := time.Since(began)
	g.leave(t, took)
	most := peak()
	t.Logf("at most %d MiB; %d connections, %d MiB taken; cut off: %v", most>>20, a.Opened.Load(),
		a.Sent.Load()>>20, cuts(n))
	if most > testMemory/10*11 {
		t.Errorf("the process had %d MiB of its own, the limit is %d", most>>20, testMemory>>20)
	}
}

// cuts returns the connections that the node ended by itself.
func cuts(n *node) map[string]float64 {
	out := map[string]float64{}
	stats, err := n.admin().Stats(context.Background())
	if err != nil {
		return out
	}
	for _, s := range stats {
		if name, ok := strings.CutPrefix(s.Name, "connections_cut_total"); ok && s.Value > 0 {
			out[name] = s.Value
		}
	}
	return out
}

func besieged(t *testing.T, args ...string) (*node, func() int64) {
	t.Helper()
	n := startNode(t, t.TempDir(),
		append([]string{"--set", "memory.limit=256MB", "--set", "storage.min_free=0",
			"--set", "graphite.addr=127.0.0.1:0", "--set", "graphite.pickle_addr=127.0.0.1:0"}, args...)...)
	return n, watchMemory(t, n)
}

func always(*siege.Attack) bool { return true }

// Messages that never end stay inside the share of the memory that unfinished
// input has, on every listener, and nobody else is kept from being served.
func TestUnfinishedInput(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		run  func(n *node) *siege.Attack
	}{
		{"frames of 16 MiB", []string{"--set", "tcp.max_frame=16MB"}, func(n *node) *siege.Attack {
			return siege.Start(n.tcp, 100, siege.Frame(16<<20))
		}},
		{"frames of 1 MiB", nil, func(n *node) *siege.Attack {
			return siege.Start(n.tcp, 900, siege.Frame(1<<20))
		}},
		{"entries", nil, func(n *node) *siege.Attack {
			return siege.Start(n.tcp, 900, siege.Entry("hold", 1<<20-64))
		}},
		{"bodies", nil, func(n *node) *siege.Attack {
			return siege.Start(n.http, 900, siege.Body("/", 1<<20))
		}},
		{"pickles", nil, func(n *node) *siege.Attack {
			return siege.Start(n.listener("graphite pickled lists"), 900, siege.Pickle(1<<20))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, peak := besieged(t, c.args...)
			besiege(t, n, peak, func() *siege.Attack { return c.run(n) }, always)
			n.stop()
		})
	}
}

// Answers that nobody reads are cut off and give their memory back: the node is calm
// again, and others are answered meanwhile.
func TestAnswersThatAreNotRead(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(n *node) *siege.Attack
	}{
		{"queries", func(n *node) *siege.Attack {
			q := url.QueryEscape("SELECT 'requests'.* BUCKET known LAST 10m")
			return siege.Start(n.http, 200,
				siege.Unread([]byte("GET /?q="+q+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")))
		}},
		{"listings", func(n *node) *siege.Attack {
			return siege.Start(n.http, 200,
				siege.Unread([]byte("GET /buckets/known HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")))
		}},
		{"gets", func(n *node) *siege.Attack {
			return siege.Start(n.tcp, 200, siege.Unread(siege.Get("known", 1<<26)))
		}},
		{"lists", func(n *node) *siege.Attack {
			return siege.Start(n.tcp, 200, siege.Unread(siege.List("known")))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, peak := besieged(t)
			besiege(t, n, peak, func() *siege.Attack { return c.run(n) }, always)
			ended := time.Now()
			eventually(t, "the node is calm", func() bool { return n.figure("memory_level") == 0 })
			t.Logf("calm %v after the end", time.Since(ended).Round(time.Millisecond))
			n.stop()
		})
	}
}

// Idle connections lock nobody out: at the limit the idlest make room.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	n, peak := besieged(t, "--set", "tcp_max_connections=200", "--set", "http.max_connections=200")
	tcp := siege.Start(n.tcp, 250, siege.Silent)
	defer tcp.Close()
	web := siege.Start(n.http, 250, siege.Silent)
	defer web.Close()
	eventually(t, "all connections are open", func() bool {
		return tcp.Opened.Load()+web.Opened.Load() == 500
	})
	began := time.Now()
	eventually(t, "a sender and a query get through", func() bool {
		out, err := n.tryPoint()
		return err == nil && out
	})
	t.Logf("a new sender got through after %v; cut off: %v; at most %d MiB",
		time.Since(began).Round(time.Millisecond), cuts(n), peak()>>20)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("idle connections locked a sender out for %v", took)
	}
	n.stop()
}

// tryPoint sends a point with a new connection and looks whether it was taken.
func (n *node) tryPoint() (bool, error) {
	c, err := client.Dial(n.t.Context(), n.tcp)
	if err != nil {
		return false, err
	}
	s, err := c.OpenAckStream("late")
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Close() }() // its answer was read
	if err := s.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false, err
	}
	if err := s.Point([]byte("\x01a"), time.Now().Unix(), point.FromInt(1)); err != nil {
		return false, err
	}
	if _, err := s.FlushAck(); err != nil {
		return false, err
	}
	ack, err := s.ReadAck()
	return err == nil && ack.Received == 1 && ack.Refused == 0, err
}

// A GET of 21 bytes costs no processor time to speak of, and garbage on every
// connection no log line each.
func TestSmallRequestsCostLittle(t *testing.T) {
	n, _ := besieged(t)
	before, err := n.cpuTime()
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := n.tryPoint(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for _, count := range []uint32{1 << 26, 1<<32 - 1} {
		nc := n.to("tcp", n.tcp)
		if _, err := nc.Write(siege.Get("late", count)); err != nil {
			t.Fatal(err)
		}
		if err := nc.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, nc); err != nil {
			t.Fatal(err)
		}
	}
	const garbage = 300
	for range garbage {
		nc := n.to("tcp", n.tcp)
		if _, err := nc.Write([]byte("\xff\xff\xff\xffgarbage")); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, nc) // the ERROR
		_ = nc.Close()                 // it is at its end
	}
	after, err := n.cpuTime()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v of processor time", after-before)
	if spent := after - before; spent > 2*time.Second {
		t.Errorf("%v of processor time", spent)
	}
	if lines := strings.Count(n.log.String(), "\n"); lines > garbage/3 {
		t.Errorf("%d log lines for %d connections", lines, garbage)
	}
	n.stop()
	if !strings.Contains(n.log.String(), "left_out=") {
		t.Error("the log does not say that lines were left out")
	}
}

// A name that an attacker points at the node reads no log.
func TestAForeignNameReadsNothingPrivate(t *testing.T) {
	t.Parallel()
	n, _ := besieged(t)
	for path, want := range map[string]int{"/admin/log": 403, "/admin/status": 403,
		"/debug/pprof/": 403, "/buckets": 200, "/metrics": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.http+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "evil.example"
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // only the status counts
		if resp.StatusCode != want {
			t.Errorf("%s under a foreign name: %d, want %d", path, resp.StatusCode, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	n.stop()
}
