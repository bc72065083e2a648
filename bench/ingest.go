package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/internal/haggar"
)

const connections = 8

// groupWidth is the store's number of series per column group. Connections of
// a load in synthetic time drift apart by more rows than a group keeps open:
// they get whole groups, so that none is shared and no point comes late.
const groupWidth = 256

// Budgets in nanoseconds of the server's processor time per point, above what
// the discard server takes.
const (
	batchBudget = 34
	batchFinal  = 14
	entryBudget = 50
	tinyBudget  = 1.2
)

const (
	memoryBudget = 250 // MiB at 200 k active series
	gcBudget     = 3   // percent
)

// sample is one load of one server.
type sample struct {
	points    int64
	warm      int64       // points that went ahead
	seconds   float64     // until the server had read everything
	cpu       measure.CPU // with the flush behind the load
	now, peak int64       // resident bytes
	gc        float64     // share of cpu
	merge     measure.CPU // of merging what the load left, apart from cpu
	head      string      // what of the memory was the head's before the flush
}

func (s *sample) nanos() float64 { return s.per(s.cpu.Sum()) }

// per returns nanoseconds per point.
func (s *sample) per(d time.Duration) float64 { return float64(d) / float64(s.points) }

// perAll is per for what all points caused, those that went ahead included.
func (s *sample) perAll(d time.Duration) float64 { return float64(d) / float64(s.points+s.warm) }

// pair is both servers under the same bytes, one after the other.
type pair struct{ discard, ddb sample }

// uniform is a load of uniform values that ends at the present.
func uniform(agents, metrics int, rows int64) haggar.Config {
	start := time.Now().Add(-time.Duration(rows+warmRows+60) * time.Second).Truncate(time.Second)
	return haggar.Config{
		Bucket: haggar.DefaultBucket, Agents: agents, Metrics: metrics, Steps: rows,
		Fast: true, Batch: true, CacheConnections: true, Start: start,
	}
}

// send runs a load against a server; it is an error when any of it failed.
func (b *bench) send(ctx context.Context, s *server, c haggar.Config) (haggar.Summary, error) {
	c.Addr = s.tcp
	c.Log = slog.New(slog.NewTextHandler(b.log, nil))
	sum, err := haggar.Run(ctx, c)
	switch {
	case err != nil:
		return sum, err
	case ctx.Err() != nil:
		return sum, ctx.Err()
	case sum.Errors > 0:
		return sum, fmt.Errorf("haggar met %d errors: %s", sum.Errors, s.lastLines())
	}
	return sum, nil
}

// warmRows go ahead of a measured load, and are flushed: the series are known then,
// to the catalogue as well, and no point of theirs is encoded later.
const warmRows = 300

// load measures a server under a load. The store is flushed at the end: sealing
// and writing are part of what a point costs. Merging is measured by itself.
func (b *bench) load(ctx context.Context, s *server, c haggar.Config) (sample, error) {
	first := c
	first.Steps = min(warmRows, c.Steps)
	if _, err := b.send(ctx, s, first); err != nil {
		return sample{}, err
	}
	if s.data != "" {
		if _, err := s.client().Flush(ctx); err != nil {
			return sample{}, err
		}
	}
	before, err := s.cpuTime()
	if err != nil {
		return sample{}, err
	}
	c.Start = c.Start.Add(time.Duration(first.Steps) * time.Second)
	sum, err := b.send(ctx, s, c)
	if err != nil {
		return sample{}, err
	}
	out := sample{points: sum.Points, warm: first.Steps * int64(c.Agents*c.Metrics), seconds: sum.Seconds}
	if s.data != "" {
		if out.head, err = s.headNote(ctx); err != nil {
			return sample{}, err
		}
		if _, err := s.client().Flush(ctx); err != nil {
			return sample{}, err
		}
	}
	after, err := s.cpuTime()
	if err != nil {
		return sample{}, err
	}
	out.cpu = after.Sub(before)
	if s.data != "" {
		if err := s.accepted(ctx, c.Bucket, out.points+out.warm); err != nil {
			return sample{}, err
		}
		if out.merge, err = s.merge(ctx); err != nil {
			return sample{}, err
		}
		out.gc = collecting(s.lines()).Seconds() / after.Sum().Seconds()
	}
	out.now, out.peak, err = s.memory()
	return out, err
}

