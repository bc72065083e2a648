package tagstore

import (
	"iter"
	"math"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/mirror"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/logrecord"
	"dalmatiner/internal/write/series"
)

// Take takes the records that no flush has taken, as flush.Side has it.
func (s *Store) Take(end wal.LSN) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken, s.pending = s.pending, records{}
	s.end = uint64(end)
}

// Write writes what was taken into a file.
func (s *Store) Write(seq uint64, e *manifest.FileChanges) error {
	if len(s.taken.list) == 0 {
		return nil
	}
	w, err := mirror.Create(s.o.FS, s.o.Dir, s.o.Of(), manifest.File{
		Kind: manifest.TagChanges,
		Seq:  seq,
		From: min(s.past, s.end),
		Past: s.end,
	})
	if err != nil {
		return err
	}
	for _, rec := range s.taken.list {
		if err := w.Add(rec.bytes, rec.entries); err != nil {
			_ = w.Abort() // the file is given up; a leftover is removed at the next start
			return err
		}
	}
	f, err := w.Finish()
	if err != nil {
		return err
	}
	s.written = &f
	e.Add = append(e.Add, f)
	return nil
}

// Committed notes that what was written counts.
func (s *Store) Committed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written != nil {
		s.files = append(s.files, *s.written)
		s.past = max(s.past, s.written.Past)
	}
	s.taken, s.written = records{}, nil
	s.counters.unflushed.Store(s.pending.bytes)
	if s.torn || s.due() {
		s.wantMerge()
	}
}

// PutBack gives back what was taken.
func (s *Store) PutBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written != nil {
		if err := mirror.Remove(s.o.FS, s.o.Dir, s.written.Name()); err != nil {
			s.o.Logger.Warn("a file of tags that does not count stays until the next start", "number",
				s.written.Seq, "err", err)
		}
	}
	s.taken.list = append(s.taken.list, s.pending.list...)
	s.taken.bytes += s.pending.bytes
	s.pending, s.taken, s.written = s.taken, records{}, nil
}

// Unflushed returns the bytes of records that no flush has committed.
func (s *Store) Unflushed() int64 { return s.counters.unflushed.Load() }

// Replay takes a record of the log, as replay.Side has it.
func (s *Store) Replay(lsn wal.LSN, r *logrecord.Record) error {
	<-s.loaded
	if uint64(lsn) < s.from {
		return nil
	}
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Kind {
	case logrecord.Tags:
		n := 0
		err := r.EachChange(func(c *tags.Change) error {
			s.clock = max(s.clock, c.Clock)
			s.apply(c)
			n++
			return nil
		})
		s.add(append(logrecord.AppendTags(nil, r.Bucket), r.Changes...), n)
		return err
	case logrecord.SeriesDeleted:
		s.drop(r.Bucket, r.Why, r.Incarnation, seriesOf(r))
	}
	return nil
}

func seriesOf(r *logrecord.Record) iter.Seq[metric.SeriesID] {
	return func(yield func(metric.SeriesID) bool) {
		for _, id := range r.DeletedSeries() {
			if !yield(id) {
				return
			}
		}
	}
}

// dropsPerRecord bounds the series of one record.
const dropsPerRecord = 4096

// upTo returns the clock up to which tags go with their series. Those of series that other nodes
// have from then on stay, and in a cluster those of expired ones: other nodes may have points of
// them.
func (o *Options) upTo(why logrecord.Reason, incarnation uint64) (clock uint64, ok bool) {
	switch why {
	case logrecord.Deleted:
		return incarnation, true
	case logrecord.Expired:
		return math.MaxUint64, !o.Shared
	}
	return 0, false
}

// drop takes series out of the index, and notes those that were in it for the next flush, which it
// returns. The lock is held.
func (s *Store) drop(bucket uint64, why logrecord.Reason, incarnation uint64,
	list iter.Seq[metric.SeriesID]) (had []metric.SeriesID) {
	clock, ok := s.o.upTo(why, incarnation)
	if !ok {
		return nil
	}
	var rec []byte
	n := 0
	for id := range list {
		if s.index.Drop(bucket, id, clock) == 0 {
			continue
		}
		had = append(had, id)
		if n == 0 {
			rec = logrecord.AppendSeriesDeleted(nil, bucket, series.None.Group(), why, incarnation)
		}
		rec = logrecord.AppendDeleted(rec, series.None.Column(), id)
		if n++; n == dropsPerRecord {
			s.add(rec, n)
			n = 0
		}
	}
	if n > 0 {
		s.add(rec, n)
	}
	return had
}
