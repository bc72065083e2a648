package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/account"
	"dalmatiner/internal/head"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
	"dalmatiner/internal/wal"
)

// LostRecord is the account's cause for points in log records whose series is
// unknown because damage took its definition.
const LostRecord = "log_record_without_series"

// replayer applies the log on top of what the last flush left.
type replayer struct {
	none ages // of a group whose series have their columns since before the replay
	*bindings
	state *manifest.State
	words []uint64
	lost  uint64

	// deleted are the tombstones of the log, which nobody looks at before the
	// replay is over: to show those of each record at once would take hours for a
	// deletion of many series.
	deleted map[*bucket][]tombstone
}

// replay brings the head and the account to where the log ends.
func (s *Store) replay(state *manifest.State, known *bindings) error {
	r := replayer{bindings: known, state: state, deleted: make(map[*bucket][]tombstone)}
	s.accounted = wal.LSN(state.AccountLSN)
	s.replayed.Store(max(r.from, 1))
	s.needed.Store(r.from)
	s.startWorkers()
	report, err := s.log.Replay(wal.LSN(r.from), r.record)
	s.replayed.Store(0)
	if err != nil {
		return fmt.Errorf("replaying the log: %w", err)
	}
	for _, p := range report.Damaged {
		s.reportDamage("log", errors.New(p.String()))
	}
	for _, g := range report.Missing {
		s.reportDamage("log", errors.New(g.String()))
	}
	if r.lost > 0 {
		s.account.Lose(LostRecord, r.lost)
	}
	s.counters.replayed.Store(report.Records)
	for b, list := range r.deleted {
		b.bury(b.tombs().with(list))
	}
	if s.o.BackgroundMerge {
		s.workers.Go(s.mergeLoop)
	}
	for _, b := range s.buckets.all() {
		for _, g := range b.groups {
			if g.Columns().Bound() < head.Width {
				b.partial = append(b.partial, g)
			}
		}
	}
	return nil
}

func (r *replayer) record(lsn wal.LSN, rec []byte) error {
	p, err := parseRecord(rec)
	if err != nil {
		r.s.reportDamage(fmt.Sprintf("log record at %d", lsn), err)
		return nil
	}
	switch p.kind {
	case recBucket:
		r.bucket(p.info)
	case recDelete:
		r.delete(p.bucket)
	case recTTL:
		if b := r.s.buckets.id(p.bucket); b != nil {
			b.ttl.Store(p.ttl)
		}
	case recDefine:
		return r.define(lsn, p)
	case recForget:
		r.forget(lsn, &p)
	case recRow, recColumn:
		r.data(lsn, p)
	}
	r.count(lsn, &p)
	return nil
}

// count adds the account row of a record from the snapshot on. A flush takes
// the account and the position it stands for in one moment, and a record is
// behind that position only when its points are in the head: a crash after a
// flush in the middle of a replay neither loses the rest of the log nor counts
// it twice.
func (r *replayer) count(lsn wal.LSN, p *record) {
	s := r.s
	s.commit.RLock()
	defer s.commit.RUnlock()
	if uint64(lsn) >= r.state.AccountLSN && (p.kind == recRow || p.kind == recColumn || p.kind == recRefuse) {
		s.account.Add(s.accountID(p.bucket), p.minute, &p.counts)
	}
	s.replayed.Store(uint64(lsn) + 1)
}

func (r *replayer) bucket(info BucketInfo) {
	s := r.s
	deleted := slices.Contains(r.state.DeletedBuckets, info.ID)
	if !deleted && s.buckets.id(info.ID) == nil && s.buckets.get(info.Name) == nil {
		s.buckets.add(s.newBucket(info))
	}
}

func (r *replayer) delete(id uint32) {
	b := r.s.buckets.id(id)
	if b == nil {
		return
	}
	b.mu.Lock()
	r.s.forgetBucket(b)
	b.mu.Unlock()
	r.s.dropGroups(b)
}

