package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"dalmatiner/internal/backpressure"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/wal"
)

// errNoRoom ends the replay of a log whose points do not fit into memory while
// the node is to end and no flush makes room.
var errNoRoom = errors.New("not all of the log came into memory, because no flush makes room; nothing is lost: the log keeps its points for the next start")

// stopping reports whether the store is being closed.
func (r *replayer) stopping() bool {
	select {
	case <-r.s.stop:
		return true
	default:
		return false
	}
}

// full reports whether points of the log have to wait for a flush. They do on a
// full disk as well, where senders are refused: a log may hold more than there is
// memory for.
func (r *replayer) full() bool { return r.s.pressure.Full() || r.s.pressure.Pressed() }

// awaitRoom holds back who replays something, as waitForRoom does a sender. It goes
// on while the node is to end, as long as flushes make room: what is not in memory
// by then stays in the log.
func (r *replayer) awaitRoom(ctx context.Context) error {
	switch {
	case r.stopping():
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case !r.full():
		return nil
	}
	s := r.s
	err := s.pressure.Hold(ctx, r.full, true)
	if !errors.Is(err, backpressure.ErrUrgent) {
		return err
	}
	if err = s.pressure.Hold(ctx, func() bool { return r.full() && !s.pressure.FlushFailed() }, false); err == nil && r.full() {
		err = errNoRoom
	}
	return err
}

// stop waits for those who replay something. The store is being closed: nobody
// begins behind them.
func (r *replayer) stop() {
	r.gate.Lock()
	defer r.gate.Unlock()
}

// finish reads the log for the second time and puts its points into the head,
// while the store is in use.
func (r *replayer) finish() {
	s := r.s
	if err := r.readAgain(); err != nil {
		if errors.Is(err, ErrClosed) {
			return
		}
		s.replayErr = fmt.Errorf("replaying the log: %w", err)
		if !errors.Is(err, errNoRoom) {
			s.pressure.Fail(s.replayErr)
		}
		close(s.replayOver)
		return
	}
	for _, l := range r.records {
		if l != nil {
			l.mu.Lock()
			r.finishGroup(l)
			l.mu.Unlock()
		}
	}
	s.behind.Store(nil)
	s.replayed.Store(0)
	s.replayBytes.Store(0)
	r.flushLosses()
	r.dropGoneNames()
	close(s.replayOver)
	if s.o.BackgroundMerge {
		s.workers.Go(func() { s.merges.Run(s.stop) })
	}
}

// flushLosses flushes everything where points of no series were counted as lost:
// with their records below the replay positions no start counts them again, and what is given
// one of their columns from now on makes no difference.
func (r *replayer) flushLosses() {
	s := r.s
	if !s.ownerless.Any() && !s.lostLog.Any() {
		return
	}
	if _, err := s.flusher.All(context.Background()); err != nil && !errors.Is(err, ErrClosed) {
		s.o.Logger.Warn("the flush behind a replay with losses failed and is tried again", "err", err)
	}
}

// dropGoneNames lets go of the names that a rebuilt catalogue has of series of which
// nothing is left: what segments name may have gone before the catalogue was lost.
// The flush brings the log behind them: a series with records in it stays.
func (r *replayer) dropGoneNames() {
	s := r.s
	if !r.owners.Rebuilt {
		return
	}
	ctx := context.Background()
	_, err := s.flusher.All(ctx)
	if err == nil {
		err = s.merges.DropIdle(ctx)
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		s.o.Logger.Warn("names of series of which nothing is left stay until the next merge", "err", err)
	}
}

// readAgain is the second reading, if there is anything to be read.
func (r *replayer) readAgain() error {
	if len(r.records) == 0 {
		return nil
	}
	start := time.Now()
	if r.s.o.holdReplay != nil {
		select {
		case <-r.s.o.holdReplay:
		case <-r.s.stop:
		}
	}
	err := r.s.log.Again(wal.LSN(r.from), r.point)
	if err == nil {
		err = r.turn()
	}
	if err = errors.Join(err, r.finishRound()); err == nil {
		err = r.hideGoneBelow(math.MaxUint64)
	}
	if err != nil {
		return err
	}
	r.s.o.Logger.Info("the log is in memory", "took", time.Since(start).Round(time.Millisecond))
	return nil
}

// point takes a record of the second reading.
func (r *replayer) point(lsn wal.LSN, rec []byte) error {
	if r.stopping() {
		return ErrClosed
	}
	if err := r.s.pressure.Failed(); err != nil {
		return err // the node is to end, and its end waits for the replay
	}
	q := r.reading
	if logrecord.Kind(rec[0]).Points() {
		p, err := logrecord.Parse(rec)
		if err != nil {
			return nil // named by the first reading
		}
		b, l := r.s.buckets.ID(p.Bucket), r.recordsOf(p.Group)
		if b != nil && l != nil && !l.empty.Load() {
			r.hold(q.add(uint64(lsn), b, l, &p))
		}
	}
	q.end = uint64(lsn) + 1
	if q.size() >= r.roundSize {
		return r.turn()
	}
	return nil
}

// replayLeft returns how much of the log is still to be read into the head.
func (s *Store) replayLeft() int64 {
	if lsn := s.replayed.Load(); lsn != 0 {
		return int64(s.replayEnd) - int64(lsn)
	}
	return 0
}

// awaitReplay waits until all of the log is in the head. Whatever gives a column
// to a series or takes one away, and whatever is to find everything in the head,
// waits here first, with no lock held.
func (s *Store) awaitReplay(ctx context.Context) error {
	select {
	case <-s.replayOver:
		if err := s.pressure.Failed(); err != nil {
			return err
		}
		return s.replayErr
	case <-s.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
