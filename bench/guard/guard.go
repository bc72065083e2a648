// Package guard holds figures with bounds that a change must not break: bytes,
// allocations, instructions, and processor time beside the discard server.
package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"

	"dalmatiner/bench/load"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/haggar"
	"dalmatiner/internal/model/metric"
)

// guarded are figures with bounds. A bound is not what is wanted, as a budget
// of the table is, but what was reached, with room for noise: beyond it
// something has got worse.
type guarded struct {
	*server.Env
	report.Table
	bounds  map[string]float64
	missing []string // figures without a bound
	skipped []string // what could not be measured here, and why
}

func (g *guarded) bound(f *report.Figure) (float64, bool) {
	bound, ok := g.bounds[f.Area+": "+f.What]
	return bound, ok
}

func (g *guarded) add(f report.Figure) {
	var ok bool
	if f.Budget, ok = g.bound(&f); !ok {
		g.missing = append(g.missing, fmt.Sprintf("%q: %v", f.Area+": "+f.What, f.Value))
	}
	g.Table.Add(f)
}

// Space is what the guard has on disk at once.
const Space = 2 << 30

// Run measures all figures that have bounds and prints them. The table is of
// use even where the error says that a bound is broken.
func Run(ctx context.Context, env *server.Env, head report.Head,
	out io.Writer) (*report.Table, error) {
	g := &guarded{Env: env, Table: report.Table{Head: head}, bounds: bounds}
	if err := g.measure(ctx); err != nil {
		return nil, err
	}
	return &g.Table, g.report(out)
}

// report prints the figures, and fails where a bound is broken or missing.
func (g *guarded) report(out io.Writer) error {
	lines := [][]string{{"part", "figure", "measured", "bound", "", "how"}}
	var broken []string
	for i := range g.Figures {
		f := &g.Figures[i]
		lines = append(lines, f.Cells())
		if f.Verdict() != "ok" {
			broken = append(broken, fmt.Sprintf("%s: %s is %v %s, the bound is %v", f.Area, f.What, f.Value,
				f.Unit, f.Budget))
		}
	}
	report.WriteTable(out, lines)
	for _, s := range g.skipped {
		fmt.Fprintf(out, "\n*** skipped: %s ***\n", s)
	}
	switch {
	case len(g.missing) > 0:
		return fmt.Errorf("figures without a bound, add them to bounds in bench/guard/bounds.go:\n%s",
			strings.Join(g.missing, "\n"))
	case len(broken) > 0:
		return fmt.Errorf("%d bounds are broken; where that is meant, raise them in "+
			"bench/guard/bounds.go:\n%s", len(broken), strings.Join(broken, "\n"))
	}
	return nil
}

func (g *guarded) measure(ctx context.Context) error {
	g.Logf("bytes …")
	if err := g.sizes(ctx); err != nil {
		return err
	}
	g.Logf("operations …")
	if err := g.operations(ctx); err != nil {
		return err
	}
	// Few series and rows: noise is in the bounds, and all of it takes seconds.
	batch := load.Uniform(load.Connections, 5*load.GroupWidth, 1500)
	entries := load.Uniform(20, 2000, 150)
	entries.Batch, entries.CacheConnections = false, false
	g.Logf("servers under load …")
	if err := g.ratio(ctx, "batch", batch); err != nil {
		return err
	}
	return g.ratio(ctx, "entries", entries)
}

// operations measures operations by themselves.
func (g *guarded) operations(ctx context.Context) (err error) {
	ops, err := newOperations(ctx, g.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ops.store.Close()) }()
	for _, op := range ops.list[1:] {
		if err := g.allocations(op); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
	}
	return g.instructions(ctx, ops.list)
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
	g.add(report.Figure{Area: "allocations", What: op.name, Unit: "a run", Value: least}.
		Because("%d points; least of %d means of %d runs", op.points, allocRounds, allocRuns))
	return nil
}

