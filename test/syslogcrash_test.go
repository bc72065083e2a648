package test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query/filter"
	"dalmatiner/internal/wire"
)

// syslogSenders are the ways in. Messages of one sender and round are numbered from 0.
var syslogSenders = []struct {
	name, network string
	frame         func(msg string) string
}{
	{"counted", "tcp", func(msg string) string { return fmt.Sprintf("%d %s", len(msg), msg) }},
	{"lines", "tcp", func(msg string) string { return msg + "\n" }},
	{"datagrams", "udp", func(msg string) string { return msg }},
}

// maxSyslog is how many messages a sender sends at most before the node is killed.
const maxSyslog = 40_000

// syslogModel is what is known of the messages of all lives of a node.
type syslogModel struct {
	mu      sync.Mutex
	base    time.Time
	sent    map[string]int  // by sender and round
	durable map[string]bool // messages that were read before an answered write
	reads   int             // that were whole, and had to see nothing wrong
}

// message returns the text of message i of a sender.
func (m *syslogModel) message(sender, round, i int) string {
	at := m.base.Add(time.Duration(i) * time.Millisecond).UTC().Format("2006-01-02T15:04:05.000Z")
	return fmt.Sprintf("<13>1 %s host %s %d - - %s", at, syslogSenders[sender].name, round,
		m.text(sender, round, i))
}

func (m *syslogModel) text(sender, round, i int) string {
	return fmt.Sprintf("%s/%d/%d", syslogSenders[sender].name, round, i)
}

// total is how many messages were sent.
func (m *syslogModel) total() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, sent := range m.sent {
		n += sent
	}
	return n
}

// send sends messages until the node is gone.
func (m *syslogModel) send(nc net.Conn, sender, round int) {
	s := syslogSenders[sender]
	for i := range maxSyslog {
		m.mu.Lock()
		m.sent[fmt.Sprintf("%s/%d", s.name, round)] = i + 1
		m.mu.Unlock()
		if _, err := io.WriteString(nc, s.frame(m.message(sender, round, i))); err != nil {
			return
		}
	}
}

