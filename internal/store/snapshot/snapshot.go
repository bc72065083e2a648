// Package snapshot makes, lists and deletes the snapshots of a data directory, and restores a data
// directory from one. DESIGN.md says why a snapshot is the image of a crash.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/durable"
)

const maxName = 100

// Errors of snapshots that callers branch on.
var (
	ErrName    = errors.New("invalid name of a snapshot")
	ErrExists  = errors.New("the snapshot exists")
	ErrUnknown = errors.New("unknown snapshot")
)

// Info describes a snapshot: the state of a store at one moment, in files of its own. Segments
// are hard links: they take space of their own only once the store has merged
// or dropped them.
type Info struct {
	Name    string    `json:"name"`
	Dir     string    `json:"dir"`
	Created time.Time `json:"created"`
	Files   int64     `json:"files"`
	Bytes   int64     `json:"bytes"` // of all files
	// bytes of them that were linked; known to the maker only
	Linked int64 `json:"linked,omitempty"`
	TookUS int64 `json:"took_us,omitempty"`
}

// checkName refuses names that could leave the directory, hide in it,
// or pass for an unfinished one.
func checkName(name string) error {
	bad := strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._-", r))
	})
	if name == "" || len(name) > maxName || bad >= 0 || name[0] == '.' ||
		strings.HasSuffix(name, datadir.TempSuffix) {
		return fmt.Errorf(
			"%w %.120q: want 1 to %d of A-Z a-z 0-9 . _ -, no dot in front and no %s behind",
			ErrName, name, maxName, datadir.TempSuffix)
	}
	return nil
}

// Store is the running store that snapshots are made of.
type Store interface {
	// Flush makes every point received before the call part of a segment.
	Flush(ctx context.Context) error
	// Still calls fill while no flush moves the beginning of the log. Merges go on. The error is
	// that of fill, or says why the store has stopped writing.
	Still(fill func(Parts) error) error
}

// Parts are what a store consists of beside its segments.
type Parts struct {
	Manifest  *manifest.Manifest
	Catalogue *catalogue.Catalogue
	Log       *wal.Log
}

// Dir is the snapshots of a data directory. Its methods may be called concurrently.
type Dir struct {
	fs  vfs.FS
	dir string
	mu  sync.Mutex // one change at a time; taken before the locks of the store
}

// New returns the snapshots of the data directory dir. There should be one for it.
func New(fs vfs.FS, dir string) *Dir { return &Dir{fs: fs, dir: dir} }

func (d *Dir) path(elem ...string) string {
	return d.fs.PathJoin(append([]string{d.dir}, elem...)...)
}

// Take has the store flush, and then makes data/snapshots/name: what a crash at
// this moment would leave, every point received before the call included. Apart
// from the flush it takes the time of some hard links and of copying what the
// log received during the flush, whatever the size of the store.
//
// The error wraps ErrName or ErrExists, or says what failed; the
// store goes on as before, and nothing is left of the snapshot.
func (d *Dir) Take(ctx context.Context, name string, of Store) (Info, error) {
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	start := time.Now()
	if _, err := d.fs.Stat(d.path(datadir.Snapshots, name)); err == nil {
		return Info{}, fmt.Errorf("%w: %s; delete it first or choose another name", ErrExists, name)
	}
	if err := d.removeUnfinished(); err != nil {
		return Info{}, err
	}
	if err := of.Flush(ctx); err != nil {
		return Info{}, err
	}
	temp := d.path(datadir.Snapshots, name+datadir.TempSuffix)
	var linked int64
	err := of.Still(func(p Parts) (err error) {
		linked, err = d.fill(temp, p)
		return err
	})
	if err == nil {
		err = d.fs.Rename(temp, d.path(datadir.Snapshots, name))
	}
	if err != nil {
		return Info{}, errors.Join(fmt.Errorf("snapshot %s: %w", name, err), d.fs.RemoveAll(temp))
	}
	if err := durable.SyncDir(d.fs, d.path(datadir.Snapshots)); err != nil {
		return Info{}, fmt.Errorf("snapshot %s: %w", name, err)
	}
	snap, err := d.describe(name)
	snap.Linked, snap.TookUS = linked, time.Since(start).Microseconds()
	return snap, err
}

// linkAttempts is how often a snapshot starts over because a merge replaced
// segments while they were linked. Linking takes milliseconds and merges are
// seconds apart.
const linkAttempts = 10

// errReplaced says that a merge replaced a segment under a snapshot's hands.
var errReplaced = errors.New("segments were merged meanwhile; try again")

