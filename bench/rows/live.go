package rows

import (
	"context"
	"path/filepath"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/haggar"
)

// liveWarm is how long the live load runs before its memory is looked at:
// blocks of 60 s are closed a minute after their last write by then.
const liveWarm = 90 * time.Second

// live is what 200 k series cost that send a point a second, as they do in
// operation: how much memory, and how much of a core. A load in synthetic time
// cannot tell: the store closes blocks by the clock.
func (b *bench) live(ctx context.Context) error {
	s, err := b.Start(filepath.Join(b.Dir, "live"))
	if err != nil {
		return err
	}
	defer s.Remove()
	measured := time.Minute
	if b.Quick {
		measured = 30 * time.Second
	}
	c := haggar.Config{
		Bucket: haggar.DefaultBucket, Agents: load.Connections, Metrics: 98 * load.GroupWidth,
		Batch: true, CacheConnections: true,
		FlushInterval: time.Second, SpawnInterval: 100 * time.Millisecond, Duration: liveWarm + measured,
	}
	watched := make(chan watch, 1)
	go func() { watched <- watchMemory(ctx, s, liveWarm, measured-2*time.Second) }()
	if _, err := load.Send(ctx, b.Env, s, c); err != nil {
		return err
	}
	w := <-watched
	if w.err != nil {
		return w.err
	}
	cells, err := s.HeadNote(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Client().Flush(ctx); err != nil {
		return err
	}
	now, peak, err := s.Memory()
	if err != nil {
		return err
	}
	area := "live, 200 k series, a point a second"
	b.table.Add(report.Figure{
		Area:   area,
		What:   "memory",
		Value:  measure.Mebi(w.most),
		Unit:   "MiB",
		Budget: memoryBudget,
	}.
		Because("most that was resident from second %.0f to %.0f; at the end %s", liveWarm.Seconds(),
			(liveWarm + measured).Seconds(), cells))
	b.table.Add(report.Figure{
		Area:   area,
		What:   "memory, peak with a flush",
		Value:  measure.Mebi(peak),
		Unit:   "MiB",
		Budget: memoryBudget,
	}.
		Because("VmHWM; %.0f MiB after the flush", measure.Mebi(now)))
	b.table.Add(report.Figure{Area: area, What: "processor", Value: w.cores, Unit: "cores"}.
		Because("without a flush, self-metrics and collections included"))
	return s.Stop()
}

// watch is what was seen of a process over some time.
type watch struct {
	most  int64   // resident bytes
	cores float64 // processor time per time
	err   error
}

// watchMemory looks at the process every half second for some time, after a wait.
func watchMemory(ctx context.Context, s *server.Server, wait, during time.Duration) watch {
	if err := measure.Pause(ctx, wait); err != nil {
		return watch{err: err}
	}
	begun := time.Now()
	before, err := s.CPU()
	if err != nil {
		return watch{err: err}
	}
	var w watch
	for time.Since(begun) < during {
		now, _, err := s.Memory()
		if err != nil {
			return watch{err: err}
		}
		w.most = max(w.most, now)
		if err := measure.Pause(ctx, time.Second/2); err != nil {
			return watch{err: err}
		}
	}
	after, err := s.CPU()
	w.cores, w.err = after.Sub(before).Sum().Seconds()/time.Since(begun).Seconds(), err
	return w
}
