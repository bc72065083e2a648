package store

import (
	"context"
	"errors"
	"runtime"
	"time"

	"dalmatiner/internal/head"
)

const (
	// tick is the step of the coarse clock and of the checks behind it.
	tick = 100 * time.Millisecond

	// sealQueueLen bounds the closed blocks that wait for a sealer. A full
	// queue slows senders, who wait for a place in it; 256 blocks are 30 MiB.
	sealQueueLen = 256

	// sealSpread staggers the closing of idle blocks: groups that were filled
	// together would otherwise be sealed in one burst.
	sealSpread = 16 * time.Second

	// flushDelay is for how many seconds flushSoon waits: for as long as sealSpread
	// makes of complete blocks, and a look more.
	flushDelay = 3

	// completePart of these is how long a block stays open that has all its
	// points: for nothing but those that are sent again, which cost little more as
	// late ones. Of senders in step it is less than the next block takes to need its
	// second part of memory.
	completePart = 8
)

// startWorkers starts the sealers, the flusher and the clock. Merges begin when
// the replay is over: only then is it known what is deleted.
func (s *Store) startWorkers() {
	for range runtime.GOMAXPROCS(0) {
		s.sealers.Go(s.sealLoop)
	}
	s.workers.Go(s.flushLoop)
	s.workers.Go(s.tickLoop)
	s.workers.Go(s.reliefLoop)
}

func (s *Store) sealLoop() {
	var sealer head.Sealer
	for g := range s.sealQueue {
		n, ok := sealer.Seal(g)
		if !ok {
			continue
		}
		s.counters.sealed.Add(1)
		if s.sealedBytes.Add(n) > s.o.FlushBytes {
			s.wantFlush()
		}
	}
}

// applied does what a write to a group asks for.
func (s *Store) applied(g *head.Group, a head.Applied) {
	for range a.Closed {
		s.sealQueue <- g
	}
	if a.Late > 0 && s.lateBytes.Add(a.Late) > s.o.LateMemory {
		s.wantFlush()
	}
}

func (s *Store) wantFlush() {
	select {
	case s.flushWant <- struct{}{}:
	default: // one is already asked for
	}
}

func (s *Store) flushLoop() {
	for {
		select {
		case <-s.stop:
			return
		case <-s.flushWant:
			if err := s.flushSealed(); err != nil {
				s.o.Logger.Error("flush failed", "err", err)
				s.makeRoom() // or the replay may have to give up
			}
		}
	}
}

// waitForRoom holds a sender back while twice the flush size is encoded and
// unflushed, the late points exceed twice their memory, or the process is at the
// end of its own: TCP then slows the sender down.
func (s *Store) waitForRoom() {
	if s.full() {
		_ = s.hold(context.Background(), s.full, s.urgent) // what ends it the sender meets next
	}
}

// hold waits while it is full. What ends it sooner is ctx, the end of the store,
// ErrClosed, or with errUrgent that hurry is closed.
func (s *Store) hold(ctx context.Context, full func() bool, urgent <-chan struct{}) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	for {
		room := s.roomMade()
		if err := s.failed(); err != nil || !full() {
			return err
		}
		if !s.flushFailed.Load() { // or it is tried again every second
			s.wantFlush()
		}
		s.counters.waits.Add(1)
		select {
		case <-room:
		case <-urgent:
			return errUrgent
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stop:
			return ErrClosed
		}
	}
}

// errUrgent is for those who wait for room while the node is to end.
var errUrgent = errors.New("the node is to end")

// ReleaseSenders lets the senders go on that are held back until a flush has
// made room, and holds back no more. It is called before they are told to end:
// a disk that takes no segments must not keep the node from ending.
func (s *Store) ReleaseSenders() { s.urgentOnce.Do(func() { close(s.urgent) }) }

// roomMade returns what is closed when there may be room.
func (s *Store) roomMade() <-chan struct{} {
	s.roomMu.Lock()
	defer s.roomMu.Unlock()
	return s.room
}

