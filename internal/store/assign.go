package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/head"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/series"
	"dalmatiner/internal/wal"
)

// minReuse is how many columns of a group must be silent before they are given
// to other series: a sender whose new series were scattered over single columns
// of many groups would pay a lock and a log record for each point. So at most an
// eighth of the columns of a group that is in use lies idle for good.
const minReuse = head.Width / 8

// silentGroup is a group with columns that others may get.
type silentGroup struct {
	g *head.Group
	n int
}

var errNoMemory = errors.New("there is no memory for new series; raise memory.limit")
var errDiskFull = errors.New("the disk is nearly full")

// errReplaying is for senders that cannot be made to wait.
var errReplaying = errors.New("new series wait until the log is in memory")

// errSameHash is for a name of which another one has the hash, which chance does
// not make. The first name keeps it.
var errSameHash = errors.New("another series has the same hash")

var errSeriesLimit = fmt.Errorf("the node holds %d groups of series, which is the limit", series.MaxGroups)

// assign returns the column of a series, which it creates when there is none and
// gives a column when it has none. The group is nil when the bucket was deleted.
func (x *Session) assign(key []byte) (position, error) {
	s := x.s
	id := x.b.seriesID(key)
	ref, known := s.index.Lookup(id)
	for {
		if known && !ref.Inactive() {
			g := s.groups.Get(ref.Group())
			if g == nil {
				return position{}, nil
			}
			if cols := g.Columns(); cols.Is(ref.Column(), key) {
				return position{g, cols, ref.Column()}, nil
			}
			// Its column is taken at this moment: create waits until that is done.
		}
		var err error
		if ref, err = x.create(id, key); err != nil {
			return position{}, err
		}
		known = true
	}
}

func (x *Session) notAssigned(err error, n uint64) {
	switch {
	case errors.Is(err, buckets.ErrUnknown):
		x.refuse(account.BucketDeleted, n)
	case errors.Is(err, errSeriesLimit):
		x.refuse(account.SeriesLimit, n)
	case errors.Is(err, errNoMemory):
		x.refuse(account.Memory, n)
	case errors.Is(err, errDiskFull):
		x.refuse(account.DiskFull, n)
	case errors.Is(err, errSameHash):
		x.refuse(account.SameHash, n)
	case errors.Is(err, errReplaying):
		x.refuse(account.Overload, n)
	default:
		x.err = err
	}
}

// create gives a series a column that has none, be it new or inactive: first in
// the log, then where others find it.
func (x *Session) create(id metric.SeriesID, key []byte) (series.Ref, error) {
	s, b := x.s, x.b
	if s.diskFull.Load() {
		return 0, errDiskFull
	}
	if x.neverWait && s.behind.Load() != nil {
		return 0, errReplaying
	}
	if err := s.awaitReplay(context.Background()); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return 0, buckets.ErrUnknown
	}
	ref, known := s.index.Lookup(id)
	if known && !ref.Inactive() {
		if g := s.groups.Get(ref.Group()); g != nil && !g.Columns().Is(ref.Column(), key) {
			return 0, errSameHash
		}
		return ref, nil // another session was faster
	}
	if known && !b.inactive.Is(ref, key) {
		return 0, errSameHash
	}
	if !known && s.nameStock.Full() {
		return 0, errNoMemory // at once: a flood must not search for a place with each of its points
	}
	g, col, err := x.freeColumn(known)
	if err != nil {
		return 0, err
	}
	taken := int64(0)
	if !known {
		var ok bool
		if taken, ok = s.takeName(g, &id, key); !ok {
			return 0, errNoMemory
		}
	}
	s.commit.RLock()
	defer s.commit.RUnlock()
	x.rec = logrecord.AppendSeries(x.rec[:0], b.info.ID, g.ID, col, b.incarnations.Of(id), key)
	lsn, err := s.log.Append(x.rec)
	if err != nil {
		s.nameStock.Add(-taken)
		return 0, err
	}
	x.lastLSN, x.fillCol = lsn, col+x.width-1
	s.define(b, g, col, id, key, lsn, ref, known)
	return series.At(g.ID, col), nil
}

// freeColumn returns a free column, behind the one that this session took last
// where it can. A known series gets a group even where there is no memory for new
// ones. The bucket's lock is held.
func (x *Session) freeColumn(known bool) (*head.Group, int, error) {
	if x.fill != nil {
		if col, ok := x.fill.Columns().Free(x.fillCol); ok {
			return x.fill, col, nil
		}
	}
	g, err := x.s.groupToFill(x.b, known)
	if err != nil {
		return nil, 0, err
	}
	x.fill = g
	col, _ := g.Columns().Free(-1)
	return g, col, nil
}

