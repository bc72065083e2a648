// Package fsck checks data directories and snapshots: every block, every chunk with its
// aggregates against recomputation (I4), the MANIFEST, the log and the catalogue. It changes
// nothing. Of a directory that nobody has in use it says what a start will say, because both ask
// package recovery for the same plan.
package fsck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/readonly"
)

// checker is a check under way.
type checker struct {
	fs     readonly.FS
	dir    string
	id     origin.Directory
	opts   Options
	report Report
	seen   map[Damage]bool // by place

	running  Running // nil where nobody has the directory in use
	listed   bool    // there is a MANIFEST
	state    *manifest.State
	lost     []manifest.LostFile // side files that were lost before
	buckets  map[uint64]bool
	names    []metric.SeriesID          // of the catalogue, each as an id of values, sorted
	lives    incarnation.Set            // of these
	begun    map[metric.SeriesID]uint64 // since when those have their columns that began anew
	named    bool                       // names holds them all
	mark     uint64                     // of the catalogue, where nobody has the directory in use
	older    map[uint64]bool            // segments that were committed before names was read
	progress Progress

	tombstones map[uint64]version.Tombstones // of the MANIFEST, by bucket
	deleted    map[metric.SeriesID]bool      // by records that no flush has committed
	unnamed    map[metric.SeriesID]bool      // have chunks, and no name in the catalogue
	unlisted   []unlisted
}

// unlisted is a name in a segment that the catalogue does not have.
type unlisted struct {
	file string
	hash segment.Hash
}

// Running is the store that has a directory in use. Its methods may be called at any time.
type Running interface {
	// Names gives all series of the catalogue to take, whose error ends it.
	Names(take func(segment.Series) error) error
	// Tombstones are those of a bucket as they are now.
	Tombstones(bucket uint64) version.Tombstones
	// HasBucket reports whether a bucket is there now.
	HasBucket(id uint64) bool
}

// CheckRunning verifies every committed file of the data directory that running has in use,
// while it goes on. The error is that of ctx.
func CheckRunning(ctx context.Context, fs vfs.FS, dir string, running Running,
	o Options) (Report, error) {
	c := newChecker(ctx, fs, dir, o)
	c.running = running
	c.report.Online = true
	return c.run()
}

// CheckDir verifies the data directory or snapshot dir, which no process may
// have open, and changes nothing in it. The error is that of ctx, of the lock,
// or wraps ErrNoStore.
func CheckDir(ctx context.Context, fs vfs.FS, dir string, o Options) (r Report, err error) {
	c := newChecker(ctx, fs, dir, o)
	names, err := fs.List(dir)
	if oserror.IsPermission(err) {
		return c.report, fmt.Errorf("%s cannot be read: %w: run this as the user that owns it", dir, err)
	}
	if err != nil {
		return c.report, fmt.Errorf("%w in %s: %w", ErrNoStore, dir, err)
	}
	if !datadir.IsStore(names) {
		return c.report, fmt.Errorf("%w in %s: name a data directory or a snapshot", ErrNoStore, dir)
	}
	lock, err := c.fs.Lock(c.path(datadir.Lock))
	if err != nil {
		return c.report, fmt.Errorf("%s is in use by %s (check a running node without --data-dir): %w",
			dir, durable.HolderOf(c.path(datadir.Lock)), err)
	}
	r, err = c.run()
	return r, errors.Join(err, lock.Close())
}

func newChecker(ctx context.Context, fs vfs.FS, dir string, o Options) *checker {
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &checker{
		fs: readonly.New(ctx, fs, o.Rate), dir: dir, opts: o, seen: make(map[Damage]bool),
		tombstones: make(map[uint64]version.Tombstones), deleted: make(map[metric.SeriesID]bool),
		begun: make(map[metric.SeriesID]uint64), unnamed: make(map[metric.SeriesID]bool),
		report: Report{Dir: dir, Damages: []Damage{}, Expected: []Damage{}},
	}
}

func (c *checker) path(elem ...string) string {
	return c.fs.PathJoin(append([]string{c.dir}, elem...)...)
}

func (c *checker) run() (Report, error) {
	start := time.Now()
	c.begin(datadir.Version)
	c.checkVersion()
	// The catalogue comes before the MANIFEST for a running store's sake: what
	// is deleted in between is then known to be gone when it is missed. What is
	// committed in between has names that the catalogue did not have yet.
	c.noteOlder()
	c.begin(datadir.Catalogue)
	c.checkCatalogue()
	c.begin(manifest.FirstName)
	c.checkManifest()
	c.checkMark()
	c.begin(datadir.WAL)
	c.checkLog()
	c.checkSides()
	c.checkSegments()
	c.report.Bytes = c.fs.Bytes()
	c.report.TookUS = time.Since(start).Microseconds()
	return c.report, c.fs.Err()
}

// begin reports progress.
func (c *checker) begin(file string) {
	c.progress.File = file
	c.progress.Files, c.progress.Bytes, c.progress.Damaged = c.report.Files, c.fs.Bytes(),
		c.report.Damaged
	c.opts.Progress(c.progress)
}

// damaged adds a place to the report, once.
func (c *checker) damaged(d Damage) {
	if c.fs.Err() != nil {
		return // what failed is the check
	}
	if c.seen[d] {
		return
	}
	c.seen[d] = true
	c.report.Damaged++
	if len(c.report.Damages) < MaxDamages {
		c.report.Damages = append(c.report.Damages, d)
	}
}

// unreadable adds a file that the disk does not give.
func (c *checker) unreadable(file string, err error) {
	c.damaged(Damage{File: file, Part: "file", Detail: "cannot be read: " + err.Error()})
}

// expected adds what a crash leaves and a start puts right.
func (c *checker) expected(d Damage) {
	if len(c.report.Expected) < MaxDamages {
		c.report.Expected = append(c.report.Expected, d)
	}
}
