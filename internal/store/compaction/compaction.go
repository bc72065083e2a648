package compaction

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/host/background"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// The account's causes for points that are lost.
const (
	// LostSegment is that of a segment that is missing or cannot be opened.
	LostSegment = "segment_unreadable"

	// LostBlocks is that of damaged blocks of a segment that was merged.
	LostBlocks = "block_damaged"
)

// Buckets says which buckets there are.
type Buckets interface {
	// Buckets returns all, sorted by name, with their lifetimes as they are now.
	Buckets() []buckets.Info
	// BucketByID returns one; ok is false where it was deleted.
	BucketByID(id uint64) (info buckets.Info, ok bool)
}

// Series is what is known of series beside segments.
type Series interface {
	// Known reports whether there is a series, or may be: names could not be read.
	Known(id metric.SeriesID) bool
	// Going reports whether a series went and no flush has committed that: a start finds it first.
	Going(id metric.SeriesID) bool
	// NamesUnread reports that names could not be read, so that Each gives not all series.
	NamesUnread() bool
	// Each calls fn for every series of a bucket until it returns false.
	Each(bucket uint64, fn func(metric.SeriesID) bool)
	// Remembers reports whether a deletion that gave a series an incarnation is its last one, and
	// not yet forgotten.
	Remembers(bucket uint64, id metric.SeriesID, incarnation uint64) bool
	// Idle returns the series of a bucket of which the head holds nothing.
	Idle(bucket uint64) []segment.Hash
	// Unheld returns those of the sorted hashes that are known and of which the head holds nothing. It
	// uses the memory of hashes. It returns none as long as the log is not all in the head.
	Unheld(hashes []segment.Hash) []segment.Hash
	// Drop lets those of the series of a bucket go of which the head still holds nothing. The caller
	// has the gate.
	Drop(bucket uint64, ids []metric.SeriesID) error
}

// Options is what a Compactor works with.
type Options struct {
	Now    func() time.Time
	Clock  *clock.Clock
	Logger *slog.Logger

	Dir      *version.Dir
	Versions *version.Versions
	Gate     *version.Gate
	Manifest *manifest.Manifest
	Account  *account.Account
	Damage   *damage.Notes
	Buckets  Buckets
	Series   Series

	// Commit makes an edit of the MANIFEST permanent. Where it wants room, the error wraps
	// manifest.ErrUnwritten; after any other one Failed returns it.
	Commit func(manifest.Edit) error
	// Failed returns the error that ended all writing, nil as long as there is none.
	Failed func() error
	// Sync makes durable what is in the log.
	Sync func() error
	// Needed returns the first position in the log that a restart reads.
	Needed func() uint64
	// Unknown reports whether segments leave a slot of a series in [from, past) unknown.
	Unknown func(ctx context.Context, bucket uint64, id metric.SeriesID, from, past int64) (bool,
		error)
	// Yields reports whether merging has to make way for points now. busy says that somebody computes
	// on all processors.
	Yields func(busy bool) bool
	// Free returns the free bytes of the disk, of which merges leave MinFree; known is false where
	// the file system does not say.
	Free    func() (bytes int64, known bool)
	MinFree int64
	// MaxFile is the size at which outputs are cut into files, in bytes.
	MaxFile int64
	// Merged is called after each commit, before readers have what it made; tests crash there.
	Merged func()
}

// Compactor merges the segments of one data directory. Its methods may be called concurrently.
type Compactor struct {
	o  Options
	mu sync.Mutex // one merge at a time; before the gate

	wanted chan struct{}

	work *background.Work // its memory is index and names of the file being written

	merges, mergedBytes, pointsDeleted atomic.Int64
}

// New returns a Compactor.
func New(o Options) *Compactor {
	return &Compactor{o: o, wanted: make(chan struct{}, 1), work: background.New(o.Yields)}
}

// Want asks for a merge in the background.
func (c *Compactor) Want() {
	select {
	case c.wanted <- struct{}{}:
	default: // one is already asked for
	}
}

// Run merges whenever that is asked for, until stop is closed.
func (c *Compactor) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-stop
		cancel()
	}()
	for {
		select {
		case <-stop:
			return
		case <-c.wanted:
		}
		r, err := c.Merge(ctx)
		if err != nil && ctx.Err() == nil {
			c.o.Logger.Error("merge failed; it is tried again after the next flush", "err", err)
		} else if r.Removed > 0 {
			c.o.Logger.Debug("merged", "windows", r.Windows, "overlays", r.Overlays, "removed", r.Removed,
				"bytes", r.Bytes, "took", r.Took)
		}
	}
}

// Counts are what merges have done since the start.
type Counts struct {
	Merges        int64 // rounds that were committed
	Bytes         int64 // written by them
	PointsDeleted int64 // of deleted series that they left out
}

// Counts returns what was done so far.
func (c *Compactor) Counts() Counts {
	return Counts{
		Merges:        c.merges.Load(),
		Bytes:         c.mergedBytes.Load(),
		PointsDeleted: c.pointsDeleted.Load(),
	}
}

// OutputBytes returns the memory of index and names of the file that is being written.
func (c *Compactor) OutputBytes() int64 { return c.work.Bytes() }

// Pause waits for a merge under way, and lets none begin before resume is called.
func (c *Compactor) Pause() (resume func()) {
	c.mu.Lock()
	return c.mu.Unlock
}

// Result says what a merge did.
type Result struct {
	Windows  int // written
	Overlays int // written, 0 or 1
	Removed  int // segments
	Bytes    int64
	Took     time.Duration
}

// maxRounds bounds one call: what a round leaves to do is for the next
// flush. Two rounds are what a day that closes takes.
const maxRounds = 16

// MergeAll merges what is closed until nothing is left to do. Segments that hold
// anything of deleted series are rewritten without, and series of which nothing
// is left go.
func (c *Compactor) MergeAll(ctx context.Context) (Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum, err := c.merge(ctx, true)
	if err == nil {
		err = c.expire(ctx, c.idle())
	}
	return sum, err
}

// Merge is MergeAll for the background: it leaves what is not worth its while.
func (c *Compactor) Merge(ctx context.Context) (Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.merge(ctx, false)
}

func (c *Compactor) merge(ctx context.Context, all bool) (Result, error) {
	start := c.o.Now()
	var sum Result
	for round := 0; ; round++ {
		r, err := c.round(ctx, all)
		sum.Windows += r.Windows
		sum.Overlays += r.Overlays
		sum.Removed += r.Removed
		sum.Bytes += r.Bytes
		sum.Took = c.o.Now().Sub(start)
		if err != nil {
			return sum, err
		}
		if r.Windows+r.Overlays+r.Removed == 0 || round == maxRounds {
			return sum, errors.Join(c.DropTombstones(), c.endHoles(ctx))
		}
	}
}

// Round makes one plan and does what it says: Merge goes on until nothing is left to do.
func (c *Compactor) Round(ctx context.Context) (Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.round(ctx, false)
}

// DropIdle lets the series go of which nothing is left.
func (c *Compactor) DropIdle(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expire(ctx, c.idle())
}

// EndHoles ends the holes that hide nothing any more.
func (c *Compactor) EndHoles(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endHoles(ctx)
}
