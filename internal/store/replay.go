package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/columns"
	"dalmatiner/internal/flush"
	"dalmatiner/internal/head"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/recovery"
	"dalmatiner/internal/series"
	"dalmatiner/internal/version"
	"dalmatiner/internal/wal"
)

// LostRecord is the account's cause for points in log records whose series is
// unknown because damage took its definition.
const LostRecord = "log_record_without_series"

// replayer applies the log on top of what the last flush left. A start reads it
// once for all that is no point, and for the account; what it has of points is
// noted by group. Then the store is in use, and a second reading puts the points
// into the head.
type replayer struct {
	s         *Store
	owners    *columns.Ownership
	from      uint64 // it begins here
	state     *manifest.State
	uncounted account.Rows // what the first reading has counted and the account has not

	lost       logrecord.Overwritten // as the start before this one found it, see startAgain
	again      *startAgain           // that start, nil where there was none
	generation uint64                // all segments that were there before have a lower one

	records   []*pendingRecords // by group; none is added after the first reading
	pending   int64             // of them
	positions atomic.Int64      // memory of what they hold

	gate  sync.RWMutex // held shared by those who replay a group on demand
	later goneRecords

	reading, applying *round
	roundSize         int
	appliers          []*applier

	// deleted are the tombstones of the log, which nobody looks at before the
	// replay is over: to show those of each record at once would take hours for a
	// deletion of many series.
	deleted map[*columns.Bucket][]version.Tombstone
	// deletedAt has the columns of series that were deleted behind where the replay begins,
	// and when, by tombstones that are committed. Beside whole replay positions the catalogue has
	// them; where replay positions are lost, it may not any more.
	deletedAt map[series.Ref]uint64
}

// countEvery is how much of the log is counted before the account has it.
const countEvery = 16 << 20

// replay takes buckets, series and the account to where the log ends, and
// leaves the points to finish.
func (s *Store) replay(state *manifest.State, known *columns.Ownership, again *startAgain) error {
	r := &replayer{
		again: again, generation: s.dir.NextNumber(),
		s: s, owners: known, from: recovery.ReplayFrom(state), state: state, deleted: make(map[*columns.Bucket][]version.Tombstone),
		reading: newRound(), applying: newRound(), roundSize: int(min(roundBytes, s.o.FlushBytes/roundPart)),
	}
	if again != nil {
		r.lost = logrecord.ByGroup(again.lost)
	}
	for range runtime.GOMAXPROCS(0) {
		r.appliers = append(r.appliers, newApplier(r))
	}
	r.noteDeletedColumns()
	s.accounted = wal.LSN(state.AccountLSN)
	s.replayed.Store(max(r.from, 1))
	s.counted.Store(max(r.from, 1))
	s.replayEnd = s.log.End()
	s.flusher.Begin(flush.Positions{Base: state.ReplayPosition, Own: state.ReplayPositions()}, r.from)
	s.startWorkers()
	report, err := s.log.Replay(wal.LSN(r.from), r.record)
	if err != nil {
		return fmt.Errorf("replaying the log: %w", err)
	}
	if err := r.countLost(&report); err != nil {
		return err
	}
	for _, p := range report.Damaged {
		s.damage.Report("log", errors.New(p.String()))
	}
	for _, g := range report.Missing {
		s.damage.Report("log", errors.New(g.String()))
	}
	s.counters.replayed.Store(report.Records)
	for b, list := range r.deleted {
		s.columns.PublishTombstones(b.ID, list)
	}
	r.owners.Settled()
	r.deleted = nil          // the second reading does not need them
	if len(r.records) == 0 { // as after an orderly end
		r.finish()
		return nil
	}
	s.behind.Store(r)
	s.workers.Go(r.finish)
	return nil
}

func (r *replayer) noteDeletedColumns() {
	r.deletedAt = make(map[series.Ref]uint64)
	for _, b := range r.s.buckets.All() {
		for _, t := range r.s.tombs(b.ID) {
			for col := range b.Width() {
				if refOf(&t) != series.None && t.LSN > r.from {
					ref := series.At(t.Group, int(t.Column)+col)
					r.deletedAt[ref] = max(r.deletedAt[ref], t.LSN)
				}
			}
		}
	}
}

func (r *replayer) record(lsn wal.LSN, rec []byte) error {
	p, err := logrecord.Parse(rec)
	if err != nil {
		r.s.damage.Report(fmt.Sprintf("log record at %d", lsn), err)
		return nil
	}
	switch p.Kind {
	case logrecord.Row, logrecord.Column, logrecord.Runs:
		if b := r.s.buckets.ID(p.Bucket); b != nil && uint64(lsn) >= r.state.ReplayPositionOf(p.Group) {
			if err := r.pend(uint64(lsn), b, &p); err != nil {
				return err
			}
		}
	case logrecord.Refused:
	case logrecord.Series:
		return r.define(lsn, p)
	default:
		r.addCounts(uint64(lsn))
		if err := r.change(lsn, &p); err != nil {
			return err
		}
		r.addCounts(uint64(lsn) + 1)
		return nil
	}
	if uint64(lsn) >= r.state.AccountLSN {
		r.uncounted.Add(p.Bucket, p.Minute, &p.Counts)
	}
	if end := uint64(lsn) + 1; end-r.s.counted.Load() > countEvery {
		r.addCounts(end)
	}
	return nil
}

// change does again what is no point and defines no series.
func (r *replayer) change(lsn wal.LSN, p *logrecord.Record) error {
	switch p.Kind {
	case logrecord.Bucket:
		r.bucket(p.Info)
	case logrecord.BucketDeleted:
		r.delete(p.Deleted)
	case logrecord.TTL:
		if b := r.s.buckets.ID(p.Bucket); b != nil {
			b.SetTTL(p.TTL)
		}
	case logrecord.SeriesDeleted:
		return r.deleteSeries(lsn, p)
	}
	return nil
}

