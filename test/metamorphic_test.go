package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/model/metric"
)

const (
	agreeSeries = 5
	agreeSlots  = 100_000 // more than a day
	agreeNodes  = 2
	agreeOps    = 40
)

// agreement is nodes with different settings that get the same operations, and
// the model (agreement_test.go), which has no settings.
type agreement struct {
	t       *testing.T
	r       *rand.Rand
	base    int64
	dirs    []string
	args    [][]string
	nodes   []*node
	keys    [][]byte
	buckets []*agreeBucket
	copies  int // directories that were restored
}

// settingsOf draws settings that must make no difference. The listeners are open
// with all of them.
func settingsOf(r *rand.Rand) []string {
	args := []string{"--set", "graphite.addr=127.0.0.1:0", "--set", "graphite.bucket=agree", "--set",
		"udp.listeners=1", "--set", "udp.addr=127.0.0.1:0"}
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
		{"storage.block_cache", []string{"0", "64MB"}},
		{"storage.max_open_files", []string{"2", "auto"}},
		{"wal.max_size", []string{"16MB", "1GB"}},
		{"wal.sync", []string{"always", "interval"}},
	} {
		args = append(args, "--set", s.key+"="+s.from[r.IntN(len(s.from))])
	}
	return args
}

func (a *agreement) settings(i int) string { return strings.Join(a.args[i], " ") }

// TestNodesOfAnySettingsAgree: random operations over TCP, UDP and HTTP, with
// kills, restarts and restores, leave every node with the answers of the model,
// whatever its settings are.
func TestNodesOfAnySettingsAgree(t *testing.T) {
	a := &agreement{t: t, r: seeded(t), base: past((agreeSlots + 3600) * time.Second)}
	a.buckets = []*agreeBucket{newAgreeBucket("agree", false), newAgreeBucket("nanos", true)}
	for i := range agreeSeries {
		a.keys = append(a.keys, key(t, "series", fmt.Sprint(i)))
	}
	for i := range agreeNodes {
		a.dirs, a.args = append(a.dirs, t.TempDir()), append(a.args, settingsOf(a.r))
		a.nodes = append(a.nodes, startNode(t, a.dirs[i], a.args[i]...))
		t.Logf("node %d: %s", i, a.settings(i))
	}
	for range agreeOps {
		a.step(a.buckets[a.r.IntN(len(a.buckets))])
	}
	a.check()
	for i, n := range a.nodes {
		if damaged := n.figure("damaged_blocks_total"); damaged != 0 {
			t.Errorf("node %d found %v damaged blocks", i, damaged)
		}
		n.stop()
		if r := run(t, "ddb", "admin", "check", "--data-dir", a.dirs[i]); r.code != 0 {
			t.Errorf("node %d: %s%s", i, r.out, r.errOut)
		}
	}
}

// step does one operation.
func (a *agreement) step(b *agreeBucket) {
	a.t.Helper()
	switch n := a.r.IntN(40); {
	case n < 16:
		a.write(b)
	case n < 19:
		// Graphite's senders have one bucket for all.
		a.unacked(a.buckets[0], []string{"graphite tcp", "graphite udp"}[a.r.IntN(2)])
	case n < 21:
		a.unacked(b, "udp")
	case n < 25:
		a.settle(a.r.IntN(agreeNodes))
	case n < 27:
		a.forget(b)
	case n < 29:
		a.limit(b)
	case n < 30:
		a.drop(b)
	case n < 36:
		a.restart(a.r.IntN(agreeNodes))
	case n < 37:
		a.restore(a.r.IntN(agreeNodes))
	default:
		a.check()
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

// restore moves a node to a directory made from a snapshot of it.
func (a *agreement) restore(i int) {
	a.t.Helper()
	a.copies++
	name, to := fmt.Sprintf("s%d", a.copies), filepath.Join(a.t.TempDir(), "restored")
	if r := run(a.t, "ddb", "admin", "snapshot", name, "--addr", a.nodes[i].http); r.code != 0 {
		a.t.Fatalf("node %d: %s%s", i, r.out, r.errOut)
	}
	if r := run(a.t, "ddb", "restore", "--snapshot", filepath.Join(a.dirs[i], "snapshots", name),
		"--data-dir", to); r.code != 0 {
		a.t.Fatalf("node %d: %s%s", i, r.out, r.errOut)
	}
	a.nodes[i].kill()
	a.dirs[i] = to
	a.nodes[i] = startNode(a.t, to, a.args[i]...)
}

// check compares every slot with the model, and the aggregates of the nodes.
func (a *agreement) check() {
	a.t.Helper()
	var first [][]string
	for i, n := range a.nodes {
		for _, b := range a.buckets {
			a.compare(i, b)
		}
		answers := a.ask(n)
		if first == nil {
			first = answers
		}
		for j := range answers {
			if !slices.Equal(answers[j], first[j]) {
				a.t.Fatalf("query %d: node %d (%s) answers\n%v\nand node 0 (%s)\n%v", j, i, a.settings(i),
					answers[j], a.settings(0), first[j])
			}
		}
	}
}

// ask returns the aggregates of the series that there are, as text.
func (a *agreement) ask(n *node) (answers [][]string) {
	a.t.Helper()
	end := time.Unix(a.base+agreeSlots, 0).UTC().Format(time.DateTime)
	for _, b := range a.buckets {
		for series := range agreeSeries {
			if !b.any(series) {
				continue
			}
			name := metric.Text(a.keys[series]) + " BUCKET " + b.name
			for _, f := range []string{"max(%s, 1h)", "sum(%s, 7m)", "avg(%s, 1d)"} {
				text := fmt.Sprintf("SELECT "+f+" BEFORE %q FOR %ds", name, end, agreeSlots-b.sure())
				answers = append(answers, a.answer(n, text))
			}
		}
	}
	return answers
}

// answer returns what a query gives, as text. A series of which the lifetime has
// hidden everything may have left.
func (a *agreement) answer(n *node, text string) (values []string) {
	a.t.Helper()
	result, err := n.admin().Query(context.Background(), text)
	if err != nil {
		a.t.Fatalf("%s: %v", text, err)
	}
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
	return values
}
