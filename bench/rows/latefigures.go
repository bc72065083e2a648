package rows

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
)

// written is what the store wrote, by its own counters, in bytes.
type written struct{ log, flushed, merged float64 }

func (w written) sum() float64 { return w.log + w.flushed + w.merged }

func (w written) sub(o written) written {
	return written{w.log - o.log, w.flushed - o.flushed, w.merged - o.merged}
}

func writtenBy(ctx context.Context, s *server.Server) (w written, err error) {
	for name, to := range map[string]*float64{"wal_appended_bytes_total": &w.log,
		"flushed_bytes_total": &w.flushed, "merged_bytes_total": &w.merged} {
		if *to, err = s.Stat(ctx, name); err != nil {
			return w, err
		}
	}
	return w, nil
}

// phase is what was seen of a server during a part of a row.
type phase struct {
	wrote   written
	cpu     measure.CPU
	seconds float64
	peak    int64       // resident bytes
	times   [][]float64 // of each query, in ms, sorted
}

// measureLate asks the queries in turn while do runs, and then merges.
func measureLate(ctx context.Context, s *server.Server, queries []load.Query,
	do func() error) (p phase, err error) {
	wrote, err := writtenBy(ctx, s)
	if err != nil {
		return p, err
	}
	used, err := s.CPU()
	if err != nil {
		return p, err
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	type asked struct {
		times [][]float64
		err   error
	}
	done := make(chan asked, 1)
	go func() {
		times, err := askAll(asking, s, queries, false)
		done <- asked{times, err}
	}()
	begun := time.Now()
	err = do()
	p.seconds = time.Since(begun).Seconds()
	stop()
	a := <-done
	if err != nil || a.err != nil {
		return p, fmt.Errorf("load: %w, queries: %w", err, a.err)
	}
	p.times = a.times
	if _, err := s.Client().Merge(ctx); err != nil {
		return p, err
	}
	now, err := writtenBy(ctx, s)
	if err != nil {
		return p, err
	}
	p.wrote = now.sub(wrote)
	after, err := s.CPU()
	if err != nil {
		return p, err
	}
	p.cpu = after.Sub(used)
	_, p.peak, err = s.Memory()
	return p, err
}

// askEvery is long enough for the queries to take little of the processor that
// the load is measured by. lateAsks is how often each is asked when nothing else
// goes on.
const (
	askEvery = 25 * time.Millisecond
	lateAsks = 100
)

// askAll asks the queries in turn, every askEvery, until the context ends or each was
// asked lateAsks times, if that is bounded. It returns their sorted times in ms.
func askAll(ctx context.Context, s *server.Server, queries []load.Query,
	bounded bool) ([][]float64, error) {
	times := make([][]float64, len(queries))
	client := s.Client()
	for n := 0; len(queries) > 0 && (!bounded || n < lateAsks); n++ {
		for i := range queries {
			if measure.Pause(ctx, askEvery) != nil {
				bounded, n = true, lateAsks
				break
			}
			begun := time.Now()
			var body bytes.Buffer
			if err := client.CopyQuery(context.WithoutCancel(ctx), &body, queries[i].Text); err != nil {
				return nil, err
			}
			times[i] = append(times[i], float64(time.Since(begun).Nanoseconds())/1e6)
		}
	}
	for i := range times {
		if len(times[i]) == 0 {
			return nil, fmt.Errorf("%s was not asked once", queries[i].What)
		}
		slices.Sort(times[i])
	}
	return times, nil
}

func quantile(sorted []float64, q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }

// both tells the median and the 99th percentile.
func both(sorted []float64) string {
	return fmt.Sprintf("p50 %s, p99 %s ms", measure.Number(quantile(sorted, 0.5)),
		measure.Number(quantile(sorted, 0.99)))
}

// lateCost tells what some late points of all points of a load cost: what the
// same load does without them is taken off.
func (b *bench) lateCost(area string, late, all int64, plain, with *phase) {
	w := with.wrote.sub(plain.wrote)
	const wide = 8 // bytes of a point as it is sent
	b.table.Add(report.Figure{
		Area:   area,
		What:   "written ÷ received late",
		Value:  w.sum() / float64(late*wide),
		Unit:   "×",
		Budget: writtenBudget,
	}.
		Because("8 bytes a point; by the store's counters log %.2f, flushes %.2f, merges %.2f; %.2f M "+
			"points came late",
			w.log/float64(late*wide), w.flushed/float64(late*wide), w.merged/float64(late*wide),
			float64(late)/1e6))
	if all != late {
		b.table.Add(report.Figure{
			Area:  area,
			What:  "written ÷ received, all",
			Value: with.wrote.sum() / float64(all*wide),
			Unit:  "×",
		}.
			Because("without late points %.3f", plain.wrote.sum()/float64(all*wide)))
	}
	b.table.Add(report.Figure{
		Area:  area,
		What:  "processor, of a late point",
		Value: float64(with.cpu.Sub(plain.cpu).Sum()) / float64(late),
		Unit:  "ns",
	}.
		Because("flushes, merges and the queries meanwhile included; %.0f s by the clock", with.seconds))
	b.table.Add(report.Figure{
		Area:  area,
		What:  "peak memory",
		Value: measure.Mebi(with.peak),
		Unit:  "MiB",
	}.Because("VmHWM"))
}

// lateQueryTimes compares the queries meanwhile with those beside a load that
// comes on time: both share the cores with the sender.
func (b *bench) lateQueryTimes(area string, queries []load.Query, before [][]float64, plain,
	with *phase) {
	for i, q := range queries {
		b.table.Add(report.Figure{Area: area, What: q.What + " meanwhile ÷ beside points on time",
			Unit: "×", Budget: slowerBudget,
			Value: quantile(with.times[i], 0.5) / quantile(plain.times[i], 0.5)}.
			Because("meanwhile %s; beside points on time %s; without any load %s; the sender is on the "+
				"same cores",
				both(with.times[i]), both(plain.times[i]), both(before[i])))
	}
}

// lateAfter tells what is left when everything is merged, and checks the answers.
func (b *bench) lateAfter(ctx context.Context, s *server.Server, area string, queries []load.Query,
	before [][]float64) error {
	after, err := askAll(ctx, s, queries, true)
	if err != nil {
		return err
	}
	for i := range queries {
		var body bytes.Buffer
		if err := s.Client().CopyQuery(ctx, &body, queries[i].Text); err != nil {
			return err
		}
		if err := queries[i].Check(body.Bytes()); err != nil {
			return fmt.Errorf("%s after merging: %w", queries[i].What, err)
		}
		b.table.Add(report.Figure{Area: area, What: queries[i].What + " when merged ÷ before", Unit: "×",
			Budget: slowerBudget,
			Value:  quantile(after[i], 0.5) / quantile(before[i], 0.5)}.Because("%s; the answer is as sent",
			both(after[i])))
	}
	segments, err := s.Client().Segments(ctx, "")
	if err != nil {
		return err
	}
	count, bytes, points := make(map[string]int), make(map[string]int64), int64(0)
	for i := range segments {
		kind, _, _ := strings.Cut(segments[i].File, "/")
		count[kind]++
		bytes[kind] += segments[i].Bytes
		points += segments[i].Points
	}
	sum := bytes["window"] + bytes["overlay"] + bytes["flush"]
	b.table.Add(report.Figure{
		Area:   area,
		What:   "overlays left",
		Value:  float64(count["overlay"]),
		Unit:   "files",
		Budget: 4,
	}.
		Because("%.1f MiB; %d windows of %.1f MiB, %d flushes of %.1f MiB",
			measure.Mebi(bytes["overlay"]),
			count["window"], measure.Mebi(bytes["window"]), count["flush"], measure.Mebi(bytes["flush"])))
	b.table.Add(report.Figure{
		Area:  area,
		What:  "size when merged",
		Value: 8 * float64(sum) / float64(points),
		Unit:  "bits/point",
	}.
		Because("segments; %d M points", points/1e6))
	return nil
}
