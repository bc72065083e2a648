package version

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/host/durable"
)

// Dir is the files of segments below a data directory, and their numbers.
type Dir struct {
	fs        vfs.FS
	dir       string
	of        origin.Directory
	files     *segment.Files
	logger    *slog.Logger
	next      atomic.Uint64
	leftovers leftovers
}

// NewDir returns the files of segments below dir, which files opens.
func NewDir(fs vfs.FS, dir string, files *segment.Files, logger *slog.Logger) *Dir {
	return &Dir{fs: fs, dir: dir, files: files, logger: logger}
}

// SetOrigin tells which directory it is, before anything is created. It is for a start.
func (d *Dir) SetOrigin(of origin.Directory) { d.of = of }

// Origin returns which directory it is.
func (d *Dir) Origin() origin.Directory { return d.of }

// TakeNumber returns a number that no file and no deletion has or had.
func (d *Dir) TakeNumber() uint64 { return d.next.Add(1) - 1 }

// TakeDeletion returns the number of a deletion: segments that get theirs later are not hidden by
// it.
func (d *Dir) TakeDeletion() uint64 { return d.next.Add(1) }

// NextNumber returns the number that the next file gets.
func (d *Dir) NextNumber() uint64 { return d.next.Load() }

// RaiseNumber makes the next file get a number that is not lower. It is for a start, when nobody
// else takes any.
func (d *Dir) RaiseNumber(n uint64) { d.next.Store(max(d.next.Load(), n)) }

func (d *Dir) path(file string) string { return d.fs.PathJoin(d.dir, file) }

// Path is where the file of a segment lies.
func (d *Dir) Path(m *manifest.Segment) string { return d.path(datadir.Segment(m.Kind, m.Seq)) }

// Create begins the file of a segment, which does not count before Finish.
func (d *Dir) Create(m *manifest.Segment) (*segment.Writer, error) {
	w, err := segment.Create(d.fs, d.Path(m)+datadir.TempSuffix)
	if err == nil {
		w.Belongs(origin.File{Directory: d.of, Number: m.Seq})
	}
	return w, err
}

// Finish ends the file of a segment and gives it its name: it is on disk
// when the call returns, and a stray until a commit names it.
func (d *Dir) Finish(m manifest.Segment, w *segment.Writer) (*Segment, error) {
	path := d.Path(&m)
	info, err := w.Finish()
	if err != nil {
		_ = w.Abort() // the file is given up; a leftover is removed at the next start
		return nil, err
	}
	if err := d.fs.Rename(path+datadir.TempSuffix, path); err != nil {
		return nil, err
	}
	if err := durable.SyncDir(d.fs, d.fs.PathDir(path)); err != nil {
		return nil, err
	}
	m.Bytes, m.Sum, m.Points = info.Size, info.Sum, info.Points
	reader, err := d.files.Open(path)
	return &Segment{Meta: m, Reader: reader, Info: info}, err
}

// OpenedSegment returns the segment of a file that was opened.
func (d *Dir) OpenedSegment(m manifest.Segment, r *segment.Reader) *Segment {
	seg := &Segment{Meta: m, Reader: r, Info: r.Info()}
	_, err := d.fs.Stat(d.lostPath(seg.Name()))
	seg.Noted.Damaged = err == nil
	return seg
}

// UnreadSegment returns the segment of a file that the device does not give now. It
// stays: reads and merges try again, as they do with every block that cannot be
// read, and so does the next start. Its size is that of the MANIFEST.
func (d *Dir) UnreadSegment(m manifest.Segment) *Segment {
	seg := d.OpenedSegment(m, d.files.UnreadReader(d.Path(&m)))
	seg.Info.Size, seg.Info.Points = m.Bytes, m.Points
	return seg
}

// lostPath is where a segment goes that is set aside.
func (d *Dir) lostPath(file string) string {
	return d.fs.PathJoin(d.dir, datadir.LostFound, d.fs.PathBase(file))
}

// MarkDamaged marks a segment in which a merge met damage: its file is not
// deleted in the end. The mark is a second name in lost+found, which a restart
// finds. Without one, on a file system that has no links, the mark lasts until
// the store is closed.
func (d *Dir) MarkDamaged(seg *Segment) {
	seg.Noted.Damaged = true
	err := d.fs.Link(d.path(seg.Name()), d.lostPath(seg.Name()))
	if err == nil {
		err = durable.SyncDir(d.fs, d.path(datadir.LostFound))
	}
	if err != nil && !oserror.IsExist(err) {
		d.logger.Warn("a damaged segment is set aside only if the node runs on until it is merged",
			"segment", seg.Name(), "err", err)
	}
}

// SetAside moves a file to lost+found, if it is there.
func (d *Dir) SetAside(file string) error {
	if _, err := d.fs.Stat(d.path(file)); oserror.IsNotExist(err) {
		return nil // it is missing
	} else if err != nil {
		return fmt.Errorf("setting segment %s aside: %w", file, err)
	}
	// The name in lost+found may be the mark of MarkDamaged, a link to the same
	// file, and a rename to that does nothing.
	if err := d.fs.Remove(d.lostPath(file)); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("setting segment %s aside: %w", file, err)
	}
	if err := d.fs.Rename(d.path(file), d.lostPath(file)); err != nil {
		return fmt.Errorf("setting segment %s aside: %w", file, err)
	}
	return nil
}

// NoteDropped notes segments that are about to leave the current version.
func (d *Dir) NoteDropped(all []*Segment, gone func(*Segment) bool) { d.leftovers.keep(all, gone) }

// Retire closes a merged segment, which no reader has any more, and removes its file. One with
// damage is set aside.
func (d *Dir) Retire(seg *Segment) {
	err := seg.Reader.Close()
	if seg.Noted.Damaged || seg.Noted.Covered {
		err = errors.Join(err, d.SetAside(seg.Name()))
		d.leftovers.release(seg.Meta.Seq)
	} else {
		err = errors.Join(err, d.Discard(&seg.Meta))
	}
	if err != nil {
		d.logger.Warn("a merged segment stays until the next start", "segment", seg.Name(), "err", err)
	}
}

// Discard removes the file of a segment that does not count, whether or not it
// already has its name. What it cannot remove is tried again, and by the next start.
func (d *Dir) Discard(m *manifest.Segment) error {
	err := d.remove(m)
	d.leftovers.noteRemoved(m, err)
	return err
}

// NoteRemoved notes that a start removed the file of a segment, or could not because of err.
func (d *Dir) NoteRemoved(m *manifest.Segment, err error) { d.leftovers.noteRemoved(m, err) }

func (d *Dir) remove(m *manifest.Segment) (err error) {
	for _, suffix := range []string{"", datadir.TempSuffix} {
		if rmErr := d.fs.Remove(d.Path(m) + suffix); !oserror.IsNotExist(rmErr) {
			err = errors.Join(err, rmErr)
		}
	}
	return err
}

// RemoveLeftovers tries again to remove files that do not count, and makes all removals durable.
func (d *Dir) RemoveLeftovers() error {
	return d.leftovers.retry(d.remove, func() error {
		for _, dir := range datadir.SegmentDirs {
			if err := durable.SyncDir(d.fs, d.path(dir)); err != nil {
				return err
			}
		}
		return nil
	})
}

// PurgedThrough returns the lowest one of the files that do not count and may still be there.
func (d *Dir) PurgedThrough() uint64 { return d.leftovers.purgedThrough() }
