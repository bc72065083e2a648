package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/datadir"
	"dalmatiner/internal/durable"
)

const maxSnapshotName = 100

// Errors of snapshots that callers branch on.
var (
	ErrSnapshotName    = errors.New("invalid name of a snapshot")
	ErrSnapshotExists  = errors.New("the snapshot exists")
	ErrUnknownSnapshot = errors.New("unknown snapshot")
)

// Snapshot is the state of a store at one moment, in files of its own. Segments
// are hard links: they take space of their own only once the store has merged
// or dropped them.
type Snapshot struct {
	Name    string    `json:"name"`
	Dir     string    `json:"dir"`
	Created time.Time `json:"created"`
	Files   int64     `json:"files"`
	Bytes   int64     `json:"bytes"`            // of all files
	Linked  int64     `json:"linked,omitempty"` // bytes of them that were linked; known to the maker only
	TookUS  int64     `json:"took_us,omitempty"`
}

// checkSnapshotName refuses names that could leave the directory, hide in it,
// or pass for an unfinished one.
func checkSnapshotName(name string) error {
	bad := strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	})
	if name == "" || len(name) > maxSnapshotName || bad >= 0 || name[0] == '.' || strings.HasSuffix(name, datadir.TempSuffix) {
		return fmt.Errorf("%w %.120q: want 1 to %d of A-Z a-z 0-9 . _ -, no dot in front and no %s behind",
			ErrSnapshotName, name, maxSnapshotName, datadir.TempSuffix)
	}
	return nil
}

// Snapshot flushes and then makes data/snapshots/name: what a crash at this
// moment would leave, every point received before the call included. Apart
// from the flush it takes the time of some hard links and of copying what the
// log received during the flush, whatever the size of the store.
//
// The error wraps ErrSnapshotName or ErrSnapshotExists, or says what failed; the
// store goes on as before, and nothing is left of the snapshot.
func (op *Operations) Snapshot(ctx context.Context, name string) (Snapshot, error) {
	if err := checkSnapshotName(name); err != nil {
		return Snapshot{}, err
	}
	op.snapshots.Lock()
	defer op.snapshots.Unlock()
	s, start := op.s, time.Now()
	if _, err := s.o.FS.Stat(s.path(datadir.Snapshots, name)); err == nil {
		return Snapshot{}, fmt.Errorf("%w: %s; delete it first or choose another name", ErrSnapshotExists, name)
	}
	if err := op.removeUnfinished(); err != nil {
		return Snapshot{}, err
	}
	if _, err := s.Flush(ctx); err != nil {
		return Snapshot{}, err
	}
	temp := s.path(datadir.Snapshots, name+datadir.TempSuffix)
	linked, err := s.fillSnapshot(temp)
	if err == nil {
		err = s.o.FS.Rename(temp, s.path(datadir.Snapshots, name))
	}
	if err != nil {
		return Snapshot{}, errors.Join(fmt.Errorf("snapshot %s: %w", name, err), s.o.FS.RemoveAll(temp))
	}
	if err := durable.SyncDir(s.o.FS, s.path(datadir.Snapshots)); err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %s: %w", name, err)
	}
	snap, err := op.describe(name)
	snap.Linked, snap.TookUS = linked, time.Since(start).Microseconds()
	return snap, err
}

// linkAttempts is how often a snapshot starts over because a merge replaced
// segments while they were linked. Linking takes milliseconds and merges are
// seconds apart.
const linkAttempts = 10

// errReplaced says that a merge replaced a segment under a snapshot's hands.
var errReplaced = errors.New("segments were merged meanwhile; try again")

// fillSnapshot makes dir and everything in it durable. Flushes, which move the
// beginning of the log, wait meanwhile; merges need not.
func (s *Store) fillSnapshot(dir string) (linked int64, err error) {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if err := s.failed(); err != nil {
		return 0, err
	}
	fs := s.o.FS
	for attempt := 1; ; attempt++ {
		linked, err = s.linkSegments(dir)
		if !errors.Is(err, errReplaced) || attempt == linkAttempts {
			break
		}
		if err := fs.RemoveAll(dir); err != nil {
			return 0, err
		}
	}
	if err != nil {
		return 0, err
	}
	if err := s.catalogue.Checkpoint(fs.PathJoin(dir, datadir.Catalogue)); err != nil {
		return linked, err
	}
	if _, err := durable.CopyFile(fs, s.path(datadir.Version), fs.PathJoin(dir, datadir.Version), math.MaxInt64); err != nil {
		return linked, err
	}
	if _, err := s.log.CopyTo(fs.PathJoin(dir, datadir.WAL)); err != nil {
		return linked, err
	}
	return linked, durable.SyncDir(fs, dir)
}