// fill makes dir and everything in it durable.
func (d *Dir) fill(dir string, p Parts) (linked int64, err error) {
	fs := d.fs
	for attempt := 1; ; attempt++ {
		linked, err = d.linkSegments(dir, p.Manifest)
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
	if err := p.Catalogue.Checkpoint(fs.PathJoin(dir, datadir.Catalogue)); err != nil {
		return linked, err
	}
	if _, err := durable.CopyFile(fs, d.path(datadir.Version), fs.PathJoin(dir, datadir.Version),
		math.MaxInt64); err != nil {
		return linked, err
	}
	if _, err := p.Log.CopyTo(fs.PathJoin(dir, datadir.WAL)); err != nil {
		return linked, err
	}
	return linked, durable.SyncDir(fs, dir)
}

// linkSegments writes the MANIFEST as it is now and links what it names.
func (d *Dir) linkSegments(dir string, m *manifest.Manifest) (linked int64, err error) {
	fs := d.fs
	dirs := append(datadir.FileDirs(), datadir.SegmentDirs[:]...)
	for _, sub := range dirs {
		if err := fs.MkdirAll(fs.PathJoin(dir, sub), 0o750); err != nil {
			return 0, err
		}
	}
	state, err := m.WriteTo(dir)
	if err != nil {
		return 0, err
	}
	for i := range state.Segments {
		seg := &state.Segments[i]
		file := datadir.Segment(seg.Kind, seg.Seq)
		err := fs.Link(d.path(file), fs.PathJoin(dir, file))
		if oserror.IsNotExist(err) {
			if !m.State().HasSegment(seg.Seq) {
				return 0, errReplaced
			}
			continue // lost to damage; a start on the copy counts it again
		}
		if err != nil {
			return 0, err
		}
		linked += seg.Bytes
	}
	n, err := d.linkSides(dir, m, state)
	if linked += n; err != nil {
		return 0, err
	}
	for _, sub := range dirs {
		if err := durable.SyncDir(fs, fs.PathJoin(dir, sub)); err != nil {
			return 0, err
		}
	}
	return linked, nil
}

// linkSides links the side files that the MANIFEST names, in all copies.
func (d *Dir) linkSides(dir string, m *manifest.Manifest,
	state *manifest.State) (linked int64, err error) {
	for i := range state.Files {
		f := &state.Files[i]
		for _, path := range datadir.FilePaths(f.Name()) {
			err := d.fs.Link(d.path(path), d.fs.PathJoin(dir, path))
			if oserror.IsNotExist(err) {
				if !m.State().HasFile(f.Name()) {
					return 0, errReplaced
				}
				continue // lost to damage; a start on the copy says so again
			}
			if err != nil {
				return 0, err
			}
			linked += f.Bytes
		}
	}
	return linked, nil
}

// removeUnfinished removes what a crash left of snapshots and of deletions.
func (d *Dir) removeUnfinished() error {
	if err := d.fs.MkdirAll(d.path(datadir.Snapshots), 0o750); err != nil {
		return err
	}
	if err := durable.SyncDir(d.fs, d.dir); err != nil {
		return err
	}
	names, err := d.fs.List(d.path(datadir.Snapshots))
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, datadir.TempSuffix) {
			if err := d.fs.RemoveAll(d.path(datadir.Snapshots, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// List lists the snapshots by name.
func (d *Dir) List() ([]Info, error) {
	names, err := d.fs.List(d.path(datadir.Snapshots))
	if err != nil && !oserror.IsNotExist(err) {
		return nil, err
	}
	slices.Sort(names)
	list := []Info{}
	for _, name := range names {
		if checkName(name) != nil {
			continue
		}
		snap, err := d.describe(name)
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

func (d *Dir) describe(name string) (Info, error) {
	fs := d.fs
	snap := Info{Name: name, Dir: d.path(datadir.Snapshots, name)}
	stat, err := fs.Stat(snap.Dir)
	if err != nil {
		return snap, err
	}
	snap.Created = stat.ModTime().UTC()
	err = datadir.Walk(fs, snap.Dir, func(_ string, size int64) error {
		snap.Files++
		snap.Bytes += size
		return nil
	})
	return snap, err
}

// Delete deletes a snapshot. It is gone, or still whole, whatever
// happens. The error wraps ErrName or ErrUnknown.
func (d *Dir) Delete(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	dir := d.path(datadir.Snapshots, name)
	if _, err := d.fs.Stat(dir); err != nil {
		if oserror.IsNotExist(err) {
			return fmt.Errorf("%w %s", ErrUnknown, name)
		}
		return err
	}
	if err := d.fs.RemoveAll(dir + datadir.TempSuffix); err != nil {
		return err
	}
	if err := d.fs.Rename(dir, dir+datadir.TempSuffix); err != nil {
		return err
	}
	if err := durable.SyncDir(d.fs, d.path(datadir.Snapshots)); err != nil {
		return err
	}
	return d.fs.RemoveAll(dir + datadir.TempSuffix)
}
