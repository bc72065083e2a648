package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/ledger"
	"dalmatiner/internal/write/logrecord"
	"dalmatiner/internal/write/series"
)

const (
	// LostRecord is the account's cause for points in log records whose series is
	// unknown because damage took its definition.
	LostRecord = "log_record_without_series"

	// LostInReplay is the account's cause for points in log records that were whole
	// when a start read the log for the first time, and no more when it took them.
	LostInReplay = "log_record_damaged"
)

// Flusher is what a replay needs of flushes; flush.Flusher is one.
type Flusher interface {
	// All flushes all that is in the head.
	All(context.Context) (flush.Result, error)
	// KeepPositions says whether flushes leave the replay positions where they are: what is in
	// the head is not all that the log has in front of it.
	KeepPositions(keep bool)
	// Gate lets one flush, or deletion of series, be under way at a time.
	Gate() *version.Gate
}

// Side is something that a node keeps beside points (store/flush/DESIGN.md).
type Side interface {
	// Replay does again what a record of the log says, of its own kinds, or a deletion of series or
	// of a bucket. It passes over those that its files hold, and over what is not its own. No flush
	// takes anything meanwhile.
	Replay(lsn wal.LSN, r *logrecord.Record) error
}

// Options are what a replay works with.
type Options struct {
	Log      *wal.Log
	Ledger   *ledger.Ledger // of log and account
	Columns  *columns.Table
	Buckets  *buckets.Registry[*columns.Bucket]
	Dir      *version.Dir
	Clock    *clock.Clock
	Flusher  Flusher
	Pressure *backpressure.Control // holds back who replays: a log may hold more than memory
	Sealers  *backpressure.Sealers
	Sides    []Side // what is kept beside points

	// LostEvents takes what a reading of the log found: damage may have taken records of events.
	LostEvents func(*wal.Report)
	Damage     *damage.Notes
	Logger     *slog.Logger

	Ownerless *flush.Losses // takes points of no series, under LostRecord
	Lost      *flush.Losses // takes those of records that damage took, under LostInReplay

	// NewBucket makes a bucket that the log names, DropGroups gives back the memory of one
	// that was deleted, and Deleted counts what a deletion of series did.
	NewBucket  func(buckets.Info) *columns.Bucket
	DropGroups func(*columns.Bucket)
	Deleted    func(*columns.Deletion)
	// AddHoles makes holes permanent, as far as the disk has room, and shows them to readers.
	AddHoles func([]hole.Hole) error
	// DropIdle lets go of series of which nothing is left.
	DropIdle func(context.Context) error
	// Over is called once when all of the log is in the head.
	Over func()

	FlushBytes   int64 // sealed bytes that cause a flush
	MaxPositions int64 // bytes for positions of records, see MaxPositions

	Stop <-chan struct{} // closed when the store closes
	Hold <-chan struct{} // for tests: the second reading waits until it is closed; nil for none
}

// MaxPositions is what a start takes at most for the positions of records, and
// PositionsPart the part of the memory limit that it takes. With more it replays what it
// has of a group before it goes on.
const (
	MaxPositions  = 64 << 20
	PositionsPart = 16
)

// Found is what a start knows before it reads the log.
type Found struct {
	State  *manifest.State
	Owners *columns.Ownership
	Again  *Again // what the start before this one ended with, nil where it is the first
}

// Replay takes the store to where the log ends. Its methods may be called concurrently, but
// for Run.
type Replay struct {
	o Options
	progress

	first  *firstReading            // until Run
	behind atomic.Pointer[replayer] // puts the log's points into the head; nil when all are
	over   chan struct{}            // closed when it does no more, with
	err    error                    // why it gave up

	background sync.WaitGroup
}

// New returns the replay of a log, which Run begins. Flushes may come from now on.
func New(o Options, found Found) *Replay {
	from := found.State.ReplayFrom()
	r := &Replay{o: o, over: make(chan struct{})}
	r.log, r.end, r.snapshot = o.Log, o.Log.End(), wal.LSN(found.State.AccountLSN)
	r.head.Store(max(from, 1))
	r.counted.Store(max(from, 1))
	run := &replayer{
		o: &r.o, p: &r.progress, from: from,
		target: &target{
			groups: &o.Columns.Groups, owners: found.Owners, sealers: o.Sealers, clock: o.Clock,
			damage: o.Damage, ownerless: o.Ownerless, deletedAt: deletedColumns(&o, from),
		},
		pending: pendingTable{p: &r.progress, limit: o.MaxPositions},
	}
	if found.Again != nil {
		run.target.lost = logrecord.ByGroup(found.Again.lost)
	}
	r.first = &firstReading{
		r: run, state: found.State, owners: found.Owners, again: found.Again,
		generation: o.Dir.NextNumber(),
		deleted:    make(map[*columns.Bucket][]version.Tombstone),
	}
	r.behind.Store(run)
	return r
}

