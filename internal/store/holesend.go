package store

import (
	"context"
	"errors"

	"dalmatiner/internal/hole"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/reader"
)

// maxHoleSlots is how many slots one look for holes that have ended reads: some tenths
// of a second. What is left over stays a hole until it needs less, or its lifetime passes.
const maxHoleSlots = 16 << 20

// endHoles ends the holes that hide nothing any more: whose living slots are all set in
// segments at or above them, for every series that they are about, or whose series are all
// gone. What is in the head does not count: it may not be on disk. mergeMu is held.
func (s *Store) endHoles(ctx context.Context) error {
	if s.namesUnread || s.failed() != nil {
		return nil // a series may be one that nobody knows
	}
	ended := s.outlivedHoles()
	left := maxHoleSlots
	for _, b := range s.buckets.All() {
		set := s.holesOf(b.info.ID)
		if set == nil {
			continue
		}
		open, err := s.openHoles(ctx, b, set, &left)
		if err != nil {
			return err
		}
		for _, h := range set.Holes() {
			if !open[h] {
				ended = append(ended, h)
			}
		}
	}
	if len(ended) == 0 {
		return nil
	}
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if s.flushMu.Closed() {
		return ErrClosed
	}
	if err := s.commitEdit(manifest.Edit{EndHoles: ended}); err != nil {
		return err
	}
	s.versions.Publish(s.showHoles)
	return nil
}

// openHoles returns the holes of a bucket of which a slot is still unknown, or which were
// not looked through.
func (s *Store) openHoles(ctx context.Context, b *bucket, set *hole.Set, left *int) (map[hole.Hole]bool, error) {
	open := make(map[hole.Hole]bool)
	lo, _ := s.admitted(b)
	look := func(key []byte) error {
		id := b.seriesID(key)
		p := prefixOf(id)
		for _, h := range set.Holes() {
			if open[h] || p < h.Low || h.High < p {
				continue
			}
			from := max(h.From, int64(lo))
			if h.Past-from > int64(*left) {
				open[h] = true
				continue
			}
			*left -= int(max(h.Past-from, 0))
			unknown, err := s.reader.AnyUnknown(ctx, reader.Series{Bucket: b.info.ID, ID: id}, from, h.Past)
			if err != nil {
				return err
			}
			open[h] = unknown
		}
		return nil
	}
	columns, names := b.names()
	var errs []error
	for _, cols := range columns {
		for col := 0; col < cols.Len() && ctx.Err() == nil; col += b.width() {
			if cols.Has(col) {
				errs = append(errs, look(cols.Key(col)))
			}
		}
	}
	names.Each(func(key []byte) bool {
		errs = append(errs, look(key))
		return ctx.Err() == nil
	})
	return open, errors.Join(append(errs, ctx.Err())...)
}
