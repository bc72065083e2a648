package rows

import (
	"context"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
)

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

// median returns the median of a figure over all pairs.
func median(pairs []load.Pair, area, what, unit string,
	value func(*load.Pair) float64) report.Figure {
	var values []float64
	for i := range pairs {
		values = append(values, value(&pairs[i]))
	}
	return report.Median(area, what, unit, values)
}

// mid returns the median of a figure for a note.
func mid(pairs []load.Pair, value func(*load.Pair) float64) string {
	return measure.Number(median(pairs, "", "", "", value).Value)
}

// ingestRow is the batch stream of uniform values.
func ingestRow(name string, series int, steps int64) func(*bench, context.Context) error {
	return func(b *bench, ctx context.Context) error {
		metrics := (series/load.Connections + load.GroupWidth - 1) / load.GroupWidth * load.GroupWidth
		pairs, err := load.Pairs(ctx, b.Env, load.Uniform(load.Connections, metrics, steps), b.Count)
		if err != nil {
			return err
		}
		area := "ingest, batch stream, " + name
		t := b.table
		t.Add(median(pairs, area, "ddb above discard", "ns/point", (*load.Pair).Above).Within(
			batchBudget).
			Because("median of the pairs' differences; %d load.Connections of %d series, %d M points a "+
				"run, flush included; final budget %d",
				load.Connections, metrics, pairs[0].DDB.Points/1e6, batchFinal))
		t.Add(median(pairs, area, "ddb", "ns/point", func(p *load.Pair) float64 { return p.DDB.Nanos() }).
			Because("of it %s in the kernel; over the load and the flush behind it",
				mid(pairs, func(p *load.Pair) float64 { return p.DDB.Per(p.DDB.CPU.Sys) })))
		t.Add(median(pairs, area, "ddb, merging", "ns/point", func(p *load.Pair) float64 {
			return p.DDB.PerAll(p.DDB.Merge.Sum())
		}).
			Because("apart: of all points of the run, by itself at the end"))
		t.Add(median(pairs, area, "discard", "ns/point", func(p *load.Pair) float64 {
			return p.Discard.Nanos()
		}).
			Because("the same bytes, read and thrown away, all of it but %s in the kernel",
				mid(pairs, func(p *load.Pair) float64 { return p.Discard.Per(p.Discard.CPU.User) })))
		t.Add(median(pairs, area, "ddb, rate", "M points/s", func(p *load.Pair) float64 {
			return p.DDB.Rate()
		}).
			Because("by the clock, sender on the same cores; discard %s",
				mid(pairs, func(p *load.Pair) float64 {
					return p.Discard.Rate()
				})))
		t.Add(median(pairs, area, "ddb, peak memory", "MiB", func(p *load.Pair) float64 {
			return measure.Mebi(p.DDB.Peak)
		}).
			Because("VmHWM; %s before the flush, %s MiB resident after it", pairs[0].DDB.Head,
				mid(pairs, func(p *load.Pair) float64 { return measure.Mebi(p.DDB.Now) })))
		t.Add(median(pairs, area, "ddb, garbage collection", "% of CPU", func(p *load.Pair) float64 {
			return p.DDB.GC * 100
		}).Within(gcBudget).
			Because("gctrace's CPU times, which are by the clock: an upper bound"))
		return nil
	}
}

// entries is what the original's generator sends, with one write per flush: an
// entry per point, a new connection for every flush.
func (b *bench) entries(ctx context.Context) error {
	c := load.Uniform(100, 2000, 200)
	c.Batch, c.CacheConnections = false, false
	pairs, err := load.Pairs(ctx, b.Env, c, b.Count)
	if err != nil {
		return err
	}
	area := "ingest, entry per point, reconnects"
	b.table.Add(median(pairs, area, "ddb above discard", "ns/point", (*load.Pair).Above).Within(
		entryBudget).
		Because("100 agents of 2,000 metrics, %d M points a run, discard %s", pairs[0].DDB.Points/1e6,
			mid(pairs, func(p *load.Pair) float64 { return p.Discard.Nanos() })))
	b.table.Add(median(pairs, area, "ddb, rate", "M points/s", func(p *load.Pair) float64 {
		return p.DDB.Rate()
	}).Because("by the clock"))
	return nil
}

// shuffled is the batch stream of a sender that has its metrics in another order
// every second: no point is where the last one was. A warm-up teaches the names.
func (b *bench) shuffled(ctx context.Context) error {
	c := load.Uniform(load.Connections, 98*load.GroupWidth, 400)
	c.Shuffle = true
	pairs, err := load.Pairs(ctx, b.Env, c, b.Count)
	if err != nil {
		return err
	}
	area := "ingest, shuffled batches, 200 k series"
	b.table.Add(median(pairs, area, "ddb above discard", "ns/point", (*load.Pair).Above).
		Because("%d load.Connections of %d series, %d M points a run, flush included; discard %s",
			c.Agents, c.Metrics,
			pairs[0].DDB.Points/1e6, mid(pairs, func(p *load.Pair) float64 { return p.Discard.Nanos() })))
	b.table.Add(median(pairs, area, "ddb, rate", "M points/s", func(p *load.Pair) float64 {
		return p.DDB.Rate()
	}).Because("by the clock"))
	return nil
}

// tiny is the original's generator as it is: three writes per point.
func (b *bench) tiny(ctx context.Context) error {
	c := load.Uniform(100, 2000, 10)
	c.Batch, c.CacheConnections, c.TinyWrites = false, false, true
	pairs, err := load.Pairs(ctx, b.Env, c, b.Count)
	if err != nil {
		return err
	}
	b.table.Add(median(pairs, "ingest, three writes per point", "ddb ÷ discard", "×",
		func(p *load.Pair) float64 {
			return p.DDB.Nanos() / p.Discard.Nanos()
		}).
		Within(tinyBudget).Because("100 agents of 2,000 metrics, %d M points a run; ddb %s ns/point, "+
		"discard %s", pairs[0].DDB.Points/1e6,
		mid(pairs, func(p *load.Pair) float64 { return p.DDB.Nanos() }),
		mid(pairs, func(p *load.Pair) float64 { return p.Discard.Nanos() })))
	return nil
}