// define does again what gave a column to a series. What the catalogue knows may
// be older or newer than the record.
func (r *replayer) define(lsn wal.LSN, p record) error {
	s := r.s
	b := s.buckets.id(p.bucket)
	if b == nil {
		return nil
	}
	id, ref := b.seriesID(p.key), makeRef(p.group, p.column)
	if since, ok := r.series[id]; ok && since >= uint64(lsn) {
		// The catalogue may be ahead of the commit that was to bring the segment
		// with the name.
		if since == uint64(lsn) && since >= r.state.AccountLSN {
			s.addPending(b, ref, id, bytes.Clone(p.key), lsn, nil)
		}
		return nil
	}
	if r.gone(b, id, lsn) {
		return nil
	}
	if err := r.empty(id, ref); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	g, err := s.restoreGroup(b, p.group)
	if err != nil {
		s.reportDamage("log", err)
		return nil
	}
	r.series[id] = uint64(lsn)
	old, known := s.index.get(id)
	if r.since(ref) > uint64(lsn) {
		if !known { // the catalogue knows whose the column became, and lost who had it
			b.series++
			s.parkName(b, ref, p.key, id)
		}
		return nil
	}
	if known && !old.parked() {
		s.groups.get(old.group()).Release(old.column(), b.width())
	}
	if g.Columns().Has(p.column) {
		r.evict(b, g, p.column)
	}
	s.define(b, g, p.column, id, p.key, lsn)
	r.note(b, ref, uint64(lsn))
	return nil
}

// empty makes sure that the head holds nothing of the column that a series left
// nor of the one that it gets from another: the points of either must not become
// those of the other. A column changes hands only below the floor of its group,
// so there is something to flush only when a damaged MANIFEST has lost floors.
func (r *replayer) empty(id metric.SeriesID, ref seriesRef) error {
	places := []seriesRef{ref}
	if old, ok := r.s.index.get(id); ok && !old.parked() {
		places = append(places, old)
	}
	for _, p := range places {
		if g := r.s.groups.get(p.group()); g != nil && g.Columns().Has(p.column()) && holds(g, p.column()) {
			_, err := r.s.Flush(context.Background())
			return err
		}
	}
	return nil
}

func holds(g *head.Group, col int) bool {
	held := g.Held()
	return held.Has(col)
}

// gone reports whether a series that is defined at lsn was forgotten by a record
// that a flush has committed: the catalogue had it then, and has not now.
func (r *replayer) gone(b *bucket, id metric.SeriesID, lsn wal.LSN) bool {
	if _, known := r.s.index.get(id); known || uint64(lsn) >= r.state.AccountLSN {
		return false
	}
	i, deleted := b.tombs().search(id)
	return !r.rebuilt || deleted && b.tombs()[i].lsn > uint64(lsn)
}

// forget takes series away again. What a flush has committed is in the catalogue
// and in the tombstones of the MANIFEST. Behind that, no committed segment holds
// points that came later: all that there are may be hidden.
func (r *replayer) forget(lsn wal.LSN, p *record) {
	s := r.s
	b := s.buckets.id(p.bucket)
	if b == nil || uint64(lsn) < r.state.AccountLSN {
		return
	}
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	f := forgetting{b: b, below: s.nextSeq.Add(1), why: p.why, lsn: uint64(lsn)}
	for src := p.series; len(src) > 0; src = src[forgetSize:] {
		r.forgetOne(&f, tombstone{id: metric.SeriesID(src[1:forgetSize]), ref: makeRef(p.group, int(src[0])), below: f.below, lsn: f.lsn})
	}
	r.deleted[b] = append(r.deleted[b], f.list...)
	s.pendTombstones(b, f.list)
}

