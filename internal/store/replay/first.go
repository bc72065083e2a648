package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/ledger"
	"dalmatiner/internal/write/logrecord"
	"dalmatiner/internal/write/series"
)

// countEvery is how much of the log is counted before the account has it.
const countEvery = 16 << 20

// firstReading takes buckets, series and the account to where the log ends, and notes where
// the points are.
type firstReading struct {
	r          *replayer
	state      *manifest.State
	owners     *columns.Ownership
	again      *Again // the start before this one, nil where there was none
	generation uint64 // all segments that were there before have a lower one

	uncounted ledger.Rows // not yet in the accounts

	// deleted are the tombstones of the log, which nobody looks at before the
	// replay is over: to show those of each record at once would take hours for a
	// deletion of many series.
	deleted map[*columns.Bucket][]version.Tombstone
}

// run reads the log. Its error may be a *Again.
func (f *firstReading) run() error {
	o := f.r.o
	report, err := o.Log.Replay(wal.LSN(f.r.from), f.record)
	if err != nil {
		return fmt.Errorf("replaying the log: %w", err)
	}
	if err := f.countLost(&report); err != nil {
		return err
	}
	for _, p := range report.Damaged {
		o.Damage.Report("log", errors.New(p.String()))
	}
	for _, g := range report.Missing {
		o.Damage.Report("log", errors.New(g.String()))
	}
	f.r.p.records.Store(report.Records)
	for b, list := range f.deleted {
		o.Columns.PublishTombstones(b.ID, list)
	}
	f.owners.FinishReplay()
	return nil
}

func (f *firstReading) record(lsn wal.LSN, rec []byte) error {
	r := f.r
	p, err := logrecord.Parse(rec)
	if err != nil {
		r.o.Damage.Report(fmt.Sprintf("log record at %d", lsn), err)
		return nil
	}
	switch p.Kind {
	case logrecord.Row, logrecord.Column, logrecord.Runs:
		b := r.o.Buckets.ID(p.Bucket)
		if b != nil {
			b.Reach.Raise(p.Last)
		}
		if b != nil && uint64(lsn) >= f.state.ReplayPositionOf(p.Group) {
			if tooMany := r.pending.add(uint64(lsn), b, &p); tooMany {
				if err := r.group(context.Background(), p.Group); err != nil {
					return err
				}
			}
		}
	case logrecord.Refused:
	case logrecord.Series:
		return f.define(lsn, p)
	case logrecord.Tags, logrecord.Events:
		return f.side(lsn, &p)
	default:
		f.addCounts(uint64(lsn))
		if err := f.change(lsn, &p); err != nil {
			return err
		}
		f.addCounts(uint64(lsn) + 1)
		return nil
	}
	if uint64(lsn) >= f.state.AccountLSN {
		f.uncounted.Add(p.Copies, p.Bucket, p.Minute, &p.Counts)
	}
	if end := uint64(lsn) + 1; end-r.p.counted.Load() > countEvery {
		f.addCounts(end)
	}
	return nil
}

// addCounts adds what was counted to the account, which then stands for all
// records below end. A flush takes both in one moment.
func (f *firstReading) addCounts(end uint64) {
	f.r.o.Ledger.Enter(&f.uncounted, func() { f.r.p.counted.Store(end) })
}

// side does again what only a side knows. A flush in between finds all of it, or nothing.
func (f *firstReading) side(lsn wal.LSN, p *logrecord.Record) (err error) {
	f.r.o.Ledger.Enter(&f.uncounted, func() {
		err = f.replaySides(lsn, p)
		f.r.p.counted.Store(uint64(lsn) + 1)
	})
	return err
}

func (f *firstReading) replaySides(lsn wal.LSN, p *logrecord.Record) error {
	for _, s := range f.r.o.Sides {
		if err := s.Replay(lsn, p); err != nil {
			return err
		}
	}
	return nil
}

// change does again what is no point and defines no series.
func (f *firstReading) change(lsn wal.LSN, p *logrecord.Record) error {
	switch p.Kind {
	case logrecord.Bucket:
		f.bucket(p.Info)
	case logrecord.BucketDeleted:
		f.delete(p.Deleted)
	case logrecord.TTL:
		if b := f.r.o.Buckets.ID(p.Bucket); b != nil {
			b.SetTTL(p.TTL)
		}
	case logrecord.SeriesDeleted:
		if err := f.deleteSeries(lsn, p); err != nil {
			return err
		}
	}
	return f.replaySides(lsn, p)
}

func (f *firstReading) bucket(info buckets.Info) {
	all := f.r.o.Buckets
	if !all.WasDeleted(info.ID) && all.ID(info.ID) == nil && all.Get(info.Name) == nil {
		all.Add(f.r.o.NewBucket(info))
	}
}

func (f *firstReading) delete(d buckets.Deletion) {
	o := f.r.o
	b := o.Buckets.ID(d.ID)
	if b == nil {
		o.Columns.NoteDeleted(d)
		return
	}
	f.r.pending.drop(b)
	o.Columns.DeletedBucket(b, d)
	o.DropGroups(b)
}

