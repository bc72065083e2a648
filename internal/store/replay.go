package store

import (
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/account"
	"dalmatiner/internal/head"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/wal"
)

// LostRecord is the account's cause for points in log records whose series is
// unknown because damage took its definition.
const LostRecord = "log_record_without_series"

// restoreSeries enters a series of the catalogue or of a segment into memory.
// One without a key is a column whose series is gone.
func (s *Store) restoreSeries(e segment.Series) error {
	b := s.buckets.id(e.Bucket)
	if b == nil {
		return nil // its bucket was deleted
	}
	id := metric.SeriesID(e.Hash)
	if len(e.Key) > 0 {
		id = b.seriesID(e.Key)
	}
	if _, ok := s.index.get(id); ok {
		e.Key = nil // it began anew in the other column
	}
	g, err := s.restoreColumn(b, e.Group, int(e.Column), e.Key, id)
	if err != nil {
		s.reportDamage("catalogue", err)
		return nil
	}
	if len(e.Key) > 0 {
		b.series++
		s.index.put(id, makeRef(g.ID, int(e.Column)))
	}
	return nil
}

// restoreColumn gives a column of a group to a series. The columns in front of
// it that nothing is known of, and its own when the key is empty, have no name.
func (s *Store) restoreColumn(b *bucket, group uint32, column int, key []byte, id metric.SeriesID) (*head.Group, error) {
	g := s.groups.get(group)
	if g == nil {
		g = head.NewGroup(group, b.info.ID, b.height, b.arena)
		s.groups.put(g)
		b.groups = append(b.groups, g)
	}
	if g.Bucket != b.info.ID {
		return nil, fmt.Errorf("group %d is of bucket %d; a series wants column %d of it in bucket %d", group, g.Bucket, column, b.info.ID)
	}
	for g.Columns().Len() < min(column, head.Width) {
		g.AddColumn(nil, metric.SeriesID{})
	}
	cols := g.Columns()
	switch {
	case column >= head.Width:
		return nil, fmt.Errorf("a series wants column %d of group %d, the last one is %d", column, group, head.Width-1)
	case cols.Len() == column:
		b.addColumns(g, key, id)
	case cols.Named(column) && len(key) > 0:
		return nil, fmt.Errorf("column %d of group %d has a series, and another one wants it", column, group)
	case !cols.Named(column):
		g.Rename(column, key, id)
		if b.info.HPTS && cols.Len() > column+1 {
			g.Rename(column+1, nil, id.Stamp())
		}
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
	s.needed.Store(from)
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
	if _, err := s.restoreColumn(b, p.group, p.column, p.key, id); err != nil {
		s.reportDamage("log", err)
		return
	}
	b.series++
	ref := makeRef(p.group, p.column)
	s.index.put(id, ref)
	s.addPending(b, ref, id)
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
	f := forgetting{b: b, below: s.nextSeq.Add(1), why: p.why}
	g := s.groups.get(p.group)
	var want head.Mask
	var list []tombstone
	for src := p.series; len(src) > 0; src = src[forgetSize:] {
		col, id := int(src[0]), metric.SeriesID(src[1:forgetSize])
		list = append(list, tombstone{id: id, ref: makeRef(p.group, col)})
		if g != nil && col < g.Columns().Len() && g.Columns().ID(col) == id {
			want.Set(col)
		}
	}
	if g != nil {
		cols := g.Columns()
		gone, err := g.Forget(want, b.width(), false, func(head.Mask) error { return nil })
		if err == nil {
			s.dropped(&f, g, cols, gone)
		}
	}
	s.dropPending()
	s.putTombstones(b, f.below, uint64(lsn), list)
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
		r.lose(lsn, &p, p.counts.Stored())
		return
	}
	s.waitForRoom()
	w := head.Write{Column: p.column, Slot: p.slot, Words: r.words, Down: p.kind == recColumn, Pairs: b.info.HPTS}
	for first := 0; first < len(r.words); {
		n, ok := r.named(g, &w, first, b.width())
		if ok {
			r.apply(lsn, g, w, first, n)
		} else if at := w.Column + min(first, last-p.column); g.Columns().ID(at) == (metric.SeriesID{}) {
			r.lose(lsn, &p, uint64(n/b.width()))
		}
		first += n
	}
}

// named returns how many words of a run from first on are all of columns with a
// name, or all of columns without: of series that are gone.
func (r *replayer) named(g *head.Group, w *head.Write, first, width int) (n int, ok bool) {
	cols := g.Columns()
	if w.Down {
		return len(w.Words), cols.Named(w.Column)
	}
	for n = first; n < len(w.Words) && cols.Named(w.Column+n); n += width {
	}
	if n > first {
		return n - first, true
	}
	return width, false
}

func (r *replayer) apply(lsn wal.LSN, g *head.Group, w head.Write, first, n int) {
	if !w.Down {
		w.Column += first
	}
	w.Words, w.Epoch = w.Words[first:first+n], g.Columns().Epoch()
	a, err := g.Apply(w, r.s.steady.Load(), func(*account.Counts) (uint64, error) { return uint64(lsn), nil })
	if err == nil {
		r.s.applied(g, a)
	}
}

// lose counts points of a column whose series is not known.
func (r *replayer) lose(lsn wal.LSN, p *record, points uint64) {
	r.lost += points
	r.s.reportDamage(fmt.Sprintf("log record at %d", lsn), fmt.Errorf("group %d has no series in column %d", p.group, p.column))
}
