package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/admin"
	"dalmatiner/internal/metric"
)

const (
	agreeBucket = "agree"
	agreeSeries = 5
	agreeSlots  = 100_000 // more than a day
	agreeNodes  = 2
	agreeOps    = 40
)

// agreement is nodes with different settings that get the same operations, and
// the model, which has no settings.
type agreement struct {
	t     *testing.T
	r     *rand.Rand
	base  int64
	dirs  []string
	args  [][]string
	nodes []*node
	keys  [][]byte
	words [agreeSeries][]uint64 // the model
}

// settingsOf draws settings that must make no difference.
func settingsOf(r *rand.Rand) (args []string) {
	for _, s := range []struct {
		key  string
		from []string
	}{
		{"cache_points", []string{"1", "60", "720"}},
		{"flush.bytes", []string{"1MB", "64MB"}},
		{"flush.interval", []string{"1s", "12m"}},
		{"head.grace", []string{"1s", "1m"}},
		{"late.memory", []string{"1MB", "64MB"}},
		{"memory.limit", []string{"256MB", "off"}},
		{"merge.background", []string{"on", "off"}},
		{"ring_size", []string{"2", "64"}},
		{"storage.max_open_files", []string{"2", "auto"}},
		{"wal.max_size", []string{"16MB", "1GB"}},
		{"wal.sync", []string{"always", "interval"}},
	} {
		args = append(args, "--set", s.key+"="+s.from[r.IntN(len(s.from))])
	}
	return args
}

// TestNodesOfAnySettingsAgree: random operations over TCP and HTTP, with kills
// and restarts, leave every node with the answers of the model, whatever its
// settings are.
func TestNodesOfAnySettingsAgree(t *testing.T) {
	a := &agreement{t: t, r: seeded(t), base: past((agreeSlots + 3600) * time.Second)}
	for i := range a.words {
		a.words[i] = make([]uint64, agreeSlots)
		a.keys = append(a.keys, key(t, "series", fmt.Sprint(i)))
	}
	for i := range agreeNodes {
		a.dirs, a.args = append(a.dirs, t.TempDir()), append(a.args, settingsOf(a.r))
		a.nodes = append(a.nodes, startNode(t, a.dirs[i], a.args[i]...))
		t.Logf("node %d: %s", i, strings.Join(a.args[i], " "))
	}
	a.write() // there is a bucket
	for range agreeOps {
		switch n := a.r.IntN(20); {
		case n < 10:
			a.write()
		case n < 13:
			a.settle(a.r.IntN(agreeNodes))
		case n < 15:
			a.forget(a.r.IntN(agreeSeries))
		case n < 18:
			a.restart(a.r.IntN(agreeNodes))
		default:
			a.check()
		}
	}
	a.check()
	for i, n := range a.nodes {
		if damaged := n.figure("damaged_blocks_total"); damaged != 0 {
			t.Errorf("node %d found %v damaged blocks", i, damaged)
		}
		n.stop()
	}
}

// write sends some runs to every node: in order, late, and over what is there.
func (a *agreement) write() {
	a.t.Helper()
	streams := make([]ackStream, len(a.nodes))
	for i, n := range a.nodes {
		streams[i] = openAcked(a.t, n, agreeBucket)
	}
	var sent uint64
	for range 1 + a.r.IntN(20) {
		series, slot := a.r.IntN(agreeSeries), a.r.IntN(agreeSlots-2000)
		words := make([]uint64, 1+a.r.IntN(2000))
		salt := a.r.Uint64N(1000)
		for i := range words {
			words[i] = value(salt, int64(i))
		}
		for _, s := range streams {
			s.point(a.keys[series], a.base+int64(slot), words...)
		}
		copy(a.words[series][slot:], words)
		sent += uint64(len(words))
	}
	for i, s := range streams {
		if ack := s.flush(); ack.Received != sent || ack.Refused != 0 {
			a.t.Fatalf("node %d answered %d points with %+v", i, sent, ack)
		}
		if err := s.Close(); err != nil {
			a.t.Fatal(err)
		}
	}
}

// settle flushes one node, or merges it.
func (a *agreement) settle(i int) {
	a.t.Helper()
	ctx := context.Background()
	_, err := a.nodes[i].admin().Flush(ctx)
	if err == nil && a.r.IntN(2) == 0 {
		_, err = a.nodes[i].admin().Merge(ctx)
	}
	if err != nil {
		a.t.Fatalf("node %d: %v", i, err)
	}
}

// forget deletes a series, which may come again.
func (a *agreement) forget(series int) {
	a.t.Helper()
	if !slices.ContainsFunc(a.words[series], func(w uint64) bool { return w != 0 }) {
		return
	}
	for i, n := range a.nodes {
		choice := admin.SeriesChoice{Bucket: agreeBucket, Metric: metric.Text(a.keys[series])}
		if _, err := n.admin().DeleteSeries(context.Background(), choice); err != nil {
			a.t.Fatalf("node %d: %v", i, err)
		}
	}
	clear(a.words[series])
}

// restart ends a node, with kill -9 or in the orderly way, and starts it with
// other settings.
func (a *agreement) restart(i int) {
	a.t.Helper()
	if a.r.IntN(3) == 0 {
		a.nodes[i].stop()
	} else {
		a.nodes[i].kill()
	}
	a.args[i] = settingsOf(a.r)
	a.nodes[i] = startNode(a.t, a.dirs[i], a.args[i]...)
}

// check compares every slot with the model, and the aggregates of the nodes.
func (a *agreement) check() {
	a.t.Helper()
	var first [][]string
	for i, n := range a.nodes {
		c := n.dial()
		for series, want := range a.words {
			got := get(a.t, c, agreeBucket, a.keys[series], a.base, agreeSlots)
			for slot := range want {
				if got[slot] != want[slot] {
					a.t.Fatalf("node %d (%s) series %d slot %d holds %x, want %x", i, strings.Join(a.args[i], " "), series, slot, got[slot], want[slot])
				}
			}
		}
		answers := a.ask(n)
		if first == nil {
			first = answers
		}
		for j := range answers {
			if !slices.Equal(answers[j], first[j]) {
				a.t.Fatalf("query %d: node %d (%s) answers\n%v\nand node 0 (%s)\n%v", j, i, strings.Join(a.args[i], " "), answers[j], strings.Join(a.args[0], " "), first[j])
			}
		}
	}
}

// ask returns the aggregates of the series that there are, as text.
func (a *agreement) ask(n *node) (answers [][]string) {
	a.t.Helper()
	end := time.Unix(a.base+agreeSlots, 0).UTC().Format(time.DateTime)
	for series, words := range a.words {
		if !slices.ContainsFunc(words, func(w uint64) bool { return w != 0 }) {
			continue
		}
		name := metric.Text(a.keys[series]) + " BUCKET " + agreeBucket
		for _, f := range []string{"max(%s, 1h)", "sum(%s, 7m)", "avg(%s, 1d)"} {
			text := fmt.Sprintf("SELECT "+f+" BEFORE %q FOR %ds", name, end, agreeSlots)
			result, err := n.admin().Query(context.Background(), text)
			if err != nil {
				a.t.Fatalf("%s: %v", text, err)
			}
			var values []string
			for _, r := range result.Results {
				values = append(values, fmt.Sprint(r.Coverage))
				for _, v := range r.Values {
					if v == nil {
						values = append(values, "none")
					} else {
						values = append(values, fmt.Sprint(*v))
					}
				}
			}
			answers = append(answers, values)
		}
	}
	return answers
}
