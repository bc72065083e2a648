package flush

import (
	"errors"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/write/columns"
)

// NoteLate makes permanent how far the records of the log go back, before the sender of one is told
// that it is stored: one with such a slot, which the Reach of its bucket does not have. All buckets
// get the note that they need between two flushes by the first one. A note that finds no room on the
// disk is tried again with the next record.
func (f *Flusher) NoteLate(b *columns.Bucket, slot int64) error {
	f.notes.Lock()
	defer f.notes.Unlock()
	if !b.Reach.Unnoted(slot) {
		return nil
	}
	notes := map[*columns.Bucket]columns.Note{b: b.Reach.Late(slot)}
	for _, other := range f.o.Buckets.All() {
		if n, ok := other.Reach.Next(); ok && other != b {
			notes[other] = n
		}
	}
	var e manifest.Edit
	end := uint64(f.o.Log.End())
	for b, n := range notes {
		e.Late = append(e.Late, manifest.Late{Bucket: b.ID, Slot: n.Slot, LSN: end})
	}
	err := f.o.Manifest.Commit(e)
	if errors.Is(err, manifest.ErrClosed) {
		return err
	}
	if err = f.committed(err); errors.Is(err, manifest.ErrUnwritten) {
		return nil
	}
	for b, n := range notes {
		b.Reach.Noted(n)
	}
	return err
}

// reaches are the lowest slots of the records that came while a flush took one group after the other.
type reaches map[*columns.Bucket]int64

// reaches returns how far the records go back that come from now on. Behind a start the log has such
// of which only the flush before them tells.
func (f *Flusher) reaches() reaches {
	behind, all := f.o.Behind(), f.o.Buckets.All()
	r := make(reaches, len(all))
	for _, b := range all {
		highest := b.Reach.Highest()
		if behind {
			highest = b.Highest()
		}
		r[b] = b.Reach.Below(highest)
	}
	return r
}

// leave takes the moment in which a flush has what the log has, and notes the slots of records in front
// of it that stay in the log: those in open blocks, and where any came since the flush began, those
// that were to be expected.
func (f *Flusher) leave(u *unit, came reaches) {
	highest, end := make(map[uint64]int64, len(u.highest)), u.accounts.AccountLSN
	for _, h := range u.highest {
		highest[h.Bucket] = h.Slot
	}
	for _, b := range f.o.Buckets.All() {
		slot, ok := highest[b.ID]
		if !ok {
			slot = columns.NoSlot
		}
		b.Reach.Flushed(slot)
		lowest, open := u.open[b.ID]
		if uint64(u.base) < end {
			expected := came[b] // 0 for one that is newer
			if !open || expected < lowest {
				lowest, open = expected, true
			}
		}
		if open {
			u.late = append(u.late, manifest.Late{Bucket: b.ID, Slot: lowest, LSN: end - 1})
		}
	}
}

// remains notes a slot of a bucket that an open block may hold.
func (u *unit) remains(bucket uint64, slot int64) {
	if was, ok := u.open[bucket]; !ok || slot < was {
		u.open[bucket] = slot
	}
}
