package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/errors/oserror"

	"dalmatiner/internal/durable"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/recovery"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
)

// LostSegment is the account's cause for points in a segment that is missing
// or cannot be opened.
const LostSegment = "segment_unreadable"

// segmentDirs are the directories of segments, by manifest.Kind.
var segmentDirs = recovery.Dirs

// segmentFile is the path of a segment below the data directory.
func segmentFile(m *manifest.Segment) string { return recovery.Path(m.Kind, m.Seq) }

// openLater is for a file that the device does not give now. It
// stays: reads and merges try again, as they do with every block that cannot be
// read, and so does the next start. Its size is that of the MANIFEST.
func (s *Store) openLater(m manifest.Segment) *version.Segment {
	seg := s.stored(m, s.files.Later(s.path(segmentFile(&m))))
	seg.Info.Size, seg.Info.Points = m.Bytes, m.Points
	return seg
}

func (s *Store) stored(m manifest.Segment, r *segment.Reader) *version.Segment {
	seg := &version.Segment{Meta: m, Reader: r, Info: r.Info()}
	_, err := s.o.FS.Stat(s.lostPath(seg.Name()))
	seg.Noted.Damaged = err == nil
	return seg
}

// lostPath is where a segment goes that is set aside.
func (s *Store) lostPath(file string) string { return s.path(lostDir, s.o.FS.PathBase(file)) }

// markDamaged marks a segment in which a merge met damage: its file is not
// deleted in the end. The mark is a second name in lost+found, which a restart
// finds. Without one, on a file system that has no links, the mark lasts until
// the store is closed.
func (s *Store) markDamaged(seg *version.Segment) {
	seg.Noted.Damaged = true
	err := s.o.FS.Link(s.path(seg.Name()), s.lostPath(seg.Name()))
	if err == nil {
		err = durable.SyncDir(s.o.FS, s.path(lostDir))
	}
	if err != nil && !oserror.IsExist(err) {
		s.o.Logger.Warn("a damaged segment is set aside only if the node runs on until it is merged", "segment", seg.Name(), "err", err)
	}
}

// moveToLost moves a file to lost+found, if it is there.
func (s *Store) moveToLost(file string) error {
	if _, err := s.o.FS.Stat(s.path(file)); oserror.IsNotExist(err) {
		return nil // it is missing
	} else if err != nil {
		return fmt.Errorf("setting segment %s aside: %w", file, err)
	}
	// The name in lost+found may be the mark of markDamaged, a link to the same
	// file, and a rename to that does nothing.
	if err := s.o.FS.Remove(s.lostPath(file)); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("setting segment %s aside: %w", file, err)
	}
	if err := s.o.FS.Rename(s.path(file), s.lostPath(file)); err != nil {
		return fmt.Errorf("setting segment %s aside: %w", file, err)
	}
	return nil
}

// discard removes the file of a segment that does not count, whether or not it
// already has its name. What it cannot remove is tried again, and by the next start.
func (s *Store) discard(m *manifest.Segment) error {
	err := s.tryRemove(m)
	s.leftovers.Removed(m, err)
	return err
}

func (s *Store) tryRemove(m *manifest.Segment) (err error) {
	for _, suffix := range []string{"", tempSuffix} {
		if rmErr := s.o.FS.Remove(s.path(segmentFile(m) + suffix)); !oserror.IsNotExist(rmErr) {
			err = errors.Join(err, rmErr)
		}
	}
	return err
}

// removeLeftovers tries again, and makes removals durable.
func (s *Store) removeLeftovers() error {
	return s.leftovers.Retry(s.tryRemove, func() error {
		for _, dir := range segmentDirs {
			if err := durable.SyncDir(s.o.FS, s.path(dir)); err != nil {
				return err
			}
		}
		return nil
	})
}