// read returns the messages that an opcode gives, 17 where there is a condition, 14 otherwise.
// Nothing may come that was not sent (I2), none twice, and none out of order.
func (m *syslogModel) read(t *testing.T, c *client.Client,
	condition string) (map[string]bool, error) {
	var want *filter.Filter
	if condition != "" {
		var err error
		if want, err = filter.FromText(condition); err != nil {
			t.Error(err)
		}
	}
	seen := make(map[string]bool)
	last := uint64(0)
	err := c.ReadEvents(t.Context(), "syslog", 0, math.MaxInt64, want, func(e wire.Event) error {
		field, _ := term.Root(e.Term).Field("message")
		text, _ := field.Text()
		if e.Time < last || seen[string(text)] {
			return fmt.Errorf("%s at %d ns comes twice or out of order", text, e.Time)
		}
		last, seen[string(text)] = e.Time, true
		return nil
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	for text := range seen {
		i := strings.LastIndexByte(text, '/')
		n := 0
		if _, err := fmt.Sscan(text[i+1:], &n); err != nil || n >= m.sent[text[:i]] {
			return nil, fmt.Errorf("%q was not sent", text)
		}
	}
	return seen, err
}

// readUntilDeath reads what comes. What it has read is durable once a later write is answered.
func (m *syslogModel) readUntilDeath(t *testing.T, n *node, c *client.Client,
	first chan<- struct{}) {
	for begun := false; ; {
		seen, err := m.read(t, c, "")
		if err != nil {
			if strings.Contains(err.Error(), "was not sent") || strings.Contains(err.Error(), "twice") {
				t.Error(err)
			}
			return
		}
		resp, err := http.Post("http://"+n.http+"/events/mark", "application/json",
			strings.NewReader("{}\n"))
		if err != nil {
			return
		}
		_ = resp.Body.Close() // the status tells
		if resp.StatusCode != http.StatusOK {
			return
		}
		m.durable = seen
		m.reads++
		if len(seen) > 0 && !begun {
			first <- struct{}{}
			begun = true
		}
	}
}

// check compares what the node has with what was sent.
func (m *syslogModel) check(t *testing.T, n *node, rounds int) int {
	t.Helper()
	seen, err := m.read(t, n.dial(), "")
	if err != nil {
		t.Fatal(err)
	}
	for text := range m.durable {
		if !seen[text] {
			t.Fatalf("%s was durable and is not there", text)
		}
	}
	filtered := 0
	for sender, s := range syslogSenders {
		of, err := m.read(t, n.dial(), "app == '"+s.name+"'")
		if err != nil {
			t.Fatal(err)
		}
		filtered += len(of)
		for round := range rounds {
			there := 0
			for i := range m.sent[fmt.Sprintf("%s/%d", s.name, round)] {
				if text := m.text(sender, round, i); of[text] != seen[text] {
					t.Fatalf("%s comes from opcode 14: %v, from 17: %v", text, seen[text], of[text])
				} else if seen[text] && s.network == "tcp" && there < i {
					t.Fatalf("%s is there, and message %d of its connection is not", text, there)
				} else if seen[text] {
					there++
				}
			}
		}
	}
	a, err := n.admin().Account(t.Context(), "syslog", 0)
	if err != nil {
		t.Fatal(err)
	}
	if rows := a.Events.Rows; len(rows) != 1 || rows[0].Accepted+rows[0].Late != uint64(len(seen)) ||
		rows[0].Sum() != rows[0].Received || filtered != len(seen) {
		t.Fatalf("the account says %+v, %d events are there, %d by senders", rows, len(seen), filtered)
	}
	return len(seen)
}

// TestSyslogSurvivesKill: after kill -9 at any instant the store has of each TCP connection what it
// sent up to some message, and of each datagram all or nothing; all that was read before an
// answered write is among it; opcodes 14 to 17 give each once, while it comes and afterwards; and
// the account counts just these (I1 to I3).
func TestSyslogSurvivesKill(t *testing.T) {
	t.Parallel()
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	rng := seeded(t)
	dir := t.TempDir()
	m := &syslogModel{base: time.Now().Add(-time.Minute), sent: make(map[string]int)}
	for round := range rounds {
		n := startNode(t, dir, "--set", "wal.sync=always", "--set", "syslog.addr=127.0.0.1:0")
		if round > 0 {
			m.check(t, n, round)
		}
		m.round(t, n, rng, round)
	}
	n := startNode(t, dir)
	stored := m.check(t, n, rounds)
	n.stop()
	if again := m.check(t, startNode(t, dir), rounds); again != stored {
		t.Fatalf("%d events after a stop, %d before", again, stored)
	}
	t.Logf("%d kills: sent %v, there %d, durable at the last kill %d, %d reads beside", rounds, m.sent,
		stored, len(m.durable), m.reads)
	for round := range rounds {
		for _, s := range syslogSenders {
			if m.sent[fmt.Sprintf("%s/%d", s.name, round)] == 0 {
				t.Errorf("round %d sent no %s: the test shows nothing", round, s.name)
			}
		}
	}
}

// round sends from all senders, reads beside them, and kills the node at a random instant. Every
// second one flushes.
func (m *syslogModel) round(t *testing.T, n *node, rng *rand.Rand, round int) {
	t.Helper()
	addr := n.listener("syslog messages")
	before := m.total()
	first := make(chan struct{}, 1)
	var all sync.WaitGroup
	var senders []net.Conn
	for sender, s := range syslogSenders {
		nc, err := net.Dial(s.network, addr)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { m.send(nc, sender, round) })
		senders = append(senders, nc)
	}
	// a read of none ends its connection
	eventually(t, "the first message makes the bucket", func() bool {
		_, err := n.admin().Account(t.Context(), "syslog", 0)
		return err == nil
	})
	c := n.dial()
	all.Go(func() { m.readUntilDeath(t, n, c, first) })
	if round%2 == 1 {
		committed := make(chan struct{})
		all.Go(func() { flushUntilDeath(n, committed) })
		await(t, committed, "no flush was committed")
	}
	await(t, first, "no message was read")
	until := min(m.total()+rng.IntN(maxSyslog), before+len(syslogSenders)*maxSyslog)
	eventually(t, "more messages are sent", func() bool { return m.total() >= until })
	n.kill()
	for _, nc := range senders {
		_ = nc.Close() // nobody reads from them
	}
	all.Wait()
}