func deletedColumns(o *Options, from uint64) map[series.Ref]uint64 {
	deletedAt := make(map[series.Ref]uint64)
	for _, b := range o.Buckets.All() {
		for _, t := range o.Columns.Tombstones(b.ID) {
			last := series.RefAt(t.Group, int(t.Column)) // that the deleted series had
			for col := range b.Width() {
				if last != series.None && t.LSN > from {
					ref := series.RefAt(t.Group, int(t.Column)+col)
					deletedAt[ref] = max(deletedAt[ref], t.LSN)
				}
			}
		}
	}
	return deletedAt
}

// Run reads the log for all that is no point, and for the account. Then the store can be in
// use: points follow in the background, and those that somebody wants at once. The error is
// a *Again where the start is to be made again; the store must be closed after any.
func (r *Replay) Run() error {
	first := r.first
	r.first = nil
	if err := first.run(); err != nil {
		r.behind.Store(nil) // with all its memory: nobody wants anything of a store that does not open
		return err
	}
	run := first.r
	if run.pending.n == 0 { // as after an orderly end
		r.finish(run)
		return nil
	}
	r.background.Go(func() {
		if err := newSecondReading(run).run(); err != nil {
			r.giveUp(err)
		} else {
			r.finish(run)
		}
	})
	return nil
}

func (r *Replay) giveUp(err error) {
	if errors.Is(err, version.ErrClosed) {
		return
	}
	r.err = fmt.Errorf("replaying the log: %w", err)
	if !errors.Is(err, ErrNoRoom) {
		r.o.Pressure.Fail(r.err)
	}
	close(r.over)
}

// finish ends a replay whose points are all in the head.
func (r *Replay) finish(run *replayer) {
	run.finishGroups()
	r.behind.Store(nil)
	r.head.Store(0)
	r.bytes.Store(0)
	r.flushLosses(run.unknown)
	if run.target.owners.Rebuilt {
		r.dropGoneNames()
	}
	close(r.over)
	r.o.Over()
}

// flushLosses flushes everything where points of no series were counted as lost:
// with their records below the replay positions no start counts them again, and what is given
// one of their columns from now on makes no difference. Of unknown records no start finds out less
// than this one did.
func (r *Replay) flushLosses(unknown bool) {
	if !unknown && !r.o.Ownerless.Any() && !r.o.Lost.Any() {
		return
	}
	if _, err := r.o.Flusher.All(context.Background()); err != nil &&
		!errors.Is(err, version.ErrClosed) {
		r.o.Logger.Warn("the flush behind a replay with losses failed and is tried again", "err", err)
	}
}

// dropGoneNames lets go of the names that a rebuilt catalogue has of series of which
// nothing is left: what segments name may have gone before the catalogue was lost.
// The flush brings the log behind them: a series with records in it stays.
func (r *Replay) dropGoneNames() {
	ctx := context.Background()
	_, err := r.o.Flusher.All(ctx)
	if err == nil {
		err = r.o.DropIdle(ctx)
	}
	if err != nil && !errors.Is(err, version.ErrClosed) {
		r.o.Logger.Warn("names of series of which nothing is left stay until the next merge", "err", err)
	}
}

// Stop waits for those who replay something. Stop of the options is closed: nobody
// begins behind them.
func (r *Replay) Stop() {
	if run := r.behind.Load(); run != nil {
		run.stop()
	}
	r.background.Wait()
}

// Group puts what the log has of a group into the head, if that is not there yet. The
// caller holds no lock: it may wait for a flush.
func (r *Replay) Group(ctx context.Context, group uint32) error {
	if run := r.behind.Load(); run != nil {
		return run.group(ctx, group)
	}
	return nil
}

// Series is Group for the group of a series.
func (r *Replay) Series(ctx context.Context, id metric.SeriesID) error {
	run := r.behind.Load()
	if run == nil {
		return nil
	}
	if ref, ok := r.o.Columns.Index.Lookup(id); ok && !ref.Inactive() {
		return run.group(ctx, ref.Group())
	}
	return nil
}

// All waits until all of the log is in the head. Whatever gives a column
// to a series or takes one away, and whatever is to find everything in the head,
// waits here first, with no lock held.
func (r *Replay) All(ctx context.Context) error {
	select {
	case <-r.over:
		if err := r.o.Pressure.Failure(); err != nil {
			return err
		}
		return r.err
	case <-r.o.Stop:
		return version.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Bytes returns the memory that a start takes until the log's points are in the head.
func (r *Replay) Bytes() int64 {
	n := r.bytes.Load() + r.o.Ownerless.Bytes() + r.o.Lost.Bytes()
	if run := r.behind.Load(); run != nil {
		n += run.target.owners.Bytes()
	}
	return n
}

// Pending returns what the log has of each group of which it had points. Groups of which
// nothing is left have no memory. There is none when all is in the head.
func (r *Replay) Pending() []Pending {
	if run := r.behind.Load(); run != nil {
		return run.pending.list()
	}
	return nil
}
