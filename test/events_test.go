package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/wire"
)

// eventSenders post events at the same time.
const eventSenders = 3

// eventModel is what is known of the events of all lives of a node.
type eventModel struct {
	mu    sync.Mutex
	sent  map[string]bool // by name: whether it was acknowledged
	acked int
}

// send posts events until the node is gone.
func (m *eventModel) send(n *node, sender, round int, base time.Time, first chan<- struct{}) {
	for batch := 0; ; batch++ {
		var lines bytes.Buffer
		names := make([]string, 20)
		m.mu.Lock()
		for i := range names {
			names[i] = fmt.Sprintf("%d/%d/%d/%d", round, sender, batch, i)
			m.sent[names[i]] = false
			fmt.Fprintf(&lines, "{\"time\":%d,\"name\":%q}\n", base.UnixNano()+int64(batch*7919%1000)*1e6,
				names[i])
		}
		m.mu.Unlock()
		resp, err := http.Post("http://"+n.http+"/events/log", "application/json", &lines)
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return
		}
		m.mu.Lock()
		for _, name := range names {
			m.sent[name] = true
		}
		m.acked += len(names)
		m.mu.Unlock()
		if batch == 0 {
			first <- struct{}{}
		}
	}
}

// sendUnanswered sends events with opcode 13, which has no reply, until the node is gone.
func (m *eventModel) sendUnanswered(t *testing.T, c *client.Client, round int, base time.Time) {
	for batch := 0; ; batch++ {
		list := make([]wire.Event, 20)
		m.mu.Lock()
		for i := range list {
			name := fmt.Sprintf("%d/tcp/%d/%d", round, batch, i)
			m.sent[name] = false
			body, err := term.AppendFromJSON(nil, fmt.Appendf(nil, "{\"name\":%q}", name))
			if err != nil {
				t.Error(err)
			}
			list[i] = wire.Event{Time: uint64(base.UnixNano() + int64(batch*7919%1000)*1e6), Term: body}
		}
		m.mu.Unlock()
		if err := c.WriteEvents(t.Context(), "log", list); err != nil {
			return
		}
	}
}

// checkCounts compares the number of events with what queries count, with a condition and without,
// and with the account (I3).
func (m *eventModel) checkCounts(t *testing.T, n *node, base time.Time, want int) {
	t.Helper()
	for _, where := range []string{"", " WHERE name ~= '.'"} {
		q := fmt.Sprintf("SELECT sum(count(EVENTS FROM log%s, 100ms), 1h) AFTER %d FOR 11s", where,
			base.UnixMilli()-1000)
		r, err := n.admin().Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Results[0].Values[0]; got == nil || *got != float64(want) {
			t.Fatalf("%s: %v, %d are there", q, got, want)
		}
	}
	a, err := n.admin().Account(t.Context(), "log", 0)
	if err != nil {
		t.Fatal(err)
	}
	if rows := a.Events.Rows; len(rows) != 1 || rows[0].Accepted+rows[0].Late != uint64(want) ||
		rows[0].Sum() != rows[0].Received {
		t.Fatalf("the account says %+v, %d events are there", rows, want)
	}
}

// check compares what the node has with what was sent.
func (m *eventModel) check(t *testing.T, n *node, base time.Time) (stored int) {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://%s/events?bucket=log&limit=1000000&start=%d&end=%d",
		n.http, base.UnixMilli()-1000, base.UnixMilli()+10_000))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		E []struct {
			Timestamp int64             `json:"timestamp"`
			Event     map[string]string `json:"event"`
		} `json:"e"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil ||
		resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	seen := make(map[string]bool)
	for _, e := range answer.E {
		name := e.Event["name"]
		if _, sent := m.sent[name]; !sent || seen[name] {
			t.Fatalf("event %q was sent: %v, and is there twice: %v", name, sent, seen[name])
		}
		seen[name] = true
	}
	for name, acked := range m.sent {
		if acked && !seen[name] {
			t.Fatalf("event %q was acknowledged and is not there", name)
		}
	}
	m.checkCounts(t, n, base, len(seen))
	return len(seen)
}

// TestEventsSurviveKill: after kill -9 at any instant every acknowledged event is there once (I1),
// and nothing that was not sent (I2), with flushes and merges under way.
func TestEventsSurviveKill(t *testing.T) {
	t.Parallel()
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	rng := seeded(t)
	dir := t.TempDir()
	base := time.Now().Add(-time.Minute)
	m := &eventModel{sent: make(map[string]bool)}
	for round := range rounds {
		n := startNode(t, dir, "--set", "wal.sync=always")
		if round > 0 {
			m.check(t, n, base)
		}
		m.round(t, n, rng, round, base)
	}
	n := startNode(t, dir)
	stored := m.check(t, n, base)
	n.stop()
	n = startNode(t, dir)
	if again := m.check(t, n, base); again != stored {
		t.Fatalf("%d events after a stop, %d before", again, stored)
	}
	t.Logf("%d kills: sent %d, acknowledged %d, there %d", rounds, len(m.sent), m.acked, stored)
	if m.acked == 0 {
		t.Error("nothing was acknowledged: the test shows nothing")
	}
}

// round sends from all senders and kills the node at a random instant. Every second one flushes.
func (m *eventModel) round(t *testing.T, n *node, rng *rand.Rand, round int, base time.Time) {
	t.Helper()
	first := make(chan struct{}, eventSenders)
	var all sync.WaitGroup
	for sender := range eventSenders {
		all.Go(func() { m.send(n, sender, round, base, first) })
	}
	c := n.dial()
	all.Go(func() { m.sendUnanswered(t, c, round, base) })
	if round%2 == 1 {
		committed := make(chan struct{})
		all.Go(func() { flushUntilDeath(n, committed) })
		await(t, committed, "no flush was committed")
	}
	await(t, first, "no event was acknowledged")
	<-time.After(time.Duration(rng.Int64N(int64(150 * time.Millisecond))))
	n.kill()
	all.Wait()
}
