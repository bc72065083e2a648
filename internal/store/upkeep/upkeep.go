// Package upkeep does what a node does for itself as time goes on. It closes blocks that are idle,
// complete, old or pin the log, and asks for flushes that are due. It looks at disk and memory, and
// gives memory back while that is short.
package upkeep

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/ledger"
)

const (
	// tick is the step of the coarse clock and of the checks behind it.
	tick = 100 * time.Millisecond

	// sealSpread staggers the closing of idle blocks: groups that were filled
	// together would otherwise be sealed in one burst.
	sealSpread = 16 * time.Second

	// completePart of these is how long a block with all its points stays open. It waits only for
	// points that are sent again, which cost little more as late ones. Of senders in step it is less
	// than the next block takes to need its second part of memory.
	completePart = 8
)

// Options are what upkeep works with.
type Options struct {
	Logger *slog.Logger
	Clock  *clock.Clock

	HeadGrace  time.Duration // a block closes after this long without writes …
	HeadMaxAge time.Duration // … or this long after its first
	// bytes of the log beyond which the oldest blocks are closed and flushed
	MaxLog        int64
	FlushInterval time.Duration // the longest time without a flush

	Log      *wal.Log
	Ledger   *ledger.Ledger
	Memory   *memory.Budget
	Arenas   *head.Arenas
	Buckets  *buckets.Registry[*columns.Bucket]
	Columns  *columns.Table
	Files    *segment.Files
	Versions *version.Versions
	Flusher  *flush.Flusher
	Pressure *backpressure.Control
	Sealers  *backpressure.Sealers
}

// Upkeep runs beside a store. Its methods may be called concurrently.
type Upkeep struct {
	o          Options
	indexBytes atomic.Int64 // of loaded indexes of segments, as last counted
}

// New returns the upkeep of a store.
func New(o Options) *Upkeep { return &Upkeep{o: o} }

// Start begins with it, until stop is closed. running counts its goroutines.
func (u *Upkeep) Start(running *sync.WaitGroup, stop <-chan struct{}) {
	running.Go(func() { u.ticks(stop) })
	running.Go(func() { u.relief(stop) })
}

func (u *Upkeep) ticks(stop <-chan struct{}) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		u.o.Clock.Advance()
		u.o.Pressure.CheckDisk()
		u.o.Memory.Look()
		u.o.Pressure.MakeRoomIfFree()
		if n%10 == 0 {
			u.EverySecond()
		}
		u.o.Arenas.GiveBack()
	}
}

// EverySecond logs refusals that wait, closes idle, complete, old and log-pinning blocks,
// and asks for the flush that is due by time, by the size of the log, by new series,
// or because the last one failed: senders may wait for it.
func (u *Upkeep) EverySecond() {
	u.o.Ledger.LogRefusals()
	u.o.Columns.CountNames()
	u.o.Flusher.Count()
	u.WatchIndexes()
	// The blocks that hold the oldest quarter of a full log are closed, so
	// that one slow bucket never pins it.
	var pinned uint64
	if size := u.o.Log.Size(); size > u.o.MaxLog {
		pinned = uint64(u.o.Log.End()) - uint64(u.o.MaxLog)*3/4
		defer u.o.Pressure.WantFlush()
	}
	nanos := u.o.Clock.Monotonic()
	for _, b := range u.o.Buckets.All() {
		grace, complete, age := u.ages(b.Resolution, b.Height)
		for _, g := range b.Groups() {
			spread := int64(sealSpread) * int64(g.ID%16) / 16
			closed := g.CloseBlocks(func(firstLSN uint64, opened, lastWrite int64) bool {
				return nanos-lastWrite > int64(grace)+spread || nanos-opened > int64(age)+spread ||
					firstLSN < pinned
			})
			closed += g.CloseComplete(nanos - int64(complete) - spread/completePart)
			u.o.Sealers.HandleWrite(g, head.WriteResult{Closed: closed})
		}
	}
	if u.o.Flusher.Due() || u.o.Pressure.FlushFailed() || u.o.Flusher.Since() > u.o.FlushInterval {
		u.o.Pressure.WantFlush()
	}
}

// ages returns how long a bucket's blocks stay open without writes, without
// writes when they are complete, and at all: as long as points that come on time
// may still belong to them. A block without its last series looks complete.
func (u *Upkeep) ages(resolution int64, height int) (grace, complete, age time.Duration) {
	step := time.Duration(resolution) * time.Millisecond
	grace = max(u.o.HeadGrace, 2*step)
	return grace, max(grace/completePart, step/2),
		max(u.o.HeadMaxAge, time.Duration(height)*step+grace)
}
