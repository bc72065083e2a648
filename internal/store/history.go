package store

import (
	"time"

	marks "dalmatiner/internal/model/history"
)

// Mark is a moment in the history of a bucket. The zero Mark is none, of which nothing is known
// later.
type Mark struct {
	head    marks.Mark
	changes uint64 // of what hides parts of segments, and of what is known to be damaged
	expired int64  // slot below which merges had dropped what was older than the lifetime
	at      int64  // the wall clock
}

// Numbers returns the mark as numbers, of which MarkOf makes it again.
func (m Mark) Numbers() [5]uint64 {
	return [5]uint64{m.head.Life, m.head.Count, m.changes, uint64(m.expired), uint64(m.at)}
}

// MarkOf returns the mark of which these are the numbers.
func MarkOf(n [5]uint64) Mark {
	return Mark{marks.Mark{Life: n[0], Count: n[1]}, n[2], int64(n[3]), int64(n[4])}
}

// Mark returns the present moment of the bucket. It is the zero Mark where reads may change by
// themselves: during the replay of the log, and while names of series could not be read.
func (h Bucket) Mark() Mark {
	if h.s.replay.HasPending() || h.s.disk.Catalogue.NamesUnread() {
		return Mark{}
	}
	v := h.s.versions.Latest()
	damaged, _ := h.s.damage.CountOf(h.b.ID)
	return Mark{
		head:    h.b.History.Mark(h.s.clock.Unix() / int64(time.Millisecond) / h.b.Resolution),
		changes: v.Changes(h.b.ID) + damaged,
		expired: v.ExpiredBelow(h.b.ID), at: h.s.clock.Unix(),
	}
}

// Since says what of the bucket did not change between a mark and the call, as reads see it that
// begin behind the mark: from a slot on, up to which other one each series has the words it had, or
// none. Points that have outlived the bucket's lifetime at the time of the call are no change.
func (h Bucket) Since(m Mark, from int64) marks.Unchanged {
	nothing := marks.AllChanged()
	if h.check() != nil {
		return nothing
	}
	u, v := h.b.History.Since(m.head, from), h.s.versions.Latest()
	damaged, anywhere := h.s.damage.CountOf(h.b.ID)
	if v.Changes(h.b.ID)+damaged != m.changes {
		return nothing
	}
	if len(u.Names) > 0 && (anywhere || v.Holes(h.b.ID) != nil) {
		return nothing // a series may be back of which the name was lost, or which a hole covers
	}
	oldest, _ := h.s.columns.AdmittedSlots(h.b)
	if gone := v.ExpiredBelow(h.b.ID); h.b.TTL() > 0 && h.s.clock.Unix() < m.at || gone > m.expired &&
		gone > int64(oldest) {
		// the clock went back, or the lifetime has grown: older points are read again, or not
		return nothing
	}
	return u
}
