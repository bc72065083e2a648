package store

import (
	"cmp"
	"slices"

	"dalmatiner/internal/manifest"
	"dalmatiner/internal/wal"
)

// replayPositions are the positions in the log from which on a start applies records: each
// group has one, which never falls.
type replayPositions struct {
	base uint64                    // of all groups that have none of their own
	own  []manifest.ReplayPosition // by group
}

// next returns the replay positions behind a flush. A group of which nothing is in an open
// block needs what the replay has not come to, which is all that it needed before
// where the replay began further back, or brought the group before its turn.
func (f *replayPositions) next(fl *flushing) replayPositions {
	n := replayPositions{base: max(f.base, uint64(fl.base))}
	for i := range fl.captures {
		if lsn := fl.captures[i].ReplayPosition; lsn != 0 {
			n.own = append(n.own, manifest.ReplayPosition{Group: fl.groups[i].ID, LSN: lsn})
		}
	}
	n.sort()
	open := n
	for _, was := range f.own {
		was.LSN = max(was.LSN, uint64(fl.base))
		if _, ok := open.find(was.Group); !ok && was.LSN != n.base {
			n.own = append(n.own, was)
		}
	}
	n.sort()
	return n
}

func (f *replayPositions) sort() {
	slices.SortFunc(f.own, func(a, b manifest.ReplayPosition) int { return cmp.Compare(a.Group, b.Group) })
}

func (f *replayPositions) find(group uint32) (at int, ok bool) {
	return slices.BinarySearchFunc(f.own, group, func(l manifest.ReplayPosition, g uint32) int { return cmp.Compare(l.Group, g) })
}

// of returns the replay position of a group.
func (f *replayPositions) of(group uint32) uint64 {
	if i, ok := f.find(group); ok {
		return f.own[i].LSN
	}
	return f.base
}

// lowest returns the lowest of all.
func (f *replayPositions) lowest() wal.LSN {
	low := f.base
	for _, l := range f.own {
		low = min(low, l.LSN)
	}
	return wal.LSN(low)
}