// merge merges what is there to merge and returns its processor time.
func (s *server) merge(ctx context.Context) (measure.CPU, error) {
	before, err := s.cpuTime()
	if err != nil {
		return measure.CPU{}, err
	}
	if _, err := s.client().Merge(ctx); err != nil {
		return measure.CPU{}, err
	}
	after, err := s.cpuTime()
	return after.Sub(before), err
}

// accepted checks that the store's account has every point that was sent, and
// as new ones: a load of duplicates would cost something else.
func (s *server) accepted(ctx context.Context, bucket string, want int64) error {
	account, err := s.client().Account(ctx, bucket, 0)
	if err != nil {
		return err
	}
	for i := range account.Rows {
		if r := &account.Rows[i]; r.Bucket == bucket && int64(r.Accepted) == want && int64(r.Received) == want {
			return nil
		}
	}
	return fmt.Errorf("%d points were sent, the account says %+v", want, account.Rows)
}

// compare loads both servers in turn, each time new ones.
func (b *bench) compare(ctx context.Context, c haggar.Config, reps int) ([]pair, error) {
	var pairs []pair
	for i := range reps {
		var p pair
		var err error
		if p.discard, err = b.loadNew(ctx, c, startDiscard, (*server).killed); err != nil {
			return nil, err
		}
		data := filepath.Join(b.dir, "ingest")
		p.ddb, err = b.loadNew(ctx, c, func() (*server, error) { return b.startDDB(data, "merge.background=off") }, (*server).stop)
		if err = errors.Join(err, os.RemoveAll(data)); err != nil {
			return nil, err
		}
		b.logf("  %d: discard %.1f ns/point, ddb %.1f ns/point, %.1f and %.1f M points/s", i+1,
			p.discard.nanos(), p.ddb.nanos(), p.discard.rate(), p.ddb.rate())
		pairs = append(pairs, p)
	}
	return pairs, nil
}

func (s *server) killed() error {
	s.kill()
	return nil
}

func (b *bench) loadNew(ctx context.Context, c haggar.Config, start func() (*server, error), end func(*server) error) (sample, error) {
	s, err := start()
	if err != nil {
		return sample{}, err
	}
	out, err := b.load(ctx, s, c)
	if err != nil {
		s.kill()
		return sample{}, err
	}
	return out, end(s)
}

// rate is in million points per second.
func (s *sample) rate() float64 { return float64(s.points) / s.seconds / 1e6 }

// of returns the median of a figure over all pairs as a line of the table.
func of(pairs []pair, area, what, unit string, value func(*pair) float64) figure {
	var values []float64
	for i := range pairs {
		values = append(values, value(&pairs[i]))
	}
	f := figure{area: area, what: what, unit: unit}
	f.value, f.spread = measure.Median(values)
	return f
}

// mid returns the median of a figure for a note.
func mid(pairs []pair, value func(*pair) float64) string {
	f := of(pairs, "", "", "", value)
	return measure.Number(f.value)
}

func (f figure) within(budget float64) figure { f.budget = budget; return f }

func (f figure) because(format string, args ...any) figure {
	f.note = fmt.Sprintf(format, args...)
	return f
}

