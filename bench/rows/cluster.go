package rows

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/haggar"
	"dalmatiner/internal/model/metric"
)

// Goals of a cluster, beside one node in the same run.
const (
	oneCopyGoal   = 1.3 // × its processor time of a point
	threeCopyGoal = 3.5
	q1Goal        = 0.3 // ms more
	q3Goal        = 1.2 // ×
)

const (
	clusterSeries = 8 * load.GroupWidth
	clusterRows   = 600
	clusterWarm   = 60 // go ahead of what is measured, so that the series are known
	clusterHour   = 3600
	turns         = 5
	settleTimeout = 2 * time.Minute
)

// shape is a cluster that is measured.
type shape struct {
	what          string
	nodes, copies int
	tls           bool
	goal          float64
}

var shapes = []shape{
	{what: "one node alone", nodes: 1},
	{"five nodes, n = 1", 5, 1, false, oneCopyGoal},
	{"three nodes, n = 3, w = 2", 3, 3, false, threeCopyGoal},
	{"three nodes, n = 3, w = 2, TLS", 3, 3, true, threeCopyGoal},
	{"five nodes, n = 3, w = 2", 5, 3, false, threeCopyGoal},
	{"five nodes, n = 3, w = 2, TLS", 5, 3, true, threeCopyGoal},
}

// nodes are the processes of a shape. Points and questions go to the first one.
type nodes []*server.Server

func (n nodes) remove() {
	for _, s := range n {
		s.Remove()
	}
}

// cpu returns the processor time of all nodes.
func (n nodes) cpu() (sum time.Duration, err error) {
	for _, s := range n {
		c, err := s.CPU()
		if err != nil {
			return 0, err
		}
		sum += c.Sum()
	}
	return sum, nil
}

// cluster compares clusters of real processes with one node alone.
func (b *bench) cluster(ctx context.Context) error {
	nanos := make([][]float64, len(shapes))
	ratios := make([][]float64, len(shapes))
	for range b.Count {
		for i, sh := range shapes {
			v, err := b.costOf(ctx, sh)
			if err != nil {
				return fmt.Errorf("%s: %w", sh.what, err)
			}
			b.Logf("  %s: %.0f ns/point", sh.what, v)
			nanos[i] = append(nanos[i], v)
			ratios[i] = append(ratios[i], v/nanos[0][len(nanos[0])-1])
		}
	}
	const area = "cluster, ingest"
	for i, sh := range shapes {
		f := report.Median(area, sh.what, "ns/point", nanos[i]).
			Because("processor time of all nodes, with what they do besides and a flush of each; %d "+
				"series, %s k points", clusterSeries, measure.Number(clusterSeries*clusterRows/1e3))
		b.table.Add(f)
		if sh.goal > 0 {
			b.table.Add(report.Median(area, sh.what+" ÷ one node", "×", ratios[i]).Within(sh.goal).Because(
				"of the same round"))
		}
	}
	return b.clusterQueries(ctx)
}

// costOf returns the processor time of a point in nanoseconds.
func (b *bench) costOf(ctx context.Context, sh shape) (float64, error) {
	n, err := b.startNodes(ctx, sh)
	defer func() { n.remove() }()
	if err != nil {
		return 0, err
	}
	c := load.Uniform(1, clusterSeries, clusterRows)
	first := c
	first.Steps = clusterWarm
	if err := b.fill(ctx, n, first, 0); err != nil {
		return 0, err
	}
	before, err := n.cpu()
	if err != nil {
		return 0, err
	}
	c.Start = c.Start.Add(clusterWarm * time.Second)
	if err := b.fill(ctx, n, c, clusterWarm*clusterSeries); err != nil {
		return 0, err
	}
	after, err := n.cpu()
	return float64(after-before) / (clusterRows * clusterSeries), err
}

