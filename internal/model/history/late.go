package history

import (
	"cmp"
	"slices"
)

// lateNotes are the changes of slots that are not recent, each by itself: a sender in the far past
// takes nothing between there and now from a cache. They are in no order.
type lateNotes []lateNote

// lateNote says that the slots [lo, past) changed, the last time at a count or before.
type lateNote struct {
	lo, past int64
	count    uint64
}

const (
	maxLate      = 256
	lateNoteSize = 24

	// granule is to what late notes are rounded: who fills in the past notes so many slots once.
	granule = 60

	// newLate is how many of the newest notes stay as they are when there are too many.
	newLate = maxLate / 4
)

// lowest returns the lowest slot from one on, and below another one, that changed behind a count;
// the other one where there is none.
func (l lateNotes) lowest(count uint64, from, below int64) int64 {
	for i := range l {
		if n := &l[i]; n.count > count && n.past > from {
			below = min(below, max(n.lo, from))
		}
	}
	return below
}

// add adds a change. No mark was taken behind the count marked.
func (l *lateNotes) add(lo, past int64, count, marked uint64) {
	list := *l
	for i := range list {
		n := &list[i]
		if n.count > marked && lo <= n.past && n.lo <= past {
			n.lo, n.past = min(lo, n.lo), max(past, n.past)
			return
		}
	}
	list = slices.DeleteFunc(list, func(n lateNote) bool { return lo <= n.lo && n.past <= past })
	if len(list) == maxLate {
		slices.SortFunc(list, func(a, b lateNote) int { return cmp.Compare(a.count, b.count) })
		for gap := int64(granule); len(list) > maxLate*3/4; gap *= 2 {
			list = append(list[:0],
				append(joinedLate(list[:len(list)-newLate], gap), list[len(list)-newLate:]...)...)
		}
	}
	*l = append(list, lateNote{lo, past, count})
}

// joinedLate joins those that lie at most a gap apart.
func joinedLate(old lateNotes, gap int64) lateNotes {
	old = slices.Clone(old)
	slices.SortFunc(old, func(a, b lateNote) int { return cmp.Compare(a.lo, b.lo) })
	kept := 0
	for _, n := range old[1:] {
		if k := &old[kept]; n.lo <= k.past+gap {
			k.past, k.count = max(k.past, n.past), max(k.count, n.count)
			continue
		}
		kept++
		old[kept] = n
	}
	return old[:kept+1]
}
