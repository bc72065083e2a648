package room

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/bench/report"
	"dalmatiner/ducks/internal/emulate"
	"dalmatiner/ducks/internal/initiator"
)

// load is what a machine does.
type load struct {
	block    int
	inFlight int
	reads    float64 // part of the commands
}

// randomly is the part of all that goes to a random place, as on the published page.
const randomly = 0.8

// did is what a machine has done.
type did struct {
	reads, writes int
	took          time.Duration
	latencies     []time.Duration // ascending
}

func (d *did) rate(n int) float64 { return float64(n) / d.took.Seconds() }

// at returns a quantile of the latencies in ms.
func (d *did) at(q float64) float64 {
	if len(d.latencies) == 0 {
		return 0
	}
	return d.latencies[min(int(q*float64(len(d.latencies))), len(d.latencies)-1)].Seconds() * 1000
}

// run works on a disk for a time.
func (l load) run(ctx context.Context, disk *initiator.Disk,
	length time.Duration) (d did, err error) {
	var next, reads, writes atomic.Int64
	places := int64(used / l.block)
	began := time.Now()
	var all sync.WaitGroup
	latencies := make([][]time.Duration, l.inFlight)
	errs := make([]error, l.inFlight)
	for i := range l.inFlight {
		all.Go(func() {
			buf := make([]byte, l.block)
			for j := range buf {
				buf[j] = byte(rand.IntN(256))
			}
			for time.Since(began) < length && errs[i] == nil {
				place := next.Add(1) % places
				if rand.Float64() < randomly {
					place = rand.Int64N(places)
				}
				of, start := &reads, time.Now()
				if rand.Float64() < l.reads {
					errs[i] = disk.ReadAt(ctx, buf, place*int64(l.block))
				} else {
					of = &writes
					errs[i] = disk.WriteAt(ctx, buf, place*int64(l.block))
				}
				of.Add(1)
				latencies[i] = append(latencies[i], time.Since(start))
			}
		})
	}
	all.Wait()
	d = did{
		reads:     int(reads.Load()),
		writes:    int(writes.Load()),
		took:      time.Since(began),
		latencies: slices.Concat(latencies...),
	}
	slices.Sort(d.latencies)
	return d, errors.Join(errs...)
}

// The loads of the published page, and of a machine beside it.
var (
	large     = load{64 << 10, 32, 0.5}
	medium    = load{16 << 10, 32, 0.5}
	neighbour = load{4 << 10, 1, 0.8}
)

// loads measures what one machine gets through the line of the server, and what that leaves for
// another one: with a queue that both share, and with classes.
func (r *room) loads(ctx context.Context) error {
	var disks [2]*initiator.Disk
	for i := range disks {
		m, err := emulate.Plug(bridge, macs()[i])
		if err != nil {
			return err
		}
		defer m.Unplug()
		if err := m.SetLine(line); err != nil {
			return err
		}
		on, err := m.Boot(ctx, false)
		if err != nil {
			return err
		}
		defer on.Session.Close()
		disks[i] = on.Disk
		chunk := make([]byte, 1<<20)
		for at := int64(0); at < used; at += int64(len(chunk)) {
			for j := range chunk {
				chunk[j] = byte(rand.IntN(256))
			}
			if err := disks[i].WriteAt(ctx, chunk, at); err != nil {
				return err
			}
		}
	}
	length := 10 * time.Second
	if r.quick {
		length = 3 * time.Second
	}
	shaped := fmt.Sprintf("root tbf rate %.0fmbit burst 256kb latency 20ms", line/1e6)
	if err := command("tc qdisc add dev " + port + " " + shaped); err != nil {
		return err
	}
	var p99 [2]float64
	for i, way := range []string{"one queue", "classes"} {
		if way == "one queue" {
			if err := command("tc qdisc add dev " + card + " " + shaped); err != nil {
				return err
			}
		} else if err := errors.Join(command("tc qdisc del dev "+card+" root"), r.stop(),
			r.start(ctx, "--shape", card, "--line", "1gbit")); err != nil {
			return err
		}
		var f found
		if err := f.run(ctx, disks, length); err != nil {
			return err
		}
		p99[i] = f.beside.at(0.99)
		r.report(way, &f)
	}
	r.t.Add(report.Figure{
		Area:  "ducks, classes",
		What:  "p99 beside the load, one queue ÷ classes",
		Unit:  "×",
		Value: p99[0] / p99[1],
		Least: 3,
	})
	return nil
}

// found is what was measured of a way to share the line.
type found struct {
	large, medium, neighbour did // each alone
	loaded, beside           did // the first and the last of them at once
}

func (f *found) run(ctx context.Context, disks [2]*initiator.Disk, length time.Duration) error {
	var errs [5]error
	f.large, errs[0] = large.run(ctx, disks[0], length)
	f.medium, errs[1] = medium.run(ctx, disks[0], length)
	f.neighbour, errs[2] = neighbour.run(ctx, disks[1], length)
	var both sync.WaitGroup
	both.Go(func() { f.beside, errs[3] = neighbour.run(ctx, disks[1], length) })
	f.loaded, errs[4] = large.run(ctx, disks[0], length)
	both.Wait()
	return errors.Join(errs[:]...)
}

// report adds the figures of a way to share the line, with those of the published page.
func (r *room) report(way string, f *found) {
	area := "ducks, " + way
	bound := func(g report.Figure, least, most float64) report.Figure {
		if way == "classes" {
			g.Least, g.Budget = least, most
		}
		return g
	}
	megabytes := func(n int, l load, d *did) float64 { return d.rate(n) * float64(l.block) / 1e6 }
	r.t.Add(bound(report.Figure{
		Area:  area,
		What:  "64 KiB, 80 % random, 32 in flight: read",
		Unit:  "MB/s",
		Value: megabytes(f.large.reads, large, &f.large),
	}, 110, 0).
		Because("published: 77; p99 %.1f ms", f.large.at(0.99)))
	r.t.Add(bound(report.Figure{
		Area:  area,
		What:  "the same: written",
		Unit:  "MB/s",
		Value: megabytes(f.large.writes, large, &f.large),
	}, 110, 0).
		Because("at once; published: 77"))
	r.t.Add(bound(report.Figure{
		Area:  area,
		What:  "16 KiB, the same",
		Unit:  "IOPS",
		Value: f.medium.rate(f.medium.reads + f.medium.writes),
	}, 9500, 0).
		Because("published: 9,500; %.0f MB/s read, p99 %.1f ms",
			megabytes(f.medium.reads, medium, &f.medium), f.medium.at(0.99)))
	r.t.Add(bound(report.Figure{
		Area:  area,
		What:  "4 KiB of another machine beside 64 KiB: p99",
		Unit:  "ms",
		Value: f.beside.at(0.99),
	}, 0, 1.5).
		Because("one in flight, 80 %% reads: p50 %.2f ms, the longest %.1f ms; alone p50 %.2f ms, p99 "+
			"%.2f ms", f.beside.at(0.5), f.beside.at(1), f.neighbour.at(0.5), f.neighbour.at(0.99)))
	r.t.Add(report.Figure{
		Area:  area,
		What:  "what that leaves for the 64 KiB: read",
		Unit:  "MB/s",
		Value: megabytes(f.loaded.reads, large, &f.loaded),
	}.
		Because("the other machine reads %.0f MB/s", megabytes(f.beside.reads, neighbour, &f.beside)))
}
