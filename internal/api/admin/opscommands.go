package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/snapshot"
)

// StatusCommand shows the state of the node.
type StatusCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints one screen.
func (c *StatusCommand) Run(env *Env) error {
	st, err := c.client(env).Status(env.Context)
	if err != nil {
		return err
	}
	return c.Write(env, st, func(w io.Writer) error { return writeStatus(w, st, c.Addr) })
}

// Segments is the command tree of ddb admin segments.
type Segments struct {
	List SegmentsCommand `cmd:"" help:"List the committed segments."`
}

// SegmentsCommand lists segments.
type SegmentsCommand struct {
	Target `embed:""`
	Output `embed:""`
	Bucket string `help:"List only those that hold something of this bucket, and count that." placeholder:"NAME"`
}

// Help is shown below the usage of the command.
func (c *SegmentsCommand) Help() string {
	return `A flush writes everything that left memory since the last one into one file
below flush/; merging makes files of one bucket and a longer time of them.

  Points, Series  in the file, of all buckets
  Chunks          runs of 720 slots of one series; with --bucket those of the bucket
  Bits/point      of the whole file
  From, To        times of the chunks (UTC), whole chunks; slots with --bucket`
}

// Run prints the table of segments.
func (c *SegmentsCommand) Run(env *Env) error {
	bucket := ""
	if c.Bucket != "" {
		name, err := canonical(c.Bucket)
		if err != nil {
			return fmt.Errorf("bucket %s: %w", c.Bucket, err)
		}
		bucket = name
	}
	list, err := c.client(env).Segments(env.Context, bucket)
	if err != nil {
		return err
	}
	return c.Write(env, list, func(w io.Writer) error { return writeSegments(w, list, bucket != "") })
}

// Cache is the command tree of ddb admin cache.
type Cache struct {
	Stats CacheCommand `cmd:"" help:"Show what the node keeps in memory, and how much of it."`
}

// CacheCommand shows what is in memory.
type CacheCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints the table of caches.
func (c *CacheCommand) Run(env *Env) error {
	list, err := c.client(env).Caches(env.Context)
	if err != nil {
		return err
	}
	return c.Write(env, list, func(w io.Writer) error { return writeCaches(w, list) })
}

// CheckCommand verifies files.
type CheckCommand struct {
	Target  `embed:""`
	Output  `embed:""`
	DataDir string `help:"Check this data directory or snapshot, which no node has open, instead of a running node." placeholder:"DIR"`
	Rate    string `help:"Bytes to read per second at most; 64MB from a running node, unbounded from a directory." placeholder:"SIZE"`
}

// Help is shown below the usage of the command.
func (c *CheckCommand) Help() string {
	return `Reads every committed file, verifies the checksum of every block, decodes every
chunk, compares its aggregates with its points, and the names of series with the
catalogue. Nothing is changed, but for damaged files of tags: a running node
writes them again. It goes on with its work meanwhile.

Exit code: 0 everything is whole, 1 there is damage, 2 the check was not made.

Damaged blocks are never served; the rest of their file is. What to do: restore
from a snapshot, or go on without the points of the damaged blocks.

Examples:
  ddb admin check
  ddb admin check --rate 10MB
  ddb admin check --data-dir /var/lib/ddb           after ddb was stopped
  ddb admin check --data-dir data/snapshots/daily   before a restore`
}

// Run checks and prints the report. Its error says that there is damage; a
// UsageError that nothing is known.
func (c *CheckCommand) Run(env *Env) error {
	report, err := c.check(env)
	if err != nil {
		return &UsageError{err}
	}
	if err := c.Write(env, report, func(w io.Writer) error {
		return writeCheck(w, &report)
	}); err != nil {
		return &UsageError{err}
	}
	if report.Damaged > 0 {
		return fmt.Errorf("damaged places: %d", report.Damaged)
	}
	return nil
}

// onlineRate leaves a running node most of its disk.
const onlineRate = 64 << 20

func (c *CheckCommand) check(env *Env) (fsck.Report, error) {
	rate := int64(0)
	if c.DataDir == "" {
		rate = onlineRate
	}
	if c.Rate != "" {
		n, err := config.ParseSize(c.Rate)
		if err != nil || n <= 0 {
			return fsck.Report{}, fmt.Errorf("rate %q: want a size such as 64MB", c.Rate)
		}
		rate = n
	}
	progress := newProgressLine(env.Err)
	if c.DataDir == "" {
		return c.client(env).Check(env.Context, rate, progress.show)
	}
	return fsck.CheckDir(env.Context, vfs.Default, c.DataDir,
		fsck.Options{Rate: rate, Progress: progress.show})
}

// progressLine shows how far long work is, at most once a second.
type progressLine struct {
	w     io.Writer
	start time.Time
	next  time.Time
}

func newProgressLine(w io.Writer) *progressLine {
	now := time.Now()
	return &progressLine{w: w, start: now, next: now.Add(time.Second)}
}

