package flush

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/ledger"
)

// The numbered steps of a flush (design, section 4). Options.Step is called after each.
const (
	StepCaptured      = 0 // what is written is taken from the head, and writes go on
	StepLogSynced     = 1
	StepSegmentSynced = 2 // written, fsynced, renamed, directory fsynced
	StepCatalogue     = 3
	StepCommitted     = 4 // the MANIFEST edit is on disk: the commit point
	StepLogTrimmed    = 5

	// StepMerged follows in the same order: the commit of a merge.
	StepMerged = 6

	// StepSidesSynced comes behind StepSegmentSynced, where a side has files to write.
	StepSidesSynced = 7
)

// trimAfter is a time without a flush. The next flush after it gives the memory of free blocks
// back, and then the memory of what it wrote: the blocks that made it due were just sealed, and it
// needs memory itself. Where points come so fast that flushes follow each other, the next blocks
// and sealed blocks take it at once.
const trimAfter = time.Minute

// trimGroups is how many groups are captured, or closed, between two times: their
// last blocks have some 8 MiB.
const trimGroups = 64

// Options are what a flusher works with.
type Options struct {
	Logger *slog.Logger
	Clock  *clock.Clock
	Now    func() time.Time

	Log       *wal.Log
	Ledger    *ledger.Ledger
	Manifest  *manifest.Manifest
	Catalogue *catalogue.Catalogue
	Damage    *damage.Notes

	Columns  *columns.Table
	Buckets  *buckets.Registry[*columns.Bucket]
	Arenas   *head.Arenas
	Versions *version.Versions
	Dir      *version.Dir

	Pressure *backpressure.Control
	Sealers  *backpressure.Sealers
	Sides    []Side // what is kept beside points

	// HeadEnd returns the position below which every record is in the head. AccountEnd is the same for
	// the account.
	HeadEnd         func() (end wal.LSN, behind bool) // behind: a replay has not come to the end
	AccountEnd      func() wal.LSN
	Ownerless, Lost *Losses // that the next start counts again, unless a flush settles them

	Sizes
	MaxDeletions func() int64 // remembered; the oldest beyond them are forgotten

	Step      func(step int)      // called after each step; tests crash there
	Took      func(time.Duration) // called after each flush
	Committed func()              // called when there is something new to merge
}

// Sizes are the bytes that a flush goes by.
type Sizes struct {
	FlushBytes int64 // sealed, that make a flush due
	ShareSize  int64 // in which a flush puts chunks in order, see DefaultShareSize
}

// Flusher writes what is sealed into segments, one flush at a time, and lets the log forget it.
// Its methods may be called concurrently.
type Flusher struct {
	Reach LogReach

	o    Options
	gate version.Gate // one flush at a time

	positions Positions // of the last flush; under gate
	// keepPositions keeps the replay positions where they are: what is in the head is not all that
	// the log has in front of it.
	keepPositions atomic.Bool
	needed        atomic.Uint64 // the first record that a restart reads

	last     atomic.Int64 // flush, by the steady clock
	dueFor   atomic.Int32 // seconds that Due has found much to flush
	counting sync.Mutex   // one count at a time
	share    atomic.Int64 // memory that the next flush takes for its chunks, see Need
	// sealedShare is what share has without blocks that are not sealed.
	sealedShare atomic.Int64
	counters    counters
}

type counters struct{ flushes, nanos, bytes, points, forgotten atomic.Int64 }

// Result says what a flush wrote.
type Result struct {
	Segment string // "" when there was nothing to write
	Bytes   int64
	Points  int64
	Series  int64
	Took    time.Duration
}

// New returns the flusher of a store.
func New(o Options) *Flusher {
	f := &Flusher{o: o}
	f.Reach.o, f.Reach.commit = &f.o, f.Commit
	f.last.Store(o.Clock.Monotonic())
	return f
}

// Gate is what flushes, deletions of series and merges take turns by.
func (f *Flusher) Gate() *version.Gate { return &f.gate }

// Begin sets from where on the log is needed, as the last flush left it. It is called before the
// first flush.
func (f *Flusher) Begin(positions Positions, needed uint64) {
	f.positions = positions
	f.needed.Store(needed)
}

// KeepPositions says whether flushes leave the replay positions where they are. A start needs that
// which has put records into the head out of their order.
func (f *Flusher) KeepPositions(keep bool) { f.keepPositions.Store(keep) }

