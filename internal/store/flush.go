package store

import (
	"context"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/flush"
)

// Flush seals every block and flushes: afterwards all points received before
// the call are in segments. After Close the error is ErrClosed.
func (s *Store) Flush(ctx context.Context) (flush.Result, error) {
	if err := s.replay.All(ctx); err != nil {
		return flush.Result{}, err
	}
	return s.flusher.All(ctx)
}

// newFlusher returns what flushes. All files are open.
func (s *Store) newFlusher(ownerless, lost *flush.Losses) *flush.Flusher {
	return flush.New(flush.Options{
		Logger: s.o.Logger, Clock: s.clock, Now: s.o.Now,
		Log: s.disk.Log, Ledger: s.ledger, Manifest: s.disk.Manifest, Catalogue: s.disk.Catalogue,
		Damage:  &s.damage,
		Columns: s.columns, Buckets: s.buckets, Arenas: &s.arenas, Versions: s.versions, Dir: s.dir,
		Pressure: s.pressure, Sealers: s.sealers,
		Sides:      []flush.Side{s.tags, events.Side{Local: s.events}},
		HeadEnd:    func() (wal.LSN, bool) { return s.replay.HeadEnd() },
		AccountEnd: func() wal.LSN { return s.replay.AccountEnd() },
		Ownerless:  ownerless, Lost: lost,
		Sizes: flush.Sizes{FlushBytes: s.o.FlushBytes,
			ShareSize: s.o.Memory.Share(flushSharePart, flush.DefaultShareSize)},
		MaxDeletions: func() int64 {
			return s.o.maxTombstones
		},
		Step: func(step int) {
			s.o.flushStep(step)
		}, Took: s.o.FlushTook, Committed: func() { s.merges.Want() },
	})
}
