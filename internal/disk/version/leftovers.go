package version

import (
	"math"
	"slices"
	"sync"

	"dalmatiner/internal/disk/manifest"
)

// leftovers are files of segments that do not count any more and that may still be
// there after a crash: their removal failed, or is not known to be durable.
type leftovers struct {
	mu      sync.Mutex
	removed bool               // something was, since the directories were synced
	list    []manifest.Segment // could not be removed
	kept    []*Segment         // are merged away, and stay for those who read them
}

// keep notes segments that are about to be dropped.
func (l *leftovers) keep(all []*Segment, gone func(*Segment) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seg := range all {
		if gone(seg) {
			l.kept = append(l.kept, seg)
		}
	}
}

// release ends what keep began: the file is gone, or set aside.
func (l *leftovers) release(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.DeleteFunc(l.kept, func(seg *Segment) bool { return seg.Meta.Seq == seq })
}

// purgedThrough returns the lowest one of those that are not removed.
func (l *leftovers) purgedThrough() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	low := uint64(math.MaxUint64)
	for i := range l.list {
		low = min(low, l.list[i].PurgedThrough())
	}
	for _, seg := range l.kept {
		low = min(low, seg.PurgedThrough())
	}
	return low
}

// noteRemoved notes that the file of a segment was removed, or why it could not be. Then retry
// tries again.
func (l *leftovers) noteRemoved(m *manifest.Segment, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed = true
	l.kept = slices.DeleteFunc(l.kept, func(seg *Segment) bool { return seg.Meta.Seq == m.Seq })
	if err != nil {
		l.list = append(l.list, *m)
	}
}

// retry removes once more what could not be removed, and makes removals durable by sync.
func (l *leftovers) retry(remove func(*manifest.Segment) error, sync func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(m manifest.Segment) bool {
		err := remove(&m)
		l.removed = l.removed || err == nil
		return err == nil
	})
	if !l.removed {
		return nil
	}
	if err := sync(); err != nil {
		return err
	}
	l.removed = false
	return nil
}
