package replay

import (
	"errors"
	"math"
	"runtime"
	"time"

	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/write/logrecord"
)

const (
	// roundBytes is how much of the log is read before it is applied: some rows
	// of every group of a large node, so that a group is in the cache for all of
	// them, and little beside the blocks that they fill.
	roundBytes = 16 << 20

	// roundPart of what makes a flush is a round, at most: some of them fill the
	// blocks that a flush takes, and it can put up with less memory.
	roundPart = 4

	// fewRecords are applied by the reader itself: to wake somebody takes longer.
	fewRecords = 16
)

// secondReading puts the points of the log into the head, in rounds: while one is applied
// the next one is read.
type secondReading struct {
	r                 *replayer
	reading, applying *round
	size              int // of a round
	appliers          []*applier
}

func newSecondReading(r *replayer) *secondReading {
	s := &secondReading{
		r: r, reading: newRound(), applying: newRound(),
		size: int(min(roundBytes, r.o.FlushBytes/roundPart)),
	}
	for range runtime.GOMAXPROCS(0) {
		s.appliers = append(s.appliers, newApplier(r.target))
	}
	return s
}

// run reads the log.
func (s *secondReading) run() error {
	r, start := s.r, time.Now()
	if r.o.Hold != nil {
		select {
		case <-r.o.Hold:
		case <-r.o.Stop:
		}
	}
	err := r.o.Log.ReplayAgain(wal.LSN(r.from), s.record)
	if err == nil {
		err = s.turn()
	}
	if err = errors.Join(err, s.finishRound()); err == nil {
		err = r.hideGoneBelow(math.MaxUint64)
	}
	if err != nil {
		return err
	}
	r.o.Logger.Info("the log is in memory", "took", time.Since(start).Round(time.Millisecond))
	return nil
}

func (s *secondReading) record(lsn wal.LSN, rec []byte) error {
	r := s.r
	if r.stopping() {
		return version.ErrClosed
	}
	if err := r.o.Pressure.Failure(); err != nil {
		return err // the node is to end, and its end waits for the replay
	}
	q := s.reading
	if logrecord.HoldsPoints(rec) {
		p, err := logrecord.Parse(rec)
		if err != nil {
			return nil // named by the first reading
		}
		b, l := r.o.Buckets.ID(p.Bucket), r.pending.of(p.Group)
		if b != nil && l != nil && !l.empty.Load() {
			r.p.bytes.Add(q.add(uint64(lsn), b, l, &p))
		}
	}
	q.end = uint64(lsn) + 1
	if q.size() >= s.size {
		return s.turn()
	}
	return nil
}

// turn hands the round that was read to the appliers and begins the next one.
func (s *secondReading) turn() error {
	if err := s.finishRound(); err != nil {
		return err
	}
	s.reading, s.applying = s.applying, s.reading
	q := s.applying
	s.reading.end = q.end
	if len(q.runs) < fewRecords {
		s.apply(s.appliers[0], q)
		return nil
	}
	for _, a := range s.appliers {
		q.applied.Go(func() { s.apply(a, q) })
	}
	return nil
}

// apply applies chains of a round until all are taken.
func (s *secondReading) apply(a *applier, q *round) {
	for q.failure.Load() == nil {
		i := int(q.taken.Add(1)) - 1
		if i >= len(q.chains) {
			return
		}
		if err := s.r.chain(a, q, q.chains[i]); err != nil {
			q.failure.Store(&err)
		}
	}
}

// finishRound waits until the round under way is in the head. A flush in the middle of
// a replay takes for its replay position what was in the head when it began. After an error, that
// of what was not applied, no further round may follow.
func (s *secondReading) finishRound() error {
	q := s.applying
	q.applied.Wait()
	if err := q.failure.Load(); err != nil {
		return *err
	}
	// no flush may take its replay position behind them
	if err := s.r.hideGoneBelow(q.end); err != nil {
		return err
	}
	s.r.p.raise(q.end)
	q.reset()
	return nil
}
