package store

import (
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/account"
	"dalmatiner/internal/head"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/wal"
)

// LostRecord is the account's cause for points in log records whose series is
// unknown because damage took its definition.
const LostRecord = "log_record_without_series"

// restoreSeries enters a series of the catalogue or of a segment into memory.
func (s *Store) restoreSeries(e segment.Series) error {
	b := s.buckets.id(e.Bucket)
	if b == nil {
		return nil // its bucket was deleted
	}
	id := b.seriesID(e.Key)
	if _, ok := s.index.get(id); ok {
		return nil
	}
	g, err := s.restoreGroup(b, e.Group, int(e.Column))
	if err != nil {
		s.reportDamage("catalogue", err)
		return nil
	}
	b.addColumns(g, e.Key, id)
	b.series++
	s.index.put(id, makeRef(g.ID, int(e.Column)))
	return nil
}

// restoreGroup returns the group of a series that is to get the given column,
// which must be the next.
func (s *Store) restoreGroup(b *bucket, group uint32, column int) (*head.Group, error) {
	g := s.groups.get(group)
	if g == nil {
		g = head.NewGroup(group, b.info.ID, b.height, b.arena)
		s.groups.put(g)
		b.groups = append(b.groups, g)
	}
	if g.Bucket != b.info.ID || g.Columns().Len() != column {
		return nil, fmt.Errorf("group %d of bucket %d has %d columns; a series wants column %d in bucket %d",
			group, g.Bucket, g.Columns().Len(), column, b.info.ID)
	}
	return g, nil
}

// replayer applies the log on top of what the last flush left.
type replayer struct {
	s     *Store
	state *manifest.State
	words []uint64
	lost  uint64
}

// replay brings the head and the account to where the log ends.
func (s *Store) replay(state *manifest.State) error {
	r := replayer{s: s, state: state}
	from := min(state.Floor, state.AccountLSN)
	for _, f := range state.Floors() {
		from = min(from, f.LSN)
	}
	s.accounted = wal.LSN(state.AccountLSN)
	s.replayed.Store(max(from, 1))
	s.startWorkers()
	report, err := s.log.Replay(wal.LSN(from), r.record)
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
	for _, b := range s.buckets.all() {
		for _, g := range b.groups {
			if g.Columns().Len() < head.Width {
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
		r.define(lsn, p)
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

func (r *replayer) define(lsn wal.LSN, p record) {
	s := r.s
	b := s.buckets.id(p.bucket)
	if b == nil {
		return
	}
	id := b.seriesID(p.key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if ref, ok := s.index.get(id); ok {
		// The catalogue has it. It may be ahead of the commit that was to bring
		// the segment with its name.
		if uint64(lsn) >= r.state.AccountLSN {
			s.addPending(b, ref, id)
		}
		return
	}
	g, err := s.restoreGroup(b, p.group, p.column)
	if err != nil {
		s.reportDamage("log", err)
		return
	}
	s.define(b, g, id, p.key)
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
	last := p.column
	if p.kind == recRow {
		last += len(r.words) - 1
	}
	odd := b.info.HPTS && (p.column|len(r.words))%2 != 0
	g := s.groups.get(p.group)
	if odd || g == nil || g.Bucket != p.bucket || last >= g.Columns().Len() {
		r.lost += p.counts.Stored()
		s.reportDamage(fmt.Sprintf("log record at %d", lsn), fmt.Errorf("group %d has no column %d for these points", p.group, last))
		return
	}
	s.waitForRoom()
	w := head.Write{Column: p.column, Slot: p.slot, Words: r.words, Down: p.kind == recColumn, Pairs: b.info.HPTS}
	a, err := g.Apply(w, s.steady.Load(), func(*account.Counts) (uint64, error) { return uint64(lsn), nil })
	if err == nil {
		s.applied(g, a)
	}
}
