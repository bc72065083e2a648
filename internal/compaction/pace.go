package compaction

import (
	"context"
	"runtime"
	"time"
)

const (
	// mergeStep is how long a merge works before it looks who waits. While it
	// yields to points it then pauses mergePause times as long. A step of which
	// other processes took the larger part counts no more than mergeStepMax.
	mergeStep    = 2 * time.Millisecond
	mergeStepMax = 20 * time.Millisecond
	mergePause   = 40

	// mergeTurn is how long a merge waits for a processor at most where points
	// leave time for it. Where they do not, it waits for the end of somebody's
	// time slice, which is 10 ms.
	mergeTurn = 4 * time.Millisecond
)

// pace lets a merge yield to points. It goes by time, not by what is written: a
// chunk of a few bytes may take as much of the processor as one of thousands.
func (m *merging) pace(ctx context.Context) error {
	now := time.Now()
	worked := now.Sub(m.turn)
	if worked < mergeStep {
		return nil
	}
	// Whoever is ready to run runs first. That takes long only where somebody
	// computes all the time: a sender that is read from as fast as it goes.
	runtime.Gosched()
	if m.c.o.Yields(time.Since(now) > mergeTurn) {
		t := time.NewTimer(mergePause * min(worked, mergeStepMax))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.turn = time.Now()
	return nil
}