// define does again what gave a column to a series. What the catalogue knows may
// be older or newer than the record.
func (f *firstReading) define(lsn wal.LSN, p logrecord.Record) error {
	o := f.r.o
	b := o.Buckets.ID(p.Bucket)
	if b == nil {
		return nil
	}
	id, ref := b.SeriesID(p.Key), series.RefAt(p.Group, p.Column)
	if since := f.owners.SeriesSince(id); since >= uint64(lsn) {
		// The catalogue may be ahead of the commit that was to bring the segment
		// with the name.
		if since == uint64(lsn) && since >= f.state.AccountLSN {
			o.Columns.AddUnflushed(b, ref, id, bytes.Clone(p.Key), lsn, nil)
		}
		return nil
	}
	old, known := o.Columns.Index.Lookup(id)
	if !known && f.gone(b, id, lsn) {
		return nil
	}
	if known && p.Incarnation > b.Incarnations.Get(id) && uint64(lsn) >= f.state.AccountLSN {
		// Damage took the record of the deletion that is in between.
		old, known = 0, false
		if err := f.change(lsn, deletionOf(&p, id)); err != nil {
			return err
		}
	}
	b.Incarnations.Raise(id, p.Incarnation)
	o.Columns.Deletions.Advance(p.Incarnation)
	if err := f.empty(ref); err != nil {
		return err
	}
	if known && !old.Inactive() {
		if err := f.empty(old); err != nil {
			return err
		}
	}
	f.owners.Define(b, &p, lsn, old, known)
	return nil
}

// empty makes sure that neither the head nor a pending record holds anything of a column
// that a series leaves or gets: its points must not become those of another, and
// what has no series yet is lost. A column changes hands only below the replay position of
// its group, so there is something to flush only when a damaged MANIFEST has lost
// replay positions.
func (f *firstReading) empty(ref series.Ref) error {
	r := f.r
	if l := r.pending.of(ref.Group()); l != nil && l.past > ref.Column() {
		if err := r.group(context.Background(), ref.Group()); err != nil {
			return err
		}
	}
	g := r.target.groups.Get(ref.Group())
	if g == nil || !g.Columns().Has(ref.Column()) {
		return nil
	}
	if held := g.HeldColumns(); held.Has(ref.Column()) {
		_, err := r.o.Flusher.All(context.Background())
		return err
	}
	return nil
}

// gone reports whether a series that is not known and was defined at lsn was
// forgotten by a record that a flush has committed: the catalogue had it then.
func (f *firstReading) gone(b *columns.Bucket, id metric.SeriesID, lsn wal.LSN) bool {
	if uint64(lsn) >= f.state.AccountLSN {
		return false
	}
	deleted, ok := f.r.o.Columns.Tombstones(b.ID).Find(id)
	return !f.owners.Rebuilt || ok && deleted.LSN > uint64(lsn)
}

// deleteSeries takes series away again. What a flush has committed is in the catalogue and in the
// tombstones of the MANIFEST. Behind that, no committed segment holds points received later, so all
// that there are may be hidden.
func (f *firstReading) deleteSeries(lsn wal.LSN, p *logrecord.Record) error {
	o := f.r.o
	b := o.Buckets.ID(p.Bucket)
	if b == nil || uint64(lsn) < f.state.AccountLSN {
		return nil
	}
	if err := f.replayAll(p); err != nil {
		return err
	}
	o.Flusher.Gate().Lock()
	defer o.Flusher.Gate().Unlock()
	d := columns.Deletion{
		Bucket:         b,
		DeleteSequence: o.Dir.TakeDeletion(),
		Why:            p.Why,
		Incarnation:    p.Incarnation,
	}
	f.owners.Delete(&d, p, lsn)
	o.Deleted(&d)
	f.deleted[b] = append(f.deleted[b], d.Series...)
	return nil
}

// deletionOf is the record of the deletion that a definition says was there.
func deletionOf(define *logrecord.Record, id metric.SeriesID) *logrecord.Record {
	rec := logrecord.AppendSeriesDeleted(nil, define.Bucket, series.None.Group(), logrecord.Deleted,
		define.Incarnation)
	// it is well-formed: define.Incarnation is not 0
	p, _ := logrecord.Parse(logrecord.AppendDeleted(rec, series.None.Column(), id))
	return &p
}

// replayAll replays all groups that a deletion record is about: what
// they hold of its series was in front of it.
func (f *firstReading) replayAll(p *logrecord.Record) error {
	r := f.r
	err := r.group(context.Background(), p.Group)
	for _, id := range p.DeletedSeries() {
		if err != nil {
			break
		}
		if ref, ok := r.o.Columns.Index.Lookup(id); ok && !ref.Inactive() {
			err = r.group(context.Background(), ref.Group())
		}
	}
	return err
}