// groupToFill returns a group with a free column for one session alone: one that
// is not full, else one of whose series many are silent, else a new one, for which
// there has to be memory unless it is for a known series. The bucket's lock is held.
func (s *Store) groupToFill(b *bucket, known bool) (*head.Group, error) {
	for n := len(b.partial); n > 0; n = len(b.partial) {
		g := b.partial[n-1]
		b.partial = b.partial[:n-1]
		if g.Columns().Bound() < head.Width {
			return g, nil
		}
	}
	for n := len(b.silent); n > 0; n = len(b.silent) {
		g := b.silent[n-1].g
		b.silent = b.silent[:n-1]
		if s.park(b, g); head.Width-g.Columns().Bound() >= minReuse {
			return g, nil
		}
	}
	if known {
		s.nameStock.Add(groupCost)
	} else if !s.nameStock.Take(groupCost, 0) {
		return nil, errNoMemory
	}
	id, ok := s.groups.Reserve()
	if !ok {
		s.nameStock.Add(-groupCost)
		return nil, errSeriesLimit
	}
	g := head.NewGroup(id, b.info.ID, b.height, b.arena)
	s.groups.Put(g)
	b.groups = append(b.groups, g)
	return g, nil
}

// define gives a column to a series and enters it into the index and the list of
// those whose name or column no committed segment has yet. lsn is the position
// of the definition in the log, old what the index says of the series if it is
// known. The bucket's lock is held.
func (s *Store) define(b *bucket, g *head.Group, col int, id metric.SeriesID, key []byte, lsn wal.LSN, old series.Ref, known bool) {
	ref := series.At(g.ID, col)
	b.bind(g, col, key, id, uint64(lsn), s.clock.Steady())
	s.index.Define(id, ref)
	if !known {
		b.series++
	} else if old.Inactive() {
		old = b.inactive.Remove(old)
	}
	var left *segment.Series
	if known {
		p := placed(b, old, id)
		left = &p
	}
	s.addPending(b, ref, id, g.Columns().Key(col), lsn, left)
}

// addPending makes the next flush name a series and its column. left is the place
// that it had before, if any.
func (s *Store) addPending(b *bucket, ref series.Ref, id metric.SeriesID, key []byte, lsn wal.LSN, left *segment.Series) {
	p := placed(b, ref, id)
	s.pendMu.Lock()
	delete(s.nameless, formerPlace{b.info.ID, ref, id})
	s.pendMu.Unlock()
	p.Key, p.Since, p.Incarnation = key, uint64(lsn), b.incarnations.Of(id)
	s.change(catalogue.Change{Series: p, Left: left})
}

// change adds to what the next flush tells the catalogue.
func (s *Store) change(c catalogue.Change) {
	s.unnamed.Add(namingNeed(c))
	s.pendMu.Lock()
	defer s.pendMu.Unlock()
	if len(s.pending) == cap(s.pending) {
		s.pending = slices.Grow(s.pending, len(s.pending)+1) // a start on a long log adds millions
	}
	s.pending = append(s.pending, c)
}

// formerPlace is the column that a deleted series had.
type formerPlace struct {
	bucket uint64
	ref    series.Ref
	id     metric.SeriesID
}

// dropNameless takes places out of the catalogue whose former series no replay
// meets any more. pendMu is held.
func (s *Store) dropNameless() {
	var stale []catalogue.Change
	for p, since := range s.nameless {
		if since <= s.needed.Load() {
			delete(s.nameless, p)
			stale = append(stale, catalogue.Change{Nothing: true, Left: &segment.Series{
				Bucket: p.bucket, Hash: segment.Hash(p.id), Group: p.ref.Group(), Column: uint16(p.ref.Column())}})
		}
	}
	if len(stale) > 0 { // else it would be copied for nothing
		s.pending = append(stale, s.pending...)
		s.unnamed.Add(namingNeed(stale...))
	}
}

// named reports whether a change gives a series a column, which a segment has to
// say, too.
func named(c catalogue.Change) bool { return len(c.Series.Key) > 0 }

// placed is the identity of a series without its name.
func placed(b *bucket, ref series.Ref, id metric.SeriesID) segment.Series {
	return segment.Series{Bucket: b.info.ID, Hash: segment.Hash(id), Group: ref.Group(), Column: uint16(ref.Column())}
}

// silence is how long a series of the bucket sends nothing before others may get
// its column: the time of two blocks.
func (b *bucket) silence() time.Duration {
	return 2 * time.Duration(b.height) * time.Duration(b.info.Resolution) * time.Millisecond
}

// park takes the columns of silent series of a group. The bucket's lock is held.
func (s *Store) park(b *bucket, g *head.Group) {
	g.Deactivate(s.clock.Steady()-int64(b.silence()), b.width(), func(col int, key []byte, id metric.SeriesID) {
		s.deactivate(b, series.At(g.ID, col), key, id)
		s.counters.deactivated.Add(1)
	})
}

// deactivate keeps the name of a series that has no column any more: left is the
// one it had, which is free or another's. The bucket's lock is held.
func (s *Store) deactivate(b *bucket, left series.Ref, key []byte, id metric.SeriesID) {
	s.index.Define(id, b.inactive.Add(key, left))
}

// noteSilent lists the groups of which columns can be given to other series,
// those with the most last, after a flush was committed.
func (s *Store) noteSilent(f *flushing) {
	for _, b := range s.buckets.All() {
		before := s.clock.Steady() - int64(b.silence())
		b.mu.Lock()
		b.silent = b.silent[:0]
		for _, g := range b.groups {
			if n := g.Committed(f.replayPositions.of(g.ID), before); n >= minReuse {
				b.silent = append(b.silent, silentGroup{g, n})
			}
		}
		slices.SortStableFunc(b.silent, func(x, y silentGroup) int { return x.n - y.n })
		b.mu.Unlock()
	}
}