func (r *replayer) bucket(info buckets.Info) {
	s := r.s
	if !s.buckets.WasDeleted(info.ID) && s.buckets.ID(info.ID) == nil && s.buckets.Get(info.Name) == nil {
		s.buckets.Add(s.newBucket(info))
	}
}

func (r *replayer) delete(d buckets.Deletion) {
	b := r.s.buckets.ID(d.ID)
	if b == nil {
		r.s.columns.NoteDeleted(d)
		return
	}
	for _, l := range r.records {
		if l != nil && l.b == b {
			r.drop(l)
		}
	}
	r.s.columns.DeletedBucket(b, d)
	r.s.dropGroups(b)
}

// define does again what gave a column to a series. What the catalogue knows may
// be older or newer than the record.
func (r *replayer) define(lsn wal.LSN, p logrecord.Record) error {
	s := r.s
	b := s.buckets.ID(p.Bucket)
	if b == nil {
		return nil
	}
	id, ref := b.SeriesID(p.Key), series.At(p.Group, p.Column)
	if since := r.owners.SeriesSince(id); since >= uint64(lsn) {
		// The catalogue may be ahead of the commit that was to bring the segment
		// with the name.
		if since == uint64(lsn) && since >= r.state.AccountLSN {
			s.columns.AddUnflushed(b, ref, id, bytes.Clone(p.Key), lsn, nil)
		}
		return nil
	}
	old, known := s.columns.Index.Lookup(id)
	if !known && r.gone(b, id, lsn) {
		return nil
	}
	if known && p.Incarnation > b.Incarnations.Of(id) && uint64(lsn) >= r.state.AccountLSN {
		// Damage took the record of the deletion that is in between.
		old, known = 0, false
		if err := r.deleteSeries(lsn, deletionOf(&p, id)); err != nil {
			return err
		}
	}
	b.Incarnations.Raise(id, p.Incarnation)
	s.columns.Deletions.Saw(p.Incarnation)
	if err := r.empty(ref); err != nil {
		return err
	}
	if known && !old.Inactive() {
		if err := r.empty(old); err != nil {
			return err
		}
	}
	r.owners.Define(b, &p, lsn, old, known)
	return nil
}

// empty makes sure that neither the head nor a pending record holds anything of a column
// that a series leaves or gets: its points must not become those of another, and
// what has no series yet is lost. A column changes hands only below the replay position of
// its group, so there is something to flush only when a damaged MANIFEST has lost
// replay positions.
func (r *replayer) empty(ref series.Ref) error {
	if l := r.recordsOf(ref.Group()); l != nil && l.past > ref.Column() {
		if err := r.replayGroup(context.Background(), ref.Group()); err != nil {
			return err
		}
	}
	if g := r.s.columns.Groups.Get(ref.Group()); g != nil && g.Columns().Has(ref.Column()) && holds(g, ref.Column()) {
		_, err := r.s.flusher.All(context.Background())
		return err
	}
	return nil
}

func holds(g *head.Group, col int) bool {
	held := g.Held()
	return held.Has(col)
}

// gone reports whether a series that is not known and was defined at lsn was
// forgotten by a record that a flush has committed: the catalogue had it then.
func (r *replayer) gone(b *columns.Bucket, id metric.SeriesID, lsn wal.LSN) bool {
	if uint64(lsn) >= r.state.AccountLSN {
		return false
	}
	deleted, ok := r.s.tombs(b.ID).Find(id)
	return !r.owners.Rebuilt || ok && deleted.LSN > uint64(lsn)
}

// deleteSeries takes series away again. What a flush has committed is in the catalogue
// and in the tombstones of the MANIFEST. Behind that, no committed segment holds
// points that came later: all that there are may be hidden.
func (r *replayer) deleteSeries(lsn wal.LSN, p *logrecord.Record) error {
	s := r.s
	b := s.buckets.ID(p.Bucket)
	if b == nil || uint64(lsn) < r.state.AccountLSN {
		return nil
	}
	if err := r.replayAll(p); err != nil {
		return err
	}
	s.flusher.Gate().Lock()
	defer s.flusher.Gate().Unlock()
	d := columns.Deletion{Bucket: b, DeleteSequence: s.dir.TakeDeletion(), Why: p.Why, Incarnation: p.Incarnation}
	r.owners.Delete(&d, p, lsn)
	s.deletions.Count(&d)
	r.deleted[b] = append(r.deleted[b], d.Series...)
	return nil
}

// deletionOf is the record of the deletion that a definition says was there.
func deletionOf(define *logrecord.Record, id metric.SeriesID) *logrecord.Record {
	rec := logrecord.AppendSeriesDeleted(nil, define.Bucket, series.None.Group(), logrecord.Deleted, define.Incarnation)
	p, _ := logrecord.Parse(logrecord.AppendDeleted(rec, series.None.Column(), id)) // it is well-formed: define.Incarnation is not 0
	return &p
}

// replayAll replays all groups that a deletion record is about: what
// they hold of its series was in front of it.
func (r *replayer) replayAll(p *logrecord.Record) error {
	err := r.replayGroup(context.Background(), p.Group)
	for _, id := range p.DeletedSeries() {
		if err != nil {
			break
		}
		if ref, ok := r.s.columns.Index.Lookup(id); ok && !ref.Inactive() {
			err = r.replayGroup(context.Background(), ref.Group())
		}
	}
	return err
}