// ingestRow is the batch stream of uniform values.
func ingestRow(name string, series int, steps int64) func(*bench, context.Context) error {
	return func(b *bench, ctx context.Context) error {
		metrics := (series/connections + groupWidth - 1) / groupWidth * groupWidth
		pairs, err := b.compare(ctx, uniform(connections, metrics, steps), b.reps)
		if err != nil {
			return err
		}
		area := "ingest, batch stream, " + name
		t := b.table
		t.add(of(pairs, area, "ddb above discard", "ns/point", above).within(batchBudget).
			because("median of the pairs' differences; %d connections of %d series, %d M points a run, flush included; final budget %d",
				connections, metrics, pairs[0].ddb.points/1e6, batchFinal))
		t.add(of(pairs, area, "ddb", "ns/point", func(p *pair) float64 { return p.ddb.nanos() }).
			because("of it %s in the kernel; over the load and the flush behind it",
				mid(pairs, func(p *pair) float64 { return p.ddb.per(p.ddb.cpu.Sys) })))
		t.add(of(pairs, area, "ddb, merging", "ns/point", func(p *pair) float64 { return p.ddb.perAll(p.ddb.merge.Sum()) }).
			because("apart: of all points of the run, by itself at the end"))
		t.add(of(pairs, area, "discard", "ns/point", func(p *pair) float64 { return p.discard.nanos() }).
			because("the same bytes, read and thrown away, all of it but %s in the kernel",
				mid(pairs, func(p *pair) float64 { return p.discard.per(p.discard.cpu.User) })))
		t.add(of(pairs, area, "ddb, rate", "M points/s", func(p *pair) float64 { return p.ddb.rate() }).
			because("by the clock, sender on the same cores; discard %s", mid(pairs, func(p *pair) float64 { return p.discard.rate() })))
		t.add(of(pairs, area, "ddb, peak memory", "MiB", func(p *pair) float64 { return mebi(p.ddb.peak) }).
			because("VmHWM; %s before the flush, %s MiB resident after it", pairs[0].ddb.head,
				mid(pairs, func(p *pair) float64 { return mebi(p.ddb.now) })))
		t.add(of(pairs, area, "ddb, garbage collection", "% of CPU", func(p *pair) float64 { return p.ddb.gc * 100 }).within(gcBudget).
			because("gctrace's CPU times, which are by the clock: an upper bound"))
		return nil
	}
}

func above(p *pair) float64 { return p.ddb.nanos() - p.discard.nanos() }

func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// entries is what the original's generator sends, with one write per flush: an
// entry per point, a new connection for every flush.
func (b *bench) entries(ctx context.Context) error {
	c := uniform(100, 2000, 200)
	c.Batch, c.CacheConnections = false, false
	pairs, err := b.compare(ctx, c, b.reps)
	if err != nil {
		return err
	}
	area := "ingest, entry per point, reconnects"
	b.table.add(of(pairs, area, "ddb above discard", "ns/point", above).within(entryBudget).
		because("100 agents of 2,000 metrics, %d M points a run, discard %s", pairs[0].ddb.points/1e6,
			mid(pairs, func(p *pair) float64 { return p.discard.nanos() })))
	b.table.add(of(pairs, area, "ddb, rate", "M points/s", func(p *pair) float64 { return p.ddb.rate() }).because("by the clock"))
	return nil
}

// shuffled is the batch stream of a sender that has its metrics in another order
// every second: no point is where the last one was. A warm-up teaches the names.
func (b *bench) shuffled(ctx context.Context) error {
	c := uniform(connections, 98*groupWidth, 400)
	c.Shuffle = true
	pairs, err := b.compare(ctx, c, b.reps)
	if err != nil {
		return err
	}
	area := "ingest, shuffled batches, 200 k series"
	b.table.add(of(pairs, area, "ddb above discard", "ns/point", above).
		because("%d connections of %d series, %d M points a run, flush included; discard %s", c.Agents, c.Metrics,
			pairs[0].ddb.points/1e6, mid(pairs, func(p *pair) float64 { return p.discard.nanos() })))
	b.table.add(of(pairs, area, "ddb, rate", "M points/s", func(p *pair) float64 { return p.ddb.rate() }).because("by the clock"))
	return nil
}

// tiny is the original's generator as it is: three writes per point.
func (b *bench) tiny(ctx context.Context) error {
	c := uniform(100, 2000, 10)
	c.Batch, c.CacheConnections, c.TinyWrites = false, false, true
	pairs, err := b.compare(ctx, c, b.reps)
	if err != nil {
		return err
	}
	b.table.add(of(pairs, "ingest, three writes per point", "ddb ÷ discard", "×", func(p *pair) float64 { return p.ddb.nanos() / p.discard.nanos() }).
		within(tinyBudget).because("100 agents of 2,000 metrics, %d M points a run; ddb %s ns/point, discard %s", pairs[0].ddb.points/1e6,
		mid(pairs, func(p *pair) float64 { return p.ddb.nanos() }),
		mid(pairs, func(p *pair) float64 { return p.discard.nanos() })))
	return nil
}
