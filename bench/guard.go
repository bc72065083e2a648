package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	return b.instructions(g, ops.list)
}

// allocRuns of an operation are taken together.
const allocRuns = 200

// allocations adds what an operation allocates on the Go heap. What the store
// does in the background meanwhile is in it: figures are not whole.
func (g *guarded) allocations(op operation) error {
	var before, after runtime.MemStats
	for i := range tracedWarm + allocRuns {
		if i == tracedWarm {
			runtime.ReadMemStats(&before)
		}
		if err := op.run(); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	g.add(figure{area: "allocations", what: op.name, unit: "a run", value: float64(after.Mallocs-before.Mallocs) / allocRuns}.
		because("%d points; mean of %d runs", op.points, allocRuns))
	return nil
}

// instructions adds how many instructions operations take, where a process can
// be stepped through. Their bounds are those of one instruction set.
func (b *bench) instructions(g *guarded, ops []operation) error {
	if runtime.GOARCH != "amd64" || !cpu.X86.HasAVX2 {
		g.skipped = append(g.skipped, "instructions: their bounds are for amd64 with AVX2")
		return nil
	}
	counts, err := b.countInstructions(len(ops))
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
		g.add(figure{area: "allocations", what: q.what + ", after " + name, unit: "a query", value: last.asking[i]}.because("over HTTP; mean of %d", guardAsked))
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
	if l.discard, err = b.loadNew(ctx, c, b.startDiscard, (*server).killed); err != nil {
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

// guardAsked is how often a query is asked.
const guardAsked = 40

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

// askedMallocs returns the allocations of the server for a query.
func (s *server) askedMallocs(ctx context.Context, q *dayQuery) (float64, error) {
	var before float64
	for i := range 1 + guardAsked { // the first loads the index
		if i == 1 {
			var err error
			if before, err = s.mallocs(ctx); err != nil {
				return 0, err
			}
		}
		var body bytes.Buffer
		if err := s.client().CopyQuery(ctx, &body, q.text); err != nil {
			return 0, err
		}
		if err := q.check(body.Bytes()); err != nil {
			return 0, err
		}
	}
	after, err := s.mallocs(ctx)
	return (after - before) / guardAsked, err
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
