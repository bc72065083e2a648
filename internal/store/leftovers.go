package store

import (
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/cockroachdb/errors/oserror"

	"dalmatiner/internal/durable"
	"dalmatiner/internal/manifest"
)

// leftovers are files of segments that do not count any more and that may still be
// there after a crash: their removal failed, or is not known to be durable.
type leftovers struct {
	mu      sync.Mutex
	removed bool               // something was, since the directories were synced
	list    []manifest.Segment // could not be removed
	kept    []*storedSegment   // are merged away, and stay for those who read them
}

// keep notes segments that are about to be dropped.
func (l *leftovers) keep(all []*storedSegment, gone func(*storedSegment) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seg := range all {
		if gone(seg) {
			l.kept = append(l.kept, seg)
		}
	}
}

// forget ends what keep began.
func (l *leftovers) forget(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.DeleteFunc(l.kept, func(seg *storedSegment) bool { return seg.meta.Seq == seq })
}

// clean returns the lowest CleanTo of those that are not removed.
func (l *leftovers) clean() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	low := uint64(math.MaxUint64)
	for i := range l.list {
		low = min(low, l.list[i].CleanTo())
	}
	for _, seg := range l.kept {
		low = min(low, seg.cleanTo())
	}
	return low
}

// discard removes the file of a segment that does not count, whether or not it
// already has its name. What it cannot remove is tried again, and by the next start.
func (s *Store) discard(m *manifest.Segment) error {
	err := s.tryRemove(m)
	l := &s.leftovers
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed = true
	l.kept = slices.DeleteFunc(l.kept, func(seg *storedSegment) bool { return seg.meta.Seq == m.Seq })
	if err != nil {
		l.list = append(l.list, *m)
	}
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
	l := &s.leftovers
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(m manifest.Segment) bool {
		err := s.tryRemove(&m)
		l.removed = l.removed || err == nil
		return err == nil
	})
	if !l.removed {
		return nil
	}
	for _, dir := range segmentDirs {
		if err := durable.SyncDir(s.o.FS, s.path(dir)); err != nil {
			return err
		}
	}
	l.removed = false
	return nil
}
