package store

import (
	"time"

	"dalmatiner/internal/head"
)

const (
	// tick is the step of the coarse clock and of the checks behind it.
	tick = 100 * time.Millisecond

	// sealSpread staggers the closing of idle blocks: groups that were filled
	// together would otherwise be sealed in one burst.
	sealSpread = 16 * time.Second

	// completePart of these is how long a block stays open that has all its
	// points: for nothing but those that are sent again, which cost little more as
	// late ones. Of senders in step it is less than the next block takes to need its
	// second part of memory.
	completePart = 8
)

// startWorkers starts the sealers, the flusher and the clock. Merges begin when
// the replay is over: only then is it known what is deleted.
func (s *Store) startWorkers() {
	s.sealers.Start()
	s.workers.Go(s.flushLoop)
	s.workers.Go(s.tickLoop)
	s.workers.Go(s.reliefLoop)
}

func (s *Store) flushLoop() {
	for {
		select {
		case <-s.stop:
			return
		case <-s.pressure.FlushWanted():
			if err := s.flusher.Sealed(); err != nil {
				s.o.Logger.Error("flush failed", "err", err)
				s.pressure.MakeRoom() // or the replay may have to give up
			}
		}
	}
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
		s.pressure.CheckDisk()
		s.memory.Look()
		s.pressure.MakeRoomIfFree()
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
	s.flusher.Count()
	s.watchIndexes()
	// The blocks that hold the oldest quarter of a full log are closed, so
	// that one slow bucket never pins it.
	var pinned uint64
	if size := s.log.Size(); size > s.o.WALMaxSize {
		pinned = uint64(s.log.End()) - uint64(s.o.WALMaxSize)*3/4
		defer s.pressure.WantFlush()
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
			s.sealers.Applied(g, head.Applied{Closed: closed})
		}
	}
	if s.flusher.Due() || s.pressure.FlushFailed() || s.flusher.Since() > s.o.FlushInterval {
		s.pressure.WantFlush()
	}
}