// fill sends a load behind points that are there, waits until all are acknowledged and the copies
// that nobody waited for have come too, and flushes every node.
func (b *bench) fill(ctx context.Context, n nodes, c haggar.Config, there uint64) error {
	sum, err := load.Send(ctx, b.Env, n[0], c)
	if err != nil {
		return err
	}
	want := there + uint64(sum.Points)
	for left := time.Now().Add(settleTimeout); ; {
		got, err := n[0].Stored(ctx, c.Bucket)
		if err != nil {
			return err
		}
		if got == want {
			break
		}
		if time.Now().After(left) {
			return fmt.Errorf("%d points were sent, %d are stored after %v: %w", want, got, settleTimeout,
				n[0].Accepted(ctx, c.Bucket, int64(want)))
		}
		if err := measure.Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	if len(n) == 1 {
		if err := n[0].Accepted(ctx, c.Bucket, int64(want)); err != nil {
			return err
		}
	} else {
		// a few points that were sent once may count as duplicates: docs/cluster.md, "What is not
		// promised"
		if err := measure.Pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	for _, s := range n {
		if _, err := s.Client().Flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startNodes starts the processes, and waits until each is a member. What was started is returned
// with an error as well.
func (b *bench) startNodes(ctx context.Context, sh shape) (nodes, error) {
	b.started++
	dir := filepath.Join(b.Dir, fmt.Sprintf("cluster%d", b.started))
	if sh.nodes == 1 {
		s, err := b.Start(dir, "merge.background=off")
		if err != nil {
			return nil, err
		}
		return nodes{s}, nil
	}
	// Other clusters of this machine are not to be met: the addresses are those of this process and
	// cluster.
	pid := os.Getpid()
	net := fmt.Sprintf("127.%d.%d", 16+pid%200, (pid/200*7+b.started)%250+1)
	var out nodes
	for i := range sh.nodes {
		host, name := fmt.Sprintf("%s.%d", net, i+1), fmt.Sprintf("bench%d", i+1)
		settings := []string{
			"merge.background=off", "nodename=" + name, "cluster.listen=" + host + ":8599",
			fmt.Sprintf("n=%d", sh.copies),
			"tcp.addr=" + host + ":0", "http.addr=" + host + ":0",
		}
		if i > 0 {
			settings = append(settings, "cluster.join="+net+".1")
		}
		if sh.tls {
			certs := filepath.Join(dir, "tls")
			if text, err := exec.CommandContext(ctx, filepath.Join(b.Bin, "ddb"), "tls", "create", "--dir",
				certs, name).CombinedOutput(); err != nil {
				return out, fmt.Errorf("ddb tls create: %w: %s", err, text)
			}
			settings = append(settings, "cluster.tls_dir="+certs,
				"distributed_cookie=of a benchmark, no secret")
		}
		s, err := b.Start(filepath.Join(dir, name), settings...)
		if err != nil {
			return out, err
		}
		out = append(out, s)
	}
	return out, awaitMembers(ctx, out)
}

// awaitMembers waits until every node knows all of them as members, and no change is under way nor
// begins within a second.
func awaitMembers(ctx context.Context, n nodes) error {
	ring := ""
	for left := time.Now().Add(settleTimeout); ; {
		now, err := commonRing(ctx, n)
		if err != nil {
			return err
		}
		if now != "" && now == ring {
			return nil
		}
		ring = now
		if time.Now().After(left) {
			return fmt.Errorf("%d nodes are no cluster after %v: %s", len(n), settleTimeout,
				n[0].LastLines())
		}
		if err := measure.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// commonRing returns the ring that all nodes have with all of them; "" if there is none, or it
// changes.
func commonRing(ctx context.Context, n nodes) (string, error) {
	ring := ""
	for i, s := range n {
		c, err := s.Client().Cluster(ctx)
		if err != nil {
			return "", err
		}
		if i == 0 {
			ring = c.Ring
		}
		up := 0
		for _, m := range c.Members {
			if m.Up {
				up++
			}
		}
		if up != len(n) || !c.Agree || c.Changing || c.Ring != ring {
			return "", nil
		}
	}
	return ring, nil
}

// clusterQueries asks one node and a cluster of three in turns.
func (b *bench) clusterQueries(ctx context.Context) error {
	rows, span := int64(clusterHour), "1 h"
	if b.Quick {
		rows, span = clusterHour/6, "10 m"
	}
	c := load.Uniform(1, clusterSeries, rows)
	c.Walk = true
	var both [2]nodes
	for i, sh := range []shape{shapes[0], shapes[2]} {
		n, err := b.startNodes(ctx, sh)
		defer func() { n.remove() }()
		if err == nil {
			err = b.fill(ctx, n, c, 0)
		}
		if err != nil {
			return fmt.Errorf("queries, %s: %w", sh.what, err)
		}
		both[i] = n
	}
	hour := load.Over(c.Start.Unix(), c.Start.Unix()+rows, 60)
	all := strings.TrimSuffix(load.Name(&c, 0, 0), metric.Quote(fmt.Sprintf("%6d", 0))) + "*"
	for i, q := range []load.Query{
		{What: "Q1 max per minute, " + span + ", one series", Want: [][]float64{hour.Max(&c, 0, 18)},
			Text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1m) %s", load.Name(&c, 0, 18), c.Bucket,
				hour.DQL())},
		{What: "Q3 average of 2,048 series per minute, " + span, Want: [][]float64{hour.Mean(&c, 0)},
			Text: fmt.Sprintf("SELECT avg(avg(%s BUCKET %s, 1m)) %s", all, c.Bucket, hour.DQL())},
	} {
		var ms [2][]float64
		for range turns {
			for j, n := range both {
				list := make([]load.Query, repeats/turns)
				for k := range list {
					list[k] = q
				}
				took, _, err := ask(ctx, n[0], true, list...)
				if err != nil {
					return fmt.Errorf("%s, %d nodes: %w", q.What, len(n), err)
				}
				ms[j] = append(ms[j], took...)
			}
		}
		one, _ := measure.Median(ms[0])
		goal := one + q1Goal
		if i > 0 {
			goal = one * q3Goal
		}
		const area = "cluster, query over HTTP"
		note := fmt.Sprintf("`cache=off`, median of %d, both asked in turns; every answer compared "+
			"with what was sent", repeats)
		b.table.Add(report.Median(area, q.What+", one node alone", "ms", ms[0]).Because("%s", note))
		b.table.Add(report.Median(area, q.What+", "+shapes[2].what, "ms", ms[1]).Within(goal).Because(
			"the same"))
	}
	return nil
}
