package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/internal/haggar"
)

// liveWarm is how long the live load runs before its memory is looked at:
// blocks of 60 s are closed a minute after their last write by then.
const liveWarm = 90 * time.Second

// live is what 200 k series cost that send a point a second, as they do in
// operation: how much memory, and how much of a core. A load in synthetic time
// cannot tell: the store closes blocks by the clock.
func (b *bench) live(ctx context.Context) error {
	s, err := b.startDDB(filepath.Join(b.dir, "live"))
	if err != nil {
		return err
	}
	defer s.remove()
	measured := time.Minute
	if b.reps == 1 {
		measured = 30 * time.Second
	}
	c := haggar.Config{
		Bucket: haggar.DefaultBucket, Agents: connections, Metrics: 98 * groupWidth, Batch: true, CacheConnections: true,
		FlushInterval: time.Second, SpawnInterval: 100 * time.Millisecond, Duration: liveWarm + measured,
	}
	watched := make(chan watch, 1)
	go func() { watched <- s.watch(ctx, liveWarm, measured-2*time.Second) }()
	if _, err := b.send(ctx, s, c); err != nil {
		return err
	}
	w := <-watched
	if w.err != nil {
		return w.err
	}
	cells, err := s.headNote(ctx)
	if err != nil {
		return err
	}
	if _, err := s.client().Flush(ctx); err != nil {
		return err
	}
	now, peak, err := s.memory()
	if err != nil {
		return err
	}
	area := "live, 200 k series, a point a second"
	b.table.add(figure{area: area, what: "memory", value: mebi(w.most), unit: "MiB", budget: memoryBudget}.
		because("most that was resident from second %.0f to %.0f; at the end %s", liveWarm.Seconds(), (liveWarm + measured).Seconds(), cells))
	b.table.add(figure{area: area, what: "memory, peak with a flush", value: mebi(peak), unit: "MiB", budget: memoryBudget}.
		because("VmHWM; %.0f MiB after the flush", mebi(now)))
	b.table.add(figure{area: area, what: "processor", value: w.cores, unit: "cores"}.
		because("without a flush, self-metrics and collections included"))
	return s.stop()
}

// watch is what was seen of a process over some time.
type watch struct {
	most  int64   // resident bytes
	cores float64 // processor time per time
	err   error
}

// watch looks at the process every half second for some time, after a wait.
func (s *server) watch(ctx context.Context, wait, during time.Duration) watch {
	if err := measure.Pause(ctx, wait); err != nil {
		return watch{err: err}
	}
	begun := time.Now()
	before, err := s.cpuTime()
	if err != nil {
		return watch{err: err}
	}
	var w watch
	for time.Since(begun) < during {
		now, _, err := s.memory()
		if err != nil {
			return watch{err: err}
		}
		w.most = max(w.most, now)
		if err := measure.Pause(ctx, time.Second/2); err != nil {
			return watch{err: err}
		}
	}
	after, err := s.cpuTime()
	w.cores, w.err = after.Sub(before).Sum().Seconds()/time.Since(begun).Seconds(), err
	return w
}

// headNote tells what of the memory is the head's.
func (s *server) headNote(ctx context.Context) (string, error) {
	var mib [3]float64
	for i, name := range []string{"head_bytes", "head_warm_bytes", "open_chunk_bytes"} {
		v, err := s.stat(ctx, name)
		if err != nil {
			return "", err
		}
		mib[i] = v / (1 << 20)
	}
	return fmt.Sprintf("open blocks had %.0f MiB, spare ones %.0f, open chunks %.0f", mib[0], mib[1], mib[2]), nil
}