// instructions adds how many instructions operations take, where a process can
// be stepped through. Their bounds are those of one instruction set.
func (g *guarded) instructions(ctx context.Context, ops []operation) error {
	if runtime.GOARCH != "amd64" || !cpu.X86.HasAVX2 {
		g.skipped = append(g.skipped, "instructions: their bounds are for amd64 with AVX2")
		return nil
	}
	counts, err := g.countInstructions(ctx, len(ops))
	if errors.Is(err, errNotTraced) {
		g.skipped = append(g.skipped, "instructions: "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	for i, op := range ops[1:] {
		g.add(report.Figure{
			Area:  "instructions",
			What:  op.name,
			Unit:  "a point",
			Value: float64(counts[i+1]) / float64(op.points),
		}.
			Because("in user mode, %d points; least of %d runs", op.points, tracedRuns))
	}
	return nil
}

// ratioTries is how often both servers are loaded before a ratio counts: what
// others have of the machine changes processor time as well.
const ratioTries = 3

// ratio adds the processor time of the store under a load as a multiple of what
// the discard server takes, and what the store allocates.
func (g *guarded) ratio(ctx context.Context, name string, c haggar.Config) error {
	var best report.Figure
	var last loaded
	for try := range ratioTries {
		var err error
		if last, err = g.load(ctx, c); err != nil {
			return fmt.Errorf("load of %s: %w", name, err)
		}
		f := report.Figure{
			Area:  "processor time",
			What:  name + ", ddb ÷ discard",
			Unit:  "×",
			Value: last.DDB.Nanos() / last.Discard.Nanos(),
		}.
			Because("ddb %.1f ns a point, discard %.1f; %d M points; least of up to %d", last.DDB.Nanos(),
				last.Discard.Nanos(), last.DDB.Points/1e6, ratioTries)
		if try == 0 || f.Value < best.Value {
			best = f
		}
		if bound, ok := g.bound(&best); !ok || best.Value <= bound {
			break
		}
	}
	g.add(best)
	g.add(report.Figure{
		Area:  "allocations",
		What:  "server under " + name,
		Unit:  "1000 points",
		Value: 1000 * last.loading / float64(last.DDB.Points+last.DDB.Warm),
	}.
		Because("new series, sealing, flushing and merging included"))
	for i, q := range queries(&c) {
		g.add(report.Figure{
			Area:  "allocations",
			What:  q.What + ", after " + name,
			Unit:  "a query",
			Value: last.asking[i],
		}.Because("over HTTP; least of %d means of %d", askedRounds, askedRuns))
	}
	return nil
}

// loaded is a load of both servers, and the allocations of the store while
// loading and per query.
type loaded struct {
	load.Pair
	loading float64
	asking  []float64
}

func (g *guarded) load(ctx context.Context, c haggar.Config) (l loaded, err error) {
	if l.Discard, err = load.Discard(ctx, g.Env, c); err != nil {
		return l, err
	}
	data := filepath.Join(g.Dir, "guard")
	started := 0.0 // what the packages of the program and the start itself allocate
	start := func() (*server.Server, error) {
		s, err := g.Start(data, "merge.background=off", "self_monitor=off")
		if err == nil {
			started, err = s.Metric(ctx, mallocs)
		}
		return s, err
	}
	end := func(s *server.Server) error {
		if l.loading, err = s.Metric(ctx, mallocs); err != nil {
			return err
		}
		l.loading -= started
		for _, q := range queries(&c) {
			n, err := askedMallocs(ctx, s, &q)
			if err != nil {
				return fmt.Errorf("%s: %w", q.What, err)
			}
			l.asking = append(l.asking, n)
		}
		return s.Stop()
	}
	l.DDB, err = load.On(ctx, g.Env, c, start, end)
	return l, errors.Join(err, os.RemoveAll(data))
}

// mallocs is the allocations on the server's Go heap since its start.
const mallocs = "go_memstats_mallocs_total"

// A query is asked askedRuns times in each of askedRounds rounds.
const (
	askedRounds = 3
	askedRuns   = 20
)

// queries are queries over the first rows of a load.
func queries(c *haggar.Config) []load.Query {
	s := load.Over(c.Start.Unix(), c.Start.Unix()+300, 60)
	one := fmt.Sprintf("max(%s BUCKET %s, 1m)", load.Name(c, 1, 17), c.Bucket)
	all := strings.TrimSuffix(load.Name(c, 1, 0), metric.Quote(fmt.Sprintf("%6d", 0))) + "*"
	return []load.Query{
		{
			What: "max of a series",
			Text: "SELECT " + one + " " + s.DQL(),
			Want: [][]float64{s.Max(c, 1, 17)},
		},
		{What: fmt.Sprintf("average of %d series", c.Metrics), Want: [][]float64{s.Mean(c, 1)},
			Text: fmt.Sprintf("SELECT avg(avg(%s BUCKET %s, 1m)) %s", all, c.Bucket, s.DQL())},
	}
}

// askedMallocs returns the allocations of the server for a query, the least of
// the rounds.
func askedMallocs(ctx context.Context, s *server.Server, q *load.Query) (float64, error) {
	ask := func() error {
		var body bytes.Buffer
		if err := s.Client().CopyQuery(ctx, &body, q.Text); err != nil {
			return err
		}
		return q.Check(body.Bytes())
	}
	if err := ask(); err != nil { // it loads the index
		return 0, err
	}
	least := math.Inf(1)
	for range askedRounds {
		before, err := s.Metric(ctx, mallocs)
		if err != nil {
			return 0, err
		}
		for range askedRuns {
			if err := ask(); err != nil {
				return 0, err
			}
		}
		after, err := s.Metric(ctx, mallocs)
		if err != nil {
			return 0, err
		}
		least = min(least, (after-before)/askedRuns)
	}
	return least, nil
}
