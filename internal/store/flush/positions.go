package flush

import (
	"cmp"
	"slices"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
)

// Positions are the positions in the log from which on a start applies records: each
// group has one, which never falls.
type Positions struct {
	Base uint64                    // of all groups that have none of their own
	Own  []manifest.ReplayPosition // by group
}

// Next returns the replay positions behind a flush of what is captured, before which records below
// base were in the head. A group of which nothing is in an open block needs the records that the
// replay has not reached. That is all that it needed before where the replay began further back, or
// replayed the group on demand.
func (f *Positions) Next(fl *Captures, base wal.LSN) Positions {
	n := Positions{Base: max(f.Base, uint64(base))}
	for i := range fl.List {
		if lsn := fl.List[i].ReplayPosition; lsn != 0 {
			n.Own = append(n.Own, manifest.ReplayPosition{Group: fl.Groups[i].ID, LSN: lsn})
		}
	}
	n.sort()
	open := n
	for _, was := range f.Own {
		was.LSN = max(was.LSN, uint64(base))
		if _, ok := open.find(was.Group); !ok && was.LSN != n.Base {
			n.Own = append(n.Own, was)
		}
	}
	n.sort()
	return n
}

func (f *Positions) sort() {
	slices.SortFunc(f.Own, func(a, b manifest.ReplayPosition) int {
		return cmp.Compare(a.Group, b.Group)
	})
}

func (f *Positions) find(group uint32) (at int, ok bool) {
	return slices.BinarySearchFunc(f.Own, group, func(l manifest.ReplayPosition, g uint32) int {
		return cmp.Compare(l.Group, g)
	})
}

// Of returns the replay position of a group.
func (f *Positions) Of(group uint32) uint64 {
	if i, ok := f.find(group); ok {
		return f.Own[i].LSN
	}
	return f.Base
}

// Lowest returns the lowest of all.
func (f *Positions) Lowest() wal.LSN {
	low := f.Base
	for _, l := range f.Own {
		low = min(low, l.LSN)
	}
	return wal.LSN(low)
}
