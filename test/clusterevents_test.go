package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// eventWriters post events to each node of a cluster while it is tormented.
type eventWriters struct {
	c    *ringNodes
	base int64 // time of the first event in ns
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	sent  map[int64]string // text by time: no two have one
	acked map[int64]bool
	tries int
	reads int
	wrong []string
}

// eventAnswer is what a node answers to POST /events/<bucket>, and to GET /events.
type eventAnswer struct {
	Received, Accepted, Late, Duplicate, Refused int
	E                                            []struct {
		Timestamp int64
		Event     struct{ Text string }
	}
	More    bool
	Damaged []any
}

func startEventWriters(c *ringNodes, nodes int) *eventWriters {
	w := &eventWriters{c: c, base: past(2*time.Hour) * 1e9, stop: make(chan struct{}),
		sent: map[int64]string{}, acked: map[int64]bool{}}
	var addresses []string
	for _, n := range c.nodes {
		addresses = append(addresses, n.http)
	}
	for i := range nodes {
		w.done.Go(func() { w.run(i, addresses) })
	}
	return w
}

// eventsOfWriter is how many events a writer has times for.
const eventsOfWriter = 1_000_000

func (w *eventWriters) run(writer int, addresses []string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for round := 0; ; round++ {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		var body strings.Builder
		var times []int64
		w.mu.Lock()
		w.tries++
		for i := range 10 {
			n := int64(writer*eventsOfWriter + round*10 + i)
			at := w.base + n%7200*1e9 + n // spread over the hours
			w.sent[at] = fmt.Sprintf("writer %d, round %d, event %d", writer, round, i)
			times = append(times, at)
			fmt.Fprintf(&body, `{"time":%d,"text":%q}`+"\n", at, w.sent[at])
		}
		w.mu.Unlock()
		if a, ok := w.post(addresses[writer], body.String()); !ok || a.Received != 10 || a.Refused > 0 {
			continue
		}
		w.mu.Lock()
		for _, at := range times {
			w.acked[at] = true
		}
		w.mu.Unlock()
		if round%4 == 0 {
			w.readBack(addresses[(writer+round)%len(addresses)], times[3])
		}
	}
}

// patientClient is for nodes that may be stopped.
var patientClient = &http.Client{Timeout: 20 * time.Second,
	Transport: &http.Transport{DisableKeepAlives: true}}

func (w *eventWriters) post(addr, body string) (a eventAnswer, ok bool) {
	resp, err := patientClient.Post("http://"+addr+"/events/chaos", "application/json",
		strings.NewReader(body))
	if err != nil {
		return a, false
	}
	return a, readAnswer(resp, &a)
}

func readAnswer(resp *http.Response, a *eventAnswer) bool {
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK && json.Unmarshal(text, a) == nil
}

// get reads a range of milliseconds.
func (w *eventWriters) get(addr string, start, end int64) (a eventAnswer, ok bool) {
	resp, err := patientClient.Get(
		fmt.Sprintf("http://%s/events?bucket=chaos&start=%d&end=%d&limit=100000", addr, start, end))
	if err != nil {
		return a, false
	}
	return a, readAnswer(resp, &a)
}

// readBack reads an event that was just acknowledged, in the midst of all faults: the node has it,
// or says that it does not know.
func (w *eventWriters) readBack(addr string, at int64) {
	a, ok := w.get(addr, at/1e6, at/1e6+1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !ok || len(a.Damaged) > 0 {
		return
	}
	w.reads++
	for _, e := range a.E {
		if e.Timestamp == at {
			return
		}
	}
	w.wrong = append(w.wrong,
		fmt.Sprintf("%s does not have the event of %d behind its acknowledgement", addr, at))
}

// end stops the writers and checks what they know.
func (w *eventWriters) end() {
	t := w.c.t
	t.Helper()
	close(w.stop)
	w.done.Wait()
	t.Logf("%d batches, %d events acknowledged; %d read in the midst of faults, %d not found", w.tries,
		len(w.acked), w.reads, len(w.wrong))
	if len(w.acked) < 200 {
		t.Error("the test shows little")
	}
	for _, wrong := range w.wrong[:min(len(w.wrong), 10)] {
		t.Error(wrong)
	}
}

// check reads everything from a node. Each acknowledged event must be there, each event at most
// once, and none that nobody sent.
func (w *eventWriters) check(n *node) {
	t := w.c.t
	t.Helper()
	seen, missing := map[int64]bool{}, 0
	for start := int64(0); start < 7300; start += 600 {
		a, ok := w.get(n.http, w.base/1e6+start*1000, w.base/1e6+(start+600)*1000)
		if !ok || a.More || len(a.Damaged) > 0 {
			t.Fatalf("node %s answers %v, more %v, damaged %v", n.http, ok, a.More, a.Damaged)
		}
		for _, e := range a.E {
			if w.sent[e.Timestamp] != e.Event.Text || seen[e.Timestamp] {
				t.Errorf("node %s has %q at %d, sent was %q", n.http, e.Event.Text, e.Timestamp,
					w.sent[e.Timestamp])
			}
			seen[e.Timestamp] = true
		}
	}
	for at := range w.acked {
		if !seen[at] {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("node %s: %d of %d acknowledged events are missing", n.http, missing, len(w.acked))
	}
}

// TestAcknowledgedEventsSurviveANode: nodes are killed and stopped one after the other, and one
// leaves, while senders post events to all of them. No acknowledged event is missing, at any node,
// also with any one of them down.
func TestAcknowledgedEventsSurviveANode(t *testing.T) {
	t.Parallel()
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	rng := seeded(t)
	c := startCluster(t, 4)
	w := startEventWriters(c, 3)
	c.interrupt(rng, 3, rounds, 3*time.Second)
	c.follow(c.nodes[0], c.commit(c.nodes[0], "leave", c.name(3)))
	c.kill(3)
	c.nodes = c.nodes[:3]
	w.end()
	for _, n := range c.nodes {
		w.check(n)
	}
	for i := range c.nodes {
		c.kill(i)
		for _, n := range c.up() {
			w.check(n)
		}
		c.start(i)
		c.awaitMembers(3)
	}
}
