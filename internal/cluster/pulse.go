package cluster

import (
	"context"
	"sync/atomic"
	"time"
)

// pulse notices that this process did not run for a while: it was stopped, or its machine was. Then
// others may take the node for down, and nothing that arrives says so.
type pulse struct {
	start time.Time
	limit time.Duration // that is no pause yet
	last  atomic.Int64  // the last beat, since start
}

// newPulse returns the pulse of a node. Others hear nothing of it for a pause and the time between
// two signs of life.
func newPulse(pace Pace) *pulse {
	return &pulse{start: time.Now(), limit: (pace.Silence - pace.Heartbeat) * 3 / 4}
}

// takePause reports whether a pause has just ended, and the node has not begun again with the
// others.
func (p *pulse) takePause() bool {
	return time.Since(p.start)-time.Duration(p.last.Load()) > p.limit
}

// run beats until the context ends. Before the first beat behind a pause it gives what it waits for
// to paused.
func (p *pulse) run(ctx context.Context, paused chan<- chan struct{}) {
	beat := time.NewTicker(p.limit / 8)
	defer beat.Stop()
	for {
		if p.takePause() {
			done := make(chan struct{})
			select {
			case paused <- done:
				<-done
			case <-ctx.Done():
				return
			}
		}
		p.last.Store(int64(time.Since(p.start)))
		select {
		case <-beat.C:
		case <-ctx.Done():
			return
		}
	}
}
