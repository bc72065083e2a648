package columns

import (
	"math"
	"sync/atomic"
	"time"
)

// The distances of a Reach, as times.
const (
	reachSlack = 5 * time.Minute // how far senders are behind each other without a note
	reachStep  = time.Hour       // a note of a late point goes at least so much lower than it needs to
)

// Reach bounds the slots of those records of the log that no flush has. Where damage takes records
// and nobody knows what they held, they may have overwritten slots down to that bound.
//
// Without a note no record has a slot that is flushed, or one that lies reachSlack below the
// highest of a record in front of it. The first record with such a slot behind a flush needs a
// note. After it, only late points that lie below that note need another.
type Reach struct {
	slack, step int64
	highest     atomic.Int64 // slot of a record or of a segment
	settled     atomic.Int64 // the highest slot that is flushed, or in a flush under way
	noted       atomic.Pointer[int64]
}

// Note is the slot that the MANIFEST is to say of a bucket.
type Note struct {
	Slot int64
	was  *int64
}

func (r *Reach) begin(resolution int64) {
	slots := func(d time.Duration) int64 { return max(1, d.Milliseconds()/max(1, resolution)) }
	r.slack, r.step = slots(reachSlack), slots(reachStep)
	r.highest.Store(NoSlot)
	r.settled.Store(NoSlot)
	r.NoteFlush(NoSlot)
}

// Raise notes the highest slot of a record, before the record is appended to the log.
func (r *Reach) Raise(slot int64) { raise(&r.highest, slot) }

func raise(to *atomic.Int64, slot int64) {
	for was := to.Load(); slot > was && !to.CompareAndSwap(was, slot); {
		was = to.Load()
	}
}

// Highest returns the highest slot of all records and segments, NoSlot for none.
func (r *Reach) Highest() int64 { return r.highest.Load() }

// NoteBound returns how far a record may go back without a note that comes behind one with a slot.
func (r *Reach) NoteBound(slot int64) int64 { return max(0, slot-r.slack) }

// NeedsNote reports whether the lowest slot of a record, which has been appended, is to be noted:
// its sender hears nothing of it before.
func (r *Reach) NeedsNote(slot int64) bool {
	return (slot <= r.settled.Load() || slot < r.NoteBound(r.highest.Load())) && slot < *r.noted.Load()
}

// Next returns the note that records need from now on which are not late; ok is false where there
// is one, or no record has come since the last flush. One caller at a time makes notes.
func (r *Reach) Next() (n Note, ok bool) {
	highest := r.highest.Load()
	n = Note{Slot: r.NoteBound(highest), was: r.noted.Load()}
	return n, highest > r.settled.Load() && n.Slot < *n.was
}

// IsQuiet reports whether no record has come since the last flush of which its sender has heard.
func (r *Reach) IsQuiet() bool {
	return r.highest.Load() <= r.settled.Load() && *r.noted.Load() == math.MaxInt64
}

// LateNote is Next for a record that has such a slot. The farther it lies back, the farther goes
// the note: points in falling order need few of them. It goes below what is flushed for a slot that
// is.
func (r *Reach) LateNote(slot int64) Note {
	n, _ := r.Next()
	if slot < n.Slot {
		n.Slot = max(0, slot-max(r.step, (r.highest.Load()-slot)/8))
		if settled := r.settled.Load(); slot > settled {
			n.Slot = max(n.Slot, settled+1)
		}
	}
	n.Slot = min(n.Slot, *n.was)
	return n
}

// ConfirmNote says that a note is permanent. One from before a flush does not count behind it.
func (r *Reach) ConfirmNote(n Note) { r.noted.CompareAndSwap(n.was, &n.Slot) }

// NoteFlush says that a flush up to a slot has what the log has so far: what follows is noted anew.
// No record is appended meanwhile.
func (r *Reach) NoteFlush(highest int64) {
	none := int64(math.MaxInt64)
	r.settle(highest)
	r.noted.Store(&none)
}

func (r *Reach) settle(highest int64) {
	raise(&r.highest, highest)
	raise(&r.settled, highest)
}
