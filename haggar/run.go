package haggar

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// firstSpawn is when the first agent of a ramp starts, as in the original.
const firstSpawn = time.Millisecond

// run is the state the agents share.
type run struct {
	Config
	count   counters
	journal *journal
}

// Run sends what the configuration says until that is done, its time is up or
// ctx is done; the agents then finish the flush they are at. The error is a
// configuration that makes no sense or a journal that cannot be written;
// failures on the way to the store are counted in the summary.
func Run(ctx context.Context, c Config) (Summary, error) {
	if err := c.prepare(); err != nil {
		return Summary{}, err
	}
	r := &run{Config: c, journal: newJournal(&c)}
	var ready []*agent
	if c.Fast || c.Preset == Published {
		for id := range c.Agents {
			ready = append(ready, newAgent(r, id))
		}
	}
	begun, cpu := time.Now(), cpuTime()
	stop := r.watch(begun)
	switch {
	case c.Preset == Published:
		r.published(ctx, ready[0])
	default:
		limited, cancel := bound(ctx, c.Duration)
		defer cancel()
		var agents sync.WaitGroup
		for _, a := range ready {
			r.count.agents.Add(1)
			agents.Go(func() { a.synthetic(limited) })
		}
		if !c.Fast {
			r.ramp(limited, &agents)
		}
		agents.Wait()
	}
	elapsed := time.Since(begun)
	stop()
	return r.count.summary(elapsed, cpuTime()-cpu), r.journal.sync()
}

func bound(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// synthetic sends all rows of a fast run.
func (a *agent) synthetic(ctx context.Context) {
	defer a.hangUp()
	start, end := a.Start.Unix(), int64(math.MaxInt64)
	if a.Steps > 0 {
		end = start + a.Steps*a.step
	}
	a.fast(ctx, start, end)
}

// published writes the backfill and goes on with the present.
func (r *run) published(ctx context.Context, a *agent) {
	defer a.hangUp()
	r.count.agents.Add(1)
	slot := r.Now().Add(-r.Backfill).Unix()
	// The backfill takes time, too: it ends where it has caught up.
	for end := r.Now().Unix(); slot < end && ctx.Err() == nil; end = r.Now().Unix() {
		slot = a.fast(ctx, slot, end)
	}
	if r.NoLive {
		return
	}
	limited, cancel := bound(ctx, r.Duration)
	defer cancel()
	a.live(limited, slot)
}

// ramp starts one agent after the other, as the original does: a spawn
// interval apart, each moved by its jitter.
func (r *run) ramp(ctx context.Context, agents *sync.WaitGroup) {
	random := rand.New(rand.NewPCG(r.Seed, 0))
	timer := time.NewTimer(firstSpawn)
	defer timer.Stop()
	paused, last := false, time.Duration(0)
	for id := 0; id < r.Agents; {
		select {
		case <-ctx.Done():
			return
		case <-r.Toggle:
			paused = !paused
			r.Log.Info("the start of agents was toggled", "paused", paused, "agents", id)
			continue
		case <-timer.C:
		}
		if !paused {
			next := id
			r.count.agents.Add(1)
			agents.Go(func() { newAgent(r, next).timed(ctx) })
			id++
		}
		jitter := time.Duration(random.Int64N(2*int64(r.Jitter)+1)) - r.Jitter
		timer.Reset(r.SpawnInterval - last + jitter)
		last = jitter
	}
}

// watch writes a line of progress a second, and hands on the journal, until
// the function it returns is called.
func (r *run) watch(begun time.Time) (stop func()) {
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		points, at := int64(0), begun
		for {
			select {
			case <-end:
				return
			case now := <-tick.C:
				// A journal that fails is reported when the run ends.
				_ = r.journal.sync()
				p := r.count.points.Load()
				r.report(now.Sub(begun), p, float64(p-points)/now.Sub(at).Seconds())
				points, at = p, now
			}
		}
	})
	return func() {
		close(end)
		done.Wait()
	}
}

func (r *run) report(elapsed time.Duration, points int64, rate float64) {
	if r.Progress == nil {
		return
	}
	fmt.Fprintf(r.Progress, "%4.0fs  %d points  %.0f points/s  %d errors  %d agents\n",
		elapsed.Seconds(), points, rate, r.count.errors.Load(), r.count.agents.Load())
}