// linkSegments writes the MANIFEST as it is now and links what it names.
func (s *Store) linkSegments(dir string) (linked int64, err error) {
	fs := s.o.FS
	for _, sub := range datadir.SegmentDirs {
		if err := fs.MkdirAll(fs.PathJoin(dir, sub), 0o750); err != nil {
			return 0, err
		}
	}
	state, err := s.manifest.WriteTo(dir)
	if err != nil {
		return 0, err
	}
	for i := range state.Segments {
		m := &state.Segments[i]
		err := fs.Link(s.path(segmentFile(m)), fs.PathJoin(dir, segmentFile(m)))
		if oserror.IsNotExist(err) {
			if !s.manifest.State().HasSegment(m.Seq) {
				return 0, errReplaced
			}
			continue // lost to damage; a start on the copy counts it again
		}
		if err != nil {
			return 0, err
		}
		linked += m.Bytes
	}
	for _, sub := range datadir.SegmentDirs {
		if err := durable.SyncDir(fs, fs.PathJoin(dir, sub)); err != nil {
			return 0, err
		}
	}
	return linked, nil
}

// removeUnfinished removes what a crash left of snapshots and of deletions.
func (op *Operations) removeUnfinished() error {
	s := op.s
	if err := s.o.FS.MkdirAll(s.path(datadir.Snapshots), 0o750); err != nil {
		return err
	}
	if err := durable.SyncDir(s.o.FS, s.o.Dir); err != nil {
		return err
	}
	names, err := s.o.FS.List(s.path(datadir.Snapshots))
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, datadir.TempSuffix) {
			if err := s.o.FS.RemoveAll(s.path(datadir.Snapshots, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Snapshots lists the snapshots by name.
func (op *Operations) Snapshots() ([]Snapshot, error) {
	s := op.s
	names, err := s.o.FS.List(s.path(datadir.Snapshots))
	if err != nil && !oserror.IsNotExist(err) {
		return nil, err
	}
	slices.Sort(names)
	list := []Snapshot{}
	for _, name := range names {
		if checkSnapshotName(name) != nil {
			continue
		}
		snap, err := op.describe(name)
		if oserror.IsNotExist(err) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, snap)
	}
	return list, nil
}

func (op *Operations) describe(name string) (Snapshot, error) {
	fs := op.s.o.FS
	snap := Snapshot{Name: name, Dir: op.s.path(datadir.Snapshots, name)}
	stat, err := fs.Stat(snap.Dir)
	if err != nil {
		return snap, err
	}
	snap.Created = stat.ModTime().UTC()
	err = walkFiles(fs, snap.Dir, "", func(_ string, size int64) error {
		snap.Files++
		snap.Bytes += size
		return nil
	})
	return snap, err
}

// DeleteSnapshot deletes a snapshot. It is gone, or still whole, whatever
// happens. The error wraps ErrSnapshotName or ErrUnknownSnapshot.
func (op *Operations) DeleteSnapshot(name string) error {
	if err := checkSnapshotName(name); err != nil {
		return err
	}
	op.snapshots.Lock()
	defer op.snapshots.Unlock()
	s := op.s
	dir := s.path(datadir.Snapshots, name)
	if _, err := s.o.FS.Stat(dir); err != nil {
		if oserror.IsNotExist(err) {
			return fmt.Errorf("%w %s", ErrUnknownSnapshot, name)
		}
		return err
	}
	if err := s.o.FS.RemoveAll(dir + datadir.TempSuffix); err != nil {
		return err
	}
	if err := s.o.FS.Rename(dir, dir+datadir.TempSuffix); err != nil {
		return err
	}
	if err := durable.SyncDir(s.o.FS, s.path(datadir.Snapshots)); err != nil {
		return err
	}
	return s.o.FS.RemoveAll(dir + datadir.TempSuffix)
}

// walkFiles calls fn for every file below dir/sub with its path relative to
// dir, in order.
func walkFiles(fs vfs.FS, dir, sub string, fn func(file string, size int64) error) error {
	names, err := fs.List(fs.PathJoin(dir, sub))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		file := fs.PathJoin(sub, name)
		stat, err := fs.Stat(fs.PathJoin(dir, file))
		switch {
		case err != nil:
			return err
		case stat.IsDir():
			err = walkFiles(fs, dir, file, fn)
		default:
			err = fn(file, stat.Size())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
