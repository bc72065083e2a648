package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/head"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/wal"
)

// LostRecord is the account's cause for points in log records whose series is
// unknown because damage took its definition.
const LostRecord = "log_record_without_series"

// replayer applies the log on top of what the last flush left: it collects rounds
// of points, and all else is done between two of them.
type replayer struct {
	none ages // of a group whose series have their columns since before the replay
	*bindings
	state *manifest.State

	reading, applying *round
	roundSize         int
	appliers          []applier

	// deleted are the tombstones of the log, which nobody looks at before the
	// replay is over: to show those of each record at once would take hours for a
	// deletion of many series.
	deleted map[*bucket][]tombstone
}

// replay brings the head and the account to where the log ends.
func (s *Store) replay(state *manifest.State, known *bindings) error {
	r := replayer{
		bindings: known, state: state, deleted: make(map[*bucket][]tombstone),
		reading: newRound(), applying: newRound(), roundSize: int(min(roundBytes, s.o.FlushBytes/roundPart)),
	}
	r.appliers = newAppliers(&r)
	s.accounted = wal.LSN(state.AccountLSN)
	s.replayed.Store(max(r.from, 1))
	s.needed.Store(r.from)
	s.startWorkers()
	report, err := s.log.Replay(wal.LSN(r.from), r.record)
	r.catchUp()
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
	for i := range r.appliers {
		if lost := r.appliers[i].lost; lost > 0 {
			s.account.Lose(LostRecord, lost)
		}
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
	q := r.reading
	switch p.kind {
	case recRow, recColumn:
		if b := r.s.buckets.id(p.bucket); b != nil && uint64(lsn) >= r.state.FloorOf(p.group) {
			q.add(uint64(lsn), b, &r.s.groups, &p)
		}
	case recRefuse:
	default:
		return r.change(lsn, &p)
	}
	if uint64(lsn) >= r.state.AccountLSN {
		q.count(p.bucket, p.minute, &p.counts)
	}
	q.end = uint64(lsn) + 1
	if q.size() >= r.roundSize {
		r.turn()
	}
	return nil
}

// change does again what is no point: behind all points in front of it, and in
// front of all behind it.
func (r *replayer) change(lsn wal.LSN, p *record) (err error) {
	r.catchUp()
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
		err = r.define(lsn, *p)
	case recForget:
		r.forget(lsn, p)
	}
	if err != nil {
		return err
	}
	r.s.commit.RLock()
	defer r.s.commit.RUnlock()
	r.reading.end = uint64(lsn) + 1
	r.s.replayed.Store(r.reading.end)
	return nil
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
