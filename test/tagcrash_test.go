package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	tagSenders = 3
	tagSeries  = 60 // that a sender tags again and again
	tagBatch   = 20 // lines of a request
)

// tagModel is what is known of the tags of all lives of a node. Every line says a number of its
// series, above that of the one before, in three tags at once.
type tagModel struct {
	mu    sync.Mutex
	sent  map[string]int  // by series: the highest number
	acked map[string]int  // the highest that was acknowledged
	lines map[string]bool // series that came with tags in lines of Graphite
}

// send imports lines until the node is gone.
func (m *tagModel) send(n *node, sender int, first chan<- struct{}) {
	for batch := 0; ; batch++ {
		var lines bytes.Buffer
		said := make(map[string]int)
		m.mu.Lock()
		for i := range tagBatch {
			name := fmt.Sprintf("%d/%d", sender, (batch*tagBatch+i)%tagSeries)
			m.sent[name]++
			said[name] = m.sent[name]
			fmt.Fprintf(&lines,
				`{"bucket":"shop","metric":[%q],"tags":{"a":"%d","ns:b":"%d","c":"%d"}}`+"\n", name, said[name],
				said[name], said[name])
		}
		m.mu.Unlock()
		req, err := http.NewRequest(http.MethodPost, "http://"+n.http+"/tags", &lines)
		if err != nil {
			return
		}
		req.Header.Set("X-Dalmatiner", "1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK ||
			!strings.Contains(string(body), fmt.Sprintf(`"changed":%d`, tagBatch)) {
			return
		}
		m.mu.Lock()
		for name, number := range said {
			m.acked[name] = number
		}
		m.mu.Unlock()
		if batch == 0 {
			first <- struct{}{}
		}
	}
}

// sendLines sends points of new series with tags to the port of Graphite until the node is gone.
func (m *tagModel) sendLines(addr string, round int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer c.Close()
	for i := 0; ; i++ {
		name := fmt.Sprintf("line.%d.%d", round, i)
		m.mu.Lock()
		m.lines[name] = true
		m.mu.Unlock()
		if _, err := fmt.Fprintf(c, "%s;a=%s;b=x 1 -1\n", name, name); err != nil {
			return
		}
		<-time.After(100 * time.Microsecond) // a flood would be slow to compare
	}
}

// check compares the tags of a node with what was said, and returns how many series have any.
func (m *tagModel) check(t *testing.T, n *node) (series int) {
	t.Helper()
	var out bytes.Buffer
	if err := n.admin().ExportTags(context.Background(), &out, "", ""); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for dec := json.NewDecoder(&out); dec.More(); series++ {
		var line struct {
			Bucket string
			Metric []string
			Tags   map[string]string
		}
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Bucket == "graphite" {
			name := strings.Join(line.Metric[:len(line.Metric)-2], ".")
			if len(line.Tags) != 2 || line.Tags["a"] != name || line.Tags["b"] != "x" || !m.lines[name] {
				t.Errorf("the line of Graphite became %+v; it was sent: %v", line, m.lines[name])
			}
			continue
		}
		number, err := strconv.Atoi(line.Tags["a"])
		if err != nil || len(line.Tags) != 3 || line.Tags["c"] != line.Tags["a"] ||
			line.Tags["ns:b"] != line.Tags["a"] {
			t.Errorf("a line was taken in part: %+v", line)
		}
		seen[line.Metric[0]] = number
	}
	for name, number := range seen {
		if number > m.sent[name] {
			t.Errorf("I2: series %s has number %d, the last one that was sent is %d", name, number,
				m.sent[name])
		}
	}
	for name, number := range m.acked {
		if seen[name] < number {
			t.Errorf("I1: series %s has number %d, %d was acknowledged", name, seen[name], number)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return series
}

// TestTagsSurviveKill: after kill -9 at any instant all tags of every acknowledged line are there,
// or newer ones, and of no line a part (I1, I2), with flushes under way, at a start, and with tags
// that come with points.
func TestTagsSurviveKill(t *testing.T) {
	t.Parallel()
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	rng := seeded(t)
	dir := t.TempDir()
	m := &tagModel{sent: make(map[string]int), acked: make(map[string]int),
		lines: make(map[string]bool)}
	args := []string{"--set", "wal.sync=always", "--set", "self_monitor=off"}
	for round := range rounds {
		if round%3 == 2 {
			(&crashModel{}).killDuringStart(t, rng, dir, args)
		}
		n := startNode(t, dir, append(args, "--set", "graphite.addr=127.0.0.1:0")...)
		if round == 0 {
			fillShop(t, n)
		}
		m.check(t, n)
		m.round(t, n, rng, round)
	}
	n := startNode(t, dir, args...)
	series := m.check(t, n)
	n.stop()
	n = startNode(t, dir, args...)
	if again := m.check(t, n); again != series {
		t.Errorf("%d series have tags after a stop, %d before", again, series)
	}
	t.Logf("%d kills: %d series have tags, %d lines of Graphite were sent", rounds, series,
		len(m.lines))
	if len(m.acked) == 0 || series <= tagSenders*tagSeries {
		t.Error("nothing was acknowledged, or no tag came with a point: the test shows nothing")
	}
}

// round sends from all senders and kills the node at a random instant. Every second one flushes.
func (m *tagModel) round(t *testing.T, n *node, rng *rand.Rand, round int) {
	t.Helper()
	first := make(chan struct{}, tagSenders)
	var all sync.WaitGroup
	for sender := range tagSenders {
		all.Go(func() { m.send(n, sender, first) })
	}
	addr := n.listener("graphite lines")
	all.Go(func() { m.sendLines(addr, round) })
	if round%2 == 1 {
		committed := make(chan struct{})
		all.Go(func() { flushUntilDeath(n, committed) })
		await(t, committed, "no flush was committed")
	}
	await(t, first, "no line was acknowledged")
	<-time.After(time.Duration(rng.Int64N(int64(150 * time.Millisecond))))
	n.kill()
	all.Wait()
}
