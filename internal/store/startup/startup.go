// Package startup opens a data directory: everything that a start does before the log
// is replayed. It brings MANIFEST, segments and catalogue into agreement and fills the
// rooms in memory with what they say. DESIGN.md has the steps.
package startup

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/mirror"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/recovery"
	"dalmatiner/internal/write/columns"
)

// Options are what a start works with. All is required, and the rooms in it are empty.
type Options struct {
	FS     vfs.FS
	Dir    string
	Logger *slog.Logger
	Now    func() time.Time
	Log    wal.Options // of the log; FS, Dir, Logger and MinLSN are set by Open

	Files    *segment.Files // opens segments
	Segments *version.Dir
	Versions *version.Versions
	Buckets  *buckets.Registry[*columns.Bucket]
	Columns  *columns.Table
	Account  *account.Account
	Copies   *account.Account // the ledger of copies
	Damage   *damage.Notes

	// SideFiles is given the state, once that is permanent, and Found.FilesTaken. The state has the
	// side files that count and the lost ones. It does not wait for what it does with them.
	SideFiles func(state *manifest.State, taken bool)

	// NewBucket returns a bucket without series.
	NewBucket func(buckets.Info) *columns.Bucket
}

// Directory is an open data directory.
type Directory struct {
	Manifest  *manifest.Manifest
	Catalogue *catalogue.Catalogue
	Log       *wal.Log

	versions *version.Versions
	lock     io.Closer
}

// Close closes the log, the MANIFEST, the catalogue and the segments, for which it
// waits for all readers, and gives the directory free.
func (d *Directory) Close() error {
	var errs []error
	if d.Log != nil {
		errs = append(errs, d.Log.Close())
	}
	if d.Manifest != nil {
		errs = append(errs, d.Manifest.Close())
	}
	if d.Catalogue != nil {
		errs = append(errs, d.Catalogue.Close())
	}
	for _, seg := range d.versions.Close() {
		errs = append(errs, seg.Reader.Close())
	}
	return errors.Join(append(errs, d.lock.Close())...)
}

// Found is what a start knows when it begins to replay the log.
type Found struct {
	State     *manifest.State // to go on with
	Ownership *columns.Ownership
	// FilesTaken says that there are side files that the MANIFEST did not name: what the log has
	// below their positions may be in none of them.
	FilesTaken bool
}

// start is a start under way.
type start struct {
	o       Options
	d       Directory
	found   Found
	created bool             // there was no MANIFEST
	plan    recovery.Plan    // what becomes of the files of segments
	readers recovery.Readers // of those that open and are in no version yet
}

// Open opens the data directory, makes it where there is none, and fills the rooms.
// It fails on a directory that another process has open or that a newer version
// wrote, and on failing I/O, and has closed everything then, Versions too. Torn,
// damaged and missing files are reported to Damage and set aside (I6).
func Open(o Options) (*Directory, Found, error) {
	lock, id, err := datadir.Acquire(o.FS, o.Dir,
		func(said origin.Directory, ok bool) origin.Directory {
			if id := recovery.DirectoryOf(o.FS, o.Dir, said, ok); id.IsKnown() {
				return id
			}
			return origin.NewDirectory()
		}, o.Damage.Report)
	if err != nil {
		return nil, Found{}, err
	}
	o.Segments.SetOrigin(id)
	s := &start{o: o, d: Directory{versions: o.Versions, lock: lock}}
	for _, step := range []func() error{
		s.openManifest, s.planFiles, s.restore, s.openSegments, s.showHoles, s.openCatalogue, s.openLog,
	} {
		if err := step(); err != nil {
			return nil, Found{}, errors.Join(formatError(err), s.readers.Close(), s.d.Close())
		}
	}
	return &s.d, s.found, nil
}

// formatError says what to do about a file that another version of the program
// wrote.
func formatError(err error) error {
	for _, format := range []error{manifest.ErrFormat, segment.ErrFormat, wal.ErrFormat} {
		if errors.Is(err, format) {
			return fmt.Errorf("%w: use the program that wrote it, or move the data directory away and "+
				"send the points again", err)
		}
	}
	return err
}

func (s *start) path(elem ...string) string {
	return s.o.FS.PathJoin(append([]string{s.o.Dir}, elem...)...)
}

// openManifest reads the MANIFEST and what lies beside it.
func (s *start) openManifest() error {
	if err := s.beginLog(); err != nil {
		return err
	}
	m, state, report, err := manifest.Open(s.o.FS, s.o.Dir, s.o.Segments.Origin(), s.o.Logger)
	if err != nil {
		return err
	}
	s.d.Manifest, s.found.State, s.created = m, state, report.Created
	for _, d := range report.Damaged {
		s.o.Damage.Report("MANIFEST", errors.New(d.String()))
	}
	for _, what := range report.Lost {
		s.o.Damage.Report("MANIFEST", errors.New("lost in both copies: "+what))
	}
	if report.Deferred != nil {
		s.o.Logger.Warn("the copies of the MANIFEST wait for room on the disk", "err", report.Deferred)
	}
	return nil
}