// Needed returns the position of the first record of the log that a restart reads.
func (f *Flusher) Needed() uint64 { return f.needed.Load() }

// Positions returns the replay positions of the last flush. The caller has the gate.
func (f *Flusher) Positions() Positions { return f.positions }

// All seals every block and flushes: all points that are in the head at the call are in segments
// behind it. The error is version.ErrClosed when the gate is closed.
func (f *Flusher) All(ctx context.Context) (Result, error) {
	f.gate.Lock()
	defer f.gate.Unlock()
	if f.gate.IsClosed() {
		return Result{}, version.ErrClosed
	}
	rarely := f.Rarely()
	for i, g := range f.o.Columns.Groups.All() {
		closed := g.CloseBlocks(func(uint64, int64, int64) bool { return true })
		f.o.Sealers.HandleWrite(g, head.WriteResult{Closed: closed})
		if rarely && i%trimGroups == 0 {
			f.o.Arenas.Trim()
		}
	}
	return f.flush(ctx, nil)
}

// Sealed writes what is sealed.
func (f *Flusher) Sealed() error {
	f.gate.Lock()
	defer f.gate.Unlock()
	_, err := f.flush(context.Background(), nil)
	return err
}

// Run flushes whenever that is asked for, until stop is closed.
func (f *Flusher) Run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-f.o.Pressure.FlushWanted():
			if err := f.Sealed(); err != nil {
				f.o.Logger.Error("flush failed", "err", err)
				f.o.Pressure.MakeRoom() // or the replay may have to give up
			}
		}
	}
}

// flush writes what is sealed, and chunks of other nodes. On an error before the commit
// point everything is as it was and the next flush tries again with new files; an error
// of the log or the MANIFEST ends the store. The gate is held.
func (f *Flusher) flush(ctx context.Context, adopted []Chunk) (Result, error) {
	pressure := f.o.Pressure
	if err := pressure.Failure(); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	start := f.o.Now()
	err := pressure.CheckFlush()
	if err == nil {
		err = f.o.Ledger.CheckRoom() // for refusals, which the flush enters into the account
	}
	if err != nil {
		pressure.SetFlushFailed(true)
		return Result{}, err
	}
	u := f.capture(adopted)
	seq := f.o.Dir.TakeNumber()
	seg, err := f.writeAll(u, seq)
	if err != nil {
		f.abort(u)
		pressure.SetFlushFailed(true)
		return Result{}, fmt.Errorf("flush %d: %w", seq, err)
	}
	if err := f.commit(u, seg); err != nil {
		return Result{}, f.uncommitted(u, seg, err)
	}
	f.publish(u, seg)
	return f.done(seg, f.o.Now().Sub(start)), nil
}

// done counts a flush.
func (f *Flusher) done(seg *version.Segment, took time.Duration) Result {
	f.last.Store(f.o.Clock.Monotonic())
	f.o.Pressure.SetFlushFailed(false)
	f.counters.flushes.Add(1)
	f.counters.nanos.Add(int64(took))
	f.o.Took(took)
	r := Result{Took: took}
	if seg != nil {
		r.Segment, r.Bytes, r.Points, r.Series = seg.Name(), seg.Info.Size, seg.Info.Points,
			seg.Info.Series
		f.counters.bytes.Add(r.Bytes)
		f.counters.points.Add(r.Points)
	}
	f.o.Logger.Debug("flushed", "segment", r.Segment, "bytes", r.Bytes, "points", r.Points, "took",
		took)
	return r
}

// Since returns the time since the last flush.
func (f *Flusher) Since() time.Duration {
	return time.Duration(f.o.Clock.Monotonic() - f.last.Load())
}

// Rarely reports whether it is long since the last flush (trimAfter).
func (f *Flusher) Rarely() bool { return f.Since() > trimAfter }

// Stats are the flushes since the start.
type Stats struct {
	Flushes, Bytes, Points int64
	Took                   time.Duration // together
	Forgotten              int64         // deletions of series, before their time
}

// Stats returns what was flushed since the start.
func (f *Flusher) Stats() Stats {
	c := &f.counters
	return Stats{
		Flushes:   c.flushes.Load(),
		Bytes:     c.bytes.Load(),
		Points:    c.points.Load(),
		Took:      time.Duration(c.nanos.Load()),
		Forgotten: c.forgotten.Load(),
	}
}