func (p *progressLine) show(s fsck.Progress) {
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(time.Second)
	total := ""
	if s.TotalFiles > 0 {
		total = fmt.Sprintf(" of %d", s.TotalFiles)
	}
	fmt.Fprintf(p.w, "%s: %d%s files, %s read, %d damaged; %s\n",
		now.Sub(p.start).Round(time.Second), s.Files, total, size(s.Bytes), s.Damaged, s.File)
}

// Snapshots is the command tree of ddb admin snapshot.
type Snapshots struct {
	Create SnapshotCommand       `cmd:"" default:"withargs" help:"Make a snapshot: ddb admin snapshot NAME."`
	List   SnapshotListCommand   `cmd:"" help:"List the snapshots."`
	Delete SnapshotDeleteCommand `cmd:"" help:"Delete a snapshot."`
}

// SnapshotCommand makes a snapshot.
type SnapshotCommand struct {
	Target `embed:""`
	Output `embed:""`
	Name   string `arg:"" help:"Name of the snapshot: letters, digits, . _ and -."`
}

// Help is shown below the usage of the command.
func (c *SnapshotCommand) Help() string {
	return `A snapshot holds every point the node had received, in snapshots/NAME of its
data directory. Segments are hard links: it takes no time and, until the node
merges or drops them, no space. Copy it elsewhere for a backup; a snapshot on the
same disk is none.

Examples:
  ddb admin snapshot daily-2026-11-20
  ddb admin snapshot list
  ddb admin snapshot delete daily-2026-11-13
  ddb restore --snapshot data/snapshots/daily-2026-11-20 --data-dir restored`
}

// Run makes the snapshot and says what it holds.
func (c *SnapshotCommand) Run(env *Env) error {
	s, err := c.client(env).Snapshot(env.Context, c.Name)
	if err != nil {
		return err
	}
	return c.Write(env, s, func(w io.Writer) error {
		_, err := fmt.Fprintf(w,
			"Snapshot %s: %d files, %d bytes, %d of them linked, in %s ms.\nIt is in %s on the node.\n",
			s.Name, s.Files, s.Bytes, s.Linked, milliseconds(time.Duration(s.TookUS)*time.Microsecond),
			s.Dir)
		return err
	})
}

// SnapshotListCommand lists the snapshots.
type SnapshotListCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints the table of snapshots.
func (c *SnapshotListCommand) Run(env *Env) error {
	list, err := c.client(env).Snapshots(env.Context)
	if err != nil {
		return err
	}
	return c.Write(env, list, func(w io.Writer) error { return writeSnapshots(w, list, c.Addr) })
}

// SnapshotDeleteCommand deletes a snapshot.
type SnapshotDeleteCommand struct {
	Target `embed:""`
	Name   string `arg:"" help:"Name of the snapshot."`
}

// Run deletes the snapshot and says so.
func (c *SnapshotDeleteCommand) Run(env *Env) error {
	err := c.client(env).DeleteSnapshot(env.Context, c.Name)
	if problem := (*statusError)(nil); errors.As(err, &problem) &&
		problem.Status == http.StatusNotFound {
		return fmt.Errorf("%w: %s shows all", err, command("ddb admin snapshot list", c.Addr))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Out, "Deleted snapshot %s.\n", c.Name)
	return err
}

// RestoreCommand makes a data directory out of a snapshot: ddb restore.
type RestoreCommand struct {
	Output      `embed:""`
	Snapshot    string `required:"" help:"Directory of the snapshot, or data directory of a node that does not run." placeholder:"DIR"`
	DataDir     string `required:"" help:"Data directory to make: new or empty." placeholder:"DIR"`
	Link        bool   `help:"Make hard links of segments instead of copies; both directories must be on one file system."`
	AllowDamage bool   `help:"Restore a damaged snapshot: the node then serves what is whole in it."`
}

// Help is shown below the usage of the command.
func (c *RestoreCommand) Help() string {
	return `No node is needed. Every file is copied and the copy is verified before it
becomes a data directory; nothing is left behind when something is wrong.

Example:
  ddb restore --snapshot data/snapshots/daily --data-dir restored
  ddb serve --data-dir restored`
}

// Run restores and says what.
func (c *RestoreCommand) Run(env *Env) error {
	progress := newProgressLine(env.Err)
	r, err := snapshot.Restore(env.Context, snapshot.RestoreOptions{
		FS: vfs.Default, From: c.Snapshot, To: c.DataDir, Link: c.Link, AllowDamage: c.AllowDamage,
		Progress: progress.show,
	})
	if errors.Is(err, fsck.ErrNoStore) || errors.Is(err, snapshot.ErrNotEmpty) {
		return &UsageError{err}
	}
	if err != nil {
		if errors.Is(err, snapshot.ErrDamaged) {
			err = errors.Join(err, writeDamages(env.Err, r.Check.Damages, r.Check.Damaged))
		}
		return err
	}
	return c.Write(env, r, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w,
			"Restored %d files, %d bytes, %d of them linked, into %s: %d series, %d points in segments.\n",
			r.Files, r.Bytes, r.Linked, c.DataDir, r.Check.Series, r.Check.Points); err != nil {
			return err
		}
		return writeDamages(w, r.Check.Damages, r.Check.Damaged)
	})
}
