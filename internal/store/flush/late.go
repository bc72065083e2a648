package flush

import (
	"errors"
	"sync"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/write/columns"
)

// LogReach has the MANIFEST say how far the records of the log go back that no flush has.
type LogReach struct {
	o      *Options
	commit func(manifest.Edit) error
	notes  sync.Mutex // one note at a time
}

// Note makes permanent how far the records of the log go back, before the sender of one is told
// that it is stored: one with such a slot, which the Reach of its bucket does not have. All buckets
// get the note that they need between two flushes by the first one. A note that finds no room on
// the disk is tried again with the next record.
func (l *LogReach) Note(b *columns.Bucket, slot int64) error {
	l.notes.Lock()
	defer l.notes.Unlock()
	if !b.Reach.NeedsNote(slot) {
		return nil
	}
	notes := map[*columns.Bucket]columns.Note{b: b.Reach.LateNote(slot)}
	for _, other := range l.o.Buckets.All() {
		if n, ok := other.Reach.Next(); ok && other != b {
			notes[other] = n
		}
	}
	var e manifest.Edit
	end := uint64(l.o.Log.End())
	for b, n := range notes {
		e.Late = append(e.Late, manifest.LateNote{Bucket: b.ID, Slot: n.Slot, LSN: end})
	}
	if err := l.commit(e); errors.Is(err, manifest.ErrUnwritten) {
		return nil
	} else if err != nil {
		return err
	}
	for b, n := range notes {
		b.Reach.ConfirmNote(n)
	}
	return nil
}

// begin returns from where on records are not in a flush that begins, and how far those go back
// that come from there on. Behind a start the log has such of which only the flush before them
// tells.
func (l *LogReach) begin() (base wal.LSN, came map[*columns.Bucket]int64, behind bool) {
	all := l.o.Buckets.All()
	came = make(map[*columns.Bucket]int64, len(all))
	for _, b := range all {
		came[b] = b.Reach.Highest()
	}
	base, behind = l.o.HeadEnd()
	for b, highest := range came {
		if behind {
			highest = b.Highest()
		}
		came[b] = b.Reach.NoteBound(highest)
	}
	return base, came, behind
}

// leave takes the moment in which a flush has what the log has. It notes the slots of records in
// front of it that stay in the log: the slots in open blocks, and where any record came since the
// flush began, the slots that were to be expected.
func (l *LogReach) leave(u *unit, came map[*columns.Bucket]int64) {
	highest, end := make(map[uint64]int64, len(u.highest)), u.accounts.AccountLSN
	for _, h := range u.highest {
		highest[h.Bucket] = h.Slot
	}
	for _, b := range l.o.Buckets.All() {
		slot, ok := highest[b.ID]
		if !ok {
			slot = columns.NoSlot
		}
		quiet := b.Reach.IsQuiet() && !u.behind
		b.Reach.NoteFlush(slot)
		lowest, open := u.open[b.ID]
		if uint64(u.base) < end && !quiet {
			expected := came[b] // 0 for one that is newer
			if !open || expected < lowest {
				lowest, open = expected, true
			}
		}
		if open {
			u.late = append(u.late, manifest.LateNote{Bucket: b.ID, Slot: lowest, LSN: end - 1})
		}
	}
}

// remains notes a slot of a bucket that an open block may hold.
func (u *unit) remains(bucket uint64, slot int64) {
	if was, ok := u.open[bucket]; !ok || slot < was {
		u.open[bucket] = slot
	}
}
