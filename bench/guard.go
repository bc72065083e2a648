package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/cpu"

	"dalmatiner/internal/haggar"
	"dalmatiner/internal/metric"
)

// guarded are figures with bounds. A bound is not what is wanted, as a budget
// of the table is, but what was reached, with room for noise: beyond it
// something has got worse.
type guarded struct {
	table
	bounds  map[string]float64
	missing []string // figures without a bound
	skipped []string // what could not be measured here, and why
}

func (g *guarded) bound(f *figure) (float64, bool) {
	bound, ok := g.bounds[f.area+": "+f.what]
	return bound, ok
}

func (g *guarded) add(f figure) {
	var ok bool
	if f.budget, ok = g.bound(&f); !ok {
		g.missing = append(g.missing, fmt.Sprintf("%q: %v", f.area+": "+f.what, f.value))
	}
	g.table.add(f)
}

// guard measures all figures that have bounds, prints them, and fails where one
// is broken.
func (b *bench) guard(ctx context.Context, out io.Writer) error {
	g := &guarded{table: table{machine: b.table.machine, begun: b.table.begun}, bounds: bounds}
	if err := b.measureGuarded(ctx, g); err != nil {
		return err
	}
	return g.report(out)
}

// report prints the figures, and fails where a bound is broken or missing.
func (g *guarded) report(out io.Writer) error {
	lines := [][]string{{"part", "figure", "measured", "bound", "", "how"}}
	var broken []string
	for i := range g.figures {
		f := &g.figures[i]
		lines = append(lines, f.cells())
		if f.verdict() != "ok" {
			broken = append(broken, fmt.Sprintf("%s: %s is %v %s, the bound is %v", f.area, f.what, f.value, f.unit, f.budget))
		}
	}
	writeTable(out, lines)
	for _, s := range g.skipped {
		fmt.Fprintf(out, "\n*** skipped: %s ***\n", s)
	}
	switch {
	case len(g.missing) > 0:
		return fmt.Errorf("figures without a bound, add them to bounds in bench/guardbounds.go:\n%s", strings.Join(g.missing, "\n"))
	case len(broken) > 0:
		return fmt.Errorf("%d bounds are broken; where that is meant, raise them in bench/guardbounds.go:\n%s", len(broken), strings.Join(broken, "\n"))
	}
	return nil
}

func (b *bench) measureGuarded(ctx context.Context, g *guarded) error {
	b.logf("bytes …")
	if err := b.sizes(ctx, g); err != nil {
		return err
	}
	b.logf("operations …")
	if err := b.pieces(ctx, g); err != nil {
		return err
	}
	// Few series and rows: noise is in the bounds, and all of it takes seconds.
	batch := uniform(connections, 5*groupWidth, 1500)
	entries := uniform(20, 2000, 150)
	entries.Batch, entries.CacheConnections = false, false
	b.logf("servers under load …")
	if err := b.ratio(ctx, g, "batch", batch); err != nil {
		return err
	}
	return b.ratio(ctx, g, "entries", entries)
}

// pieces measures operations by themselves.
func (b *bench) pieces(ctx context.Context, g *guarded) (err error) {
	ops, err := newOperations(ctx, b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ops.store.Close()) }()
	for _, op := range ops.list[1:] {
		if err := g.allocations(op); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
	}
	return b.instructions(ctx, g, ops.list)
}

// Allocations are the least of a few rounds: what goes on in the background
// meanwhile, more of it on a busy machine, is not of the operation.
const (
	allocRounds = 5
	allocRuns   = 40 // of an operation, in a round
)

