package store

import (
	"fmt"

	"github.com/cockroachdb/errors/oserror"

	"dalmatiner/internal/durable"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/recovery"
	"dalmatiner/internal/segment"
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
func (s *Store) openLater(m manifest.Segment) *storedSegment {
	seg := s.stored(m, s.files.Later(s.path(segmentFile(&m))))
	seg.info.Size, seg.info.Points = m.Bytes, m.Points
	return seg
}

func (s *Store) stored(m manifest.Segment, r *segment.Reader) *storedSegment {
	seg := &storedSegment{meta: m, reader: r, info: r.Info()}
	_, err := s.o.FS.Stat(s.lostPath(seg.name()))
	seg.damaged = err == nil
	return seg
}

// lostPath is where a segment goes that is set aside.
func (s *Store) lostPath(file string) string { return s.path(lostDir, s.o.FS.PathBase(file)) }

// markDamaged marks a segment in which a merge met damage: its file is not
// deleted in the end. The mark is a second name in lost+found, which a restart
// finds. Without one, on a file system that has no links, the mark lasts until
// the store is closed.
func (s *Store) markDamaged(seg *storedSegment) {
	seg.damaged = true
	err := s.o.FS.Link(s.path(seg.name()), s.lostPath(seg.name()))
	if err == nil {
		err = durable.SyncDir(s.o.FS, s.path(lostDir))
	}
	if err != nil && !oserror.IsExist(err) {
		s.o.Logger.Warn("a damaged segment is set aside only if the node runs on until it is merged", "segment", seg.name(), "err", err)
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