// makeRoom wakes the senders that wait.
func (s *Store) makeRoom() {
	s.roomMu.Lock()
	defer s.roomMu.Unlock()
	close(s.room)
	s.room = make(chan struct{})
}

func (s *Store) tickLoop() {
	t := time.NewTicker(tick)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-s.stop:
			return
		case <-t.C:
		}
		s.clock.Advance()
		s.checkDisk()
		s.memory.Look()
		if s.waiting.Load() > 0 && !s.full() {
			s.makeRoom()
		}
		if n%10 == 0 {
			s.everySecond()
		}
		s.arenas.GiveBack()
	}
}

// everySecond logs refusals that wait, closes idle, complete, old and log-pinning blocks,
// and asks for the flush that is due by time, by the size of the log, by new series,
// or because the last one failed: senders may wait for it.
func (s *Store) everySecond() {
	s.ledger.LogRefusals()
	s.countNames()
	s.countChunks()
	s.watchIndexes()
	// The blocks that hold the oldest quarter of a full log are closed, so
	// that one slow bucket never pins it.
	var pinned uint64
	if size := s.log.Size(); size > s.o.WALMaxSize {
		pinned = uint64(s.log.End()) - uint64(s.o.WALMaxSize)*3/4
		defer s.wantFlush()
	}
	nanos := s.clock.Steady()
	for _, b := range s.buckets.All() {
		grace, complete, age := s.o.blockAges(b.Resolution, b.Height)
		for _, g := range b.Groups() {
			spread := int64(sealSpread) * int64(g.ID%16) / 16
			closed := g.CloseBlocks(func(firstLSN uint64, opened, lastWrite int64) bool {
				return nanos-lastWrite > int64(grace)+spread || nanos-opened > int64(age)+spread || firstLSN < pinned
			})
			closed += g.CloseComplete(nanos - int64(complete) - spread/completePart)
			s.applied(g, head.Applied{Closed: closed})
		}
	}
	if s.flushSoon() || s.flushFailed.Load() || nanos-s.lastFlush.Load() > int64(s.o.FlushInterval) {
		s.wantFlush()
	}
}

// flushSoon reports whether a flush is due by size before it must be: the blocks of
// senders in step are sealed together, and behind them there is more memory for it.
// A flood of new series takes as much until they are named as points until they are
// flushed.
func (s *Store) flushSoon() bool {
	due := s.sealedBytes.Load() + s.columns.Unflushed.Need()
	if due <= s.o.FlushBytes/4*3 {
		s.dueFor.Store(0)
		return false
	}
	if s.dueFor.Add(1) <= flushDelay || due <= s.o.FlushBytes && !s.flushesRarely() || !s.flushMu.TryLock() {
		return false // what a flush under way takes counts until its end
	}
	s.flushMu.Unlock()
	return true
}

// freeSpace returns the free bytes of the disk. A file system that cannot say is
// taken at its word: a write will fail.
func (s *Store) freeSpace() (free int64, known bool) {
	u, err := s.o.FS.GetDiskUsage(s.o.Dir)
	return int64(u.AvailBytes), err == nil
}

// checkDisk refuses points before the disk is full, or too full for the next
// flush, and takes them again when there is space. It is called every tick: a
// fast sender writes a small storage.min_free full in less than a second.
func (s *Store) checkDisk() {
	free, known := s.freeSpace()
	need := max(s.o.MinFree, s.flushNeeds())
	full := s.unwritten.Load()
	if known {
		s.freeDisk.Store(free)
		full = full || free < need
	}
	if s.diskFull.Swap(full) != full {
		if full {
			s.o.Logger.Warn("points are refused: the disk is nearly full", "free", free,
				"storage.min_free", s.o.MinFree, "for the next flush", need)
			s.makeRoom() // who waits for a flush is refused
		} else {
			s.o.Logger.Info("points are taken again: the disk has space", "free", free)
		}
	}
}