// allocations adds what an operation allocates on the Go heap.
func (g *guarded) allocations(op operation) error {
	run := func(times int) error {
		for range times {
			if err := op.run(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := run(tracedWarm); err != nil {
		return err
	}
	least := math.Inf(1)
	for range allocRounds {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := run(allocRuns); err != nil {
			return err
		}
		runtime.ReadMemStats(&after)
		least = min(least, float64(after.Mallocs-before.Mallocs)/allocRuns)
	}
	g.add(figure{area: "allocations", what: op.name, unit: "a run", value: least}.
		because("%d points; least of %d means of %d runs", op.points, allocRounds, allocRuns))
	return nil
}

// instructions adds how many instructions operations take, where a process can
// be stepped through. Their bounds are those of one instruction set.
func (b *bench) instructions(ctx context.Context, g *guarded, ops []operation) error {
	if runtime.GOARCH != "amd64" || !cpu.X86.HasAVX2 {
		g.skipped = append(g.skipped, "instructions: their bounds are for amd64 with AVX2")
		return nil
	}
	counts, err := b.countInstructions(ctx, len(ops))
	if errors.Is(err, errNotTraced) {
		g.skipped = append(g.skipped, "instructions: "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	for i, op := range ops[1:] {
		g.add(figure{area: "instructions", what: op.name, unit: "a point", value: float64(counts[i+1]) / float64(op.points)}.
			because("in user mode, %d points; least of %d runs", op.points, tracedRuns))
	}
	return nil
}

// ratioTries is how often both servers are loaded before a ratio counts: what
// others have of the machine changes processor time as well.
const ratioTries = 3

// ratio adds the processor time of the store under a load as a multiple of what
// the discard server takes, and what the store allocates.
func (b *bench) ratio(ctx context.Context, g *guarded, name string, c haggar.Config) error {
	var best figure
	var last guardLoad
	for try := range ratioTries {
		var err error
		if last, err = b.guardLoad(ctx, c); err != nil {
			return fmt.Errorf("load of %s: %w", name, err)
		}
		f := figure{area: "processor time", what: name + ", ddb ÷ discard", unit: "×", value: last.ddb.nanos() / last.discard.nanos()}.
			because("ddb %.1f ns a point, discard %.1f; %d M points; least of up to %d", last.ddb.nanos(), last.discard.nanos(), last.ddb.points/1e6, ratioTries)
		if try == 0 || f.value < best.value {
			best = f
		}
		if bound, ok := g.bound(&best); !ok || best.value <= bound {
			break
		}
	}
	g.add(best)
	g.add(figure{area: "allocations", what: "server under " + name, unit: "1000 points", value: 1000 * last.loading / float64(last.ddb.points+last.ddb.warm)}.
		because("new series, sealing, flushing and merging included"))
	for i, q := range guardQueries(&c) {
		g.add(figure{area: "allocations", what: q.what + ", after " + name, unit: "a query", value: last.asking[i]}.because("over HTTP; least of %d means of %d", askedRounds, askedRuns))
	}
	return nil
}

// guardLoad is a load of both servers, and the allocations of the store while
// loading and per query.
type guardLoad struct {
	pair
	loading float64
	asking  []float64
}

func (b *bench) guardLoad(ctx context.Context, c haggar.Config) (l guardLoad, err error) {
	if l.discard, err = b.loadNew(ctx, c, startDiscard, (*server).killed); err != nil {
		return l, err
	}
	data := filepath.Join(b.dir, "guard")
	start := func() (*server, error) {
		return b.startDDB(data, "tcp.addr=127.0.0.1:0", "http.addr=127.0.0.1:0", "merge.background=off", "self_monitor=off")
	}
	end := func(s *server) error {
		if l.loading, err = s.mallocs(ctx); err != nil {
			return err
		}
		for _, q := range guardQueries(&c) {
			n, err := s.askedMallocs(ctx, &q)
			if err != nil {
				return fmt.Errorf("%s: %w", q.what, err)
			}
			l.asking = append(l.asking, n)
		}
		return s.stop()
	}
	l.ddb, err = b.loadNew(ctx, c, start, end)
	return l, errors.Join(err, os.RemoveAll(data))
}

// A query is asked askedRuns times in each of askedRounds rounds.
const (
	askedRounds = 3
	askedRuns   = 20
)

// guardQueries are queries over the first rows of a load.
func guardQueries(c *haggar.Config) []dayQuery {
	s := span{c.Start.Unix(), c.Start.Unix() + 300, 60}
	one := fmt.Sprintf("max(%s BUCKET %s, 1m)", name(c, 1, 17), c.Bucket)
	all := strings.TrimSuffix(name(c, 1, 0), metric.Quoted(fmt.Sprintf("%6d", 0))) + "*"
	return []dayQuery{
		{what: "max of a series", text: "SELECT " + one + " " + s.dql(), want: [][]float64{s.max(c, 1, 17)}},
		{what: fmt.Sprintf("average of %d series", c.Metrics), want: [][]float64{s.mean(c, 1)},
			text: fmt.Sprintf("SELECT avg(avg(%s BUCKET %s, 1m)) %s", all, c.Bucket, s.dql())},
	}
}

// askedMallocs returns the allocations of the server for a query, the least of
// the rounds.
func (s *server) askedMallocs(ctx context.Context, q *dayQuery) (float64, error) {
	ask := func() error {
		var body bytes.Buffer
		if err := s.client().CopyQuery(ctx, &body, q.text); err != nil {
			return err
		}
		return q.check(body.Bytes())
	}
	if err := ask(); err != nil { // it loads the index
		return 0, err
	}
	least := math.Inf(1)
	for range askedRounds {
		before, err := s.mallocs(ctx)
		if err != nil {
			return 0, err
		}
		for range askedRuns {
			if err := ask(); err != nil {
				return 0, err
			}
		}
		after, err := s.mallocs(ctx)
		if err != nil {
			return 0, err
		}
		least = min(least, (after-before)/askedRuns)
	}
	return least, nil
}

// mallocs returns the allocations on the server's Go heap since its start.
func (s *server) mallocs(ctx context.Context) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.http+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "go_memstats_mallocs_total "); ok {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("/metrics has no go_memstats_mallocs_total: %w", lines.Err())
}