// planFiles decides what becomes of every file of segments, and with which state the
// start goes on. Nothing is changed yet.
func (s *start) planFiles() error {
	state := s.found.State
	in, readers, err := recovery.Look(s.o.FS, s.o.Dir, s.o.Segments.Origin(), state, s.o.Files.Open)
	s.readers = readers
	if err != nil {
		return err
	}
	in.Now = s.o.Now().UnixMilli()
	s.plan = recovery.Decide(in)
	if used := in.LogFrom != 0 || len(in.Files) > 0; used && state.Suspect {
		s.o.Buckets.DeletionsLost(s.o.Now()) // edits with some may be lost
		if s.created {
			s.o.Damage.Report("MANIFEST",
				errors.New("both copies are missing: the segments say what they held"))
		}
	}
	for _, l := range s.plan.Lines() {
		if l.Damage {
			s.o.Damage.Report(l.What(), errors.New(l.Text))
		} else {
			s.o.Logger.Info("start: " + l.File + " " + l.Text)
		}
	}
	if s.plan.Rebuilt {
		s.plan.State.Catalogue |= catalogue.NamesUnread // it may not have all that segments name
	}
	s.found.State = s.plan.State
	s.found.FilesTaken = len(s.plan.Edit.Files.Add) > 0
	return nil
}

// restore enters into memory what the state says of buckets, deletions and numbers,
// and the account.
func (s *start) restore() error {
	state, o := s.found.State, &s.o
	for _, info := range state.Buckets {
		b := o.NewBucket(info)
		raiseIncarnations(b, state.Tombstones)
		raiseIncarnations(b, state.Remembered)
		o.Buckets.Add(b)
	}
	o.Versions.Publish(func(v *version.Version) {
		for _, b := range state.Buckets {
			v.Hide(b.ID, version.FromManifest(b.ID, state.Tombstones))
		}
	})
	for _, h := range state.Highest {
		o.Columns.RaiseHighest(h.Bucket, h.Slot)
	}
	for _, d := range state.DeletedBuckets {
		o.Buckets.NoteDeleted(d)
	}
	o.Buckets.RaiseDeletionsFrom(state.DeletionsFrom)
	o.Columns.Deletions.Forget(state.RememberAfter)
	o.Columns.Deletions.Advance(max(state.Incarnation, o.Buckets.DeletionsFrom()))
	o.Columns.Groups.Skip(state.NextGroup)
	o.Segments.RaiseNumber(max(state.NextSeq, 1))
	if state.Account != nil {
		if err := o.Account.Restore(state.Account); err != nil {
			o.Damage.Report("account in the MANIFEST", err)
		}
	}
	if state.Copies != nil {
		if err := o.Copies.Restore(state.Copies); err != nil {
			o.Damage.Report("ledger of copies in the MANIFEST", err)
		}
	}
	s.found.Ownership = o.Columns.NewOwnership(state.ReplayFrom(), o.Damage)
	return nil
}

// raiseIncarnations notes the deletions of a bucket that the MANIFEST has.
func raiseIncarnations(b *columns.Bucket, all []manifest.Tombstones) {
	for i := range all {
		if t := &all[i]; t.Bucket == b.ID {
			for j := range t.Series {
				b.Incarnations.Raise(metric.SeriesID(t.Series[j].Hash), t.Incarnation)
			}
		}
	}
}

// openLog opens the log, above everything that MANIFEST and catalogue know of it.
func (s *start) openLog() (err error) {
	o := s.o.Log
	o.FS, o.Dir, o.Logger, o.ID = s.o.FS, s.path(datadir.WAL), s.o.Logger, s.o.Segments.Origin()
	if err := s.setForeignLogAside(); err != nil {
		return err
	}
	highest := max(s.found.State.AccountLSN, s.found.Ownership.Highest()+1)
	for i := range s.found.State.Files {
		highest = max(highest, s.found.State.Files[i].Past) // side files have all records below
	}
	o.MinLSN = wal.LSN(highest)
	s.d.Log, err = wal.Open(o)
	return err
}

// setForeignLogAside moves the files of other logs to lost+found.
func (s *start) setForeignLogAside() error {
	foreign, err := wal.ForeignFiles(s.o.FS, s.path(datadir.WAL), s.o.Segments.Origin())
	if err != nil {
		return err
	}
	for name, why := range foreign {
		file := datadir.WAL + "/" + name
		s.o.Damage.Report(file, why)
		if err := mirror.SetAside(s.o.FS, s.o.Dir, file); err != nil {
			return err
		}
		if err := s.o.FS.Remove(s.path(file)); err != nil {
			return err
		}
	}
	return nil
}

// beginLog begins the log in front of the MANIFEST: where there is one and no log, the log is lost,
// and with it what no flush has written.
func (s *start) beginLog() error {
	for _, name := range []string{manifest.FirstName, manifest.SecondName} {
		if _, err := s.o.FS.Stat(s.path(name)); oserror.IsNotExist(err) {
			continue
		} else if err != nil {
			return err
		}
		if missing, err := wal.IsMissing(s.o.FS, s.path(datadir.WAL)); err != nil {
			return err
		} else if missing {
			s.o.Damage.Report("log", recovery.ErrNoLog)
		}
		break
	}
	err := wal.Begin(s.o.FS, s.path(datadir.WAL), s.o.Segments.Origin())
	if durable.IsFull(err) {
		return nil // the first record makes what is missing
	}
	return err
}