// forgetOne forgets a series wherever it is, unless it began anew: then the
// catalogue is ahead of the record.
func (r *replayer) forgetOne(f *forgetting, t tombstone) {
	s := r.s
	ref, known := s.index.get(t.id)
	switch {
	case !known || r.series[t.id] > f.lsn:
		f.list = append(f.list, t)
		if t.ref != nowhere {
			left := placed(f.b, t.ref, t.id)
			s.change(s.placeGone(f, t, &left))
		}
	case ref.parked():
		s.lose(f, t, f.b.parked.remove(ref))
	default:
		if g := s.groups.get(ref.group()); g != nil {
			var want head.Mask
			want.Set(ref.column())
			cols := g.Columns()
			gone, err := g.Forget(want, f.b.width(), false, func(head.Mask) error { return nil })
			if err == nil {
				s.dropped(f.b, g, cols, gone)
			}
		}
		s.lose(f, t, ref)
	}
}

// data applies the points of a row or column record from the group's floor on.
// Everything from the floor on is applied in the order of the first time, so
// the last write wins again.
func (r *replayer) data(lsn wal.LSN, p record) {
	s := r.s
	b := s.buckets.id(p.bucket)
	if uint64(lsn) < r.state.FloorOf(p.group) || b == nil {
		return
	}
	r.words = parseCells(r.words[:0], p.cells)
	w := head.Write{Column: p.column, Slot: p.slot, Words: r.words, Down: p.kind == recColumn, Pairs: b.info.HPTS}
	g := s.groups.get(p.group)
	if odd := w.Pairs && (p.column|len(r.words))%2 != 0; g != nil && (g.Bucket != p.bucket || odd) {
		g = nil
	}
	lost := uint64(0)
	for len(w.Words) > 0 {
		n := r.known(lsn, g, &w)
		if part := w; n > 0 {
			part.Words = w.Words[:n]
			r.apply(lsn, g, part)
		} else {
			n = r.pass(lsn, &p, &w, &lost)
		}
		w.Words = w.Words[n:]
		w.Column += n // not needed when there are none left, as for a column
	}
	if lost > 0 {
		r.lost += min(lost, p.counts.Stored()) // duplicates are stored elsewhere
		s.reportDamage(fmt.Sprintf("log record at %d", lsn), fmt.Errorf("%d points of group %d are of no series", lost, p.group))
	}
}

// known returns how many of the first words are of columns that had at lsn the
// series that they have now.
func (r *replayer) known(lsn wal.LSN, g *head.Group, w *head.Write) (n int) {
	if g == nil {
		return 0
	}
	cols, t := g.Columns(), r.columns[g.ID]
	if t == nil {
		t = &r.none
	}
	if last := w.Column + len(w.Words); t.last <= uint64(lsn) && !w.Down && last <= cols.Len() && cols.Bound() == cols.Len() {
		return len(w.Words) // nearly always: no column of the group is free, or was given away since
	}
	is := func(col int) bool { return cols.Has(col) && t.since[col] <= uint64(lsn) }
	if w.Down {
		if is(w.Column) {
			n = len(w.Words)
		}
		return n
	}
	for n < len(w.Words) && is(w.Column+n) {
		n++
	}
	return n
}

// pass passes over words of the first column, returns how many, and counts those
// whose series is not known. Those of a column that another series has since then
// are in a segment, or their series was deleted.
func (r *replayer) pass(lsn wal.LSN, p *record, w *head.Write, lost *uint64) (n int) {
	n = 1
	if w.Down {
		n = len(w.Words)
	} else if w.Pairs {
		n = min(2, len(w.Words))
	}
	if r.since(makeRef(p.group, w.Column)) > uint64(lsn) {
		return n
	}
	for _, word := range w.Words[:n] {
		if word != point.Unset {
			*lost++
		}
	}
	return n
}

func (r *replayer) apply(lsn wal.LSN, g *head.Group, w head.Write) {
	s := r.s
	s.waitForRoom()
	w.Epoch = g.Columns().Epoch()
	a, err := g.Apply(w, s.steady.Load(), func(*account.Counts) (uint64, error) { return uint64(lsn), nil })
	if err == nil {
		s.applied(g, a)
	}
}
