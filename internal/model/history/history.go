// Package history knows since when the slots of a bucket hold what they hold, so that a cache
// can tell which of the words it read still do. DESIGN.md has the rules and why they suffice.
package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// Journal is the changes of one bucket in memory. The zero value is ready: it costs nothing
// until somebody takes a mark. Its methods may be called concurrently. Its lock is taken below
// all others, but for those that a function given to it takes.
type Journal struct {
	// armed is the slot from which on a write need not be noted: every mark that was taken
	// has a change at or below it behind it. A mark raises it above all slots, a note of a
	// recent slot lowers it.
	armed atomic.Int64
	turn  atomic.Uint64 // grows with each mark that has a change before it
	_     [48]byte      // writers read these, and share no line of the cache with what follows

	mu     sync.Mutex
	life   uint64 // tells this journal from all others; 0 until the first mark
	count  uint64 // of all changes
	marked uint64 // the count at the last mark
	now    int64  // slot of the last mark
	delays delays
	notes  notes
	late   lateNotes
	names  nameNotes
}

// Nothing is below which nothing changed where anything may have.
const Nothing = math.MinInt64

// recentSlots is how far behind the present a slot is recent.
const recentSlots = 720

// Mark is a moment of a journal. The zero Mark is of none.
type Mark struct {
	Life  uint64
	Count uint64
}

// Unchanged is what did not change since a mark.
type Unchanged struct {
	Below int64 // no slot between the one that was asked for and this one was written to

	// Names are prefixes of the keys of all metrics that came or went, those of others among them; nil
	// where none did. The empty prefix stands for any key.
	Names []string

	// Live is the slot from which on points are coming in, by what came in behind the last
	// marks. It is a guess: what is read from there on will not hold for long.
	Live int64
}

// AllChanged is what is said where anything may have changed.
func AllChanged() Unchanged { return Unchanged{Below: Nothing, Names: []string{""}} }

// Mark returns the present moment, of which now is about the slot. What is read behind it is as new
// as the mark, or newer.
func (j *Journal) Mark(now int64) Mark {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.life == 0 {
		j.life = rand.Uint64()
	}
	if j.armed.Load() != math.MaxInt64 {
		j.armed.Store(math.MaxInt64)
	}
	if j.count != j.marked {
		j.marked = j.count
		j.turn.Add(1)
	}
	j.now = now
	j.delays.mark(now)
	return Mark{Life: j.life, Count: j.count}
}

// Since says what did not change between a mark and the call, from a slot on.
func (j *Journal) Since(m Mark, from int64) Unchanged {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m.Life == 0 || m.Life != j.life {
		return AllChanged()
	}
	return Unchanged{
		Below: j.late.lowest(m.Count, from,
			j.notes.lowest(m.Count)), Names: j.names.prefixesAfter(m.Count),
		Live: j.now - j.delays.longest(),
	}
}

// LastNote is what a writer noted last: it need not be noted again before the next mark. The lock
// under which it writes protects it.
type LastNote struct {
	turn     uint64
	lo, past int64
}

// NoteWrite notes a write to the slots [lo, past). It is called under the lock under which readers
// of the slots see the write, before they can.
func (j *Journal) NoteWrite(lo, past int64, last *LastNote) {
	if lo < j.armed.Load() {
		j.note(lo, past, last)
	}
}

func (j *Journal) note(lo, past int64, last *LastNote) {
	if last.lo <= lo && past <= last.past && last.turn == j.turn.Load() {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if lo >= j.armed.Load() {
		return // somebody else has noted as much meanwhile
	}
	j.count++
	if behind := j.now - lo; behind <= recentSlots {
		j.delays.note(behind)
		j.noteFrom(lo)
		return
	}
	lo, past = lo-lo%granule, past+granule-1-(past-1)%granule
	j.late.add(lo, past, j.count, j.marked)
	*last = LastNote{j.turn.Load(), lo, past}
}

// noteFrom notes a change of any slot from one on, which is below armed or Nothing.
func (j *Journal) noteFrom(slot int64) {
	j.notes.add(j.count, slot)
	j.armed.Store(slot)
}

// NoteChange notes that any slot may have changed. It is called as NoteWrite is.
func (j *Journal) NoteChange() { j.Change(func() {}) }

// Change calls change, which may change what any slot is read as. It takes no lock of a group.
// A mark is before it or behind it.
func (j *Journal) Change(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	j.noteFrom(Nothing)
	change()
}

// ChangeNames calls change, after which the metric of a key is there or is not, or any metric
// without one. It is called as that of Change.
func (j *Journal) ChangeNames(key []byte, change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	if j.life != 0 { // else nobody has a mark
		j.names.add(key, j.count)
	}
	change()
}

// Bytes returns the memory of the notes.
func (j *Journal) Bytes() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int64(cap(j.notes))*noteSize + int64(cap(j.late))*lateNoteSize +
		int64(cap(j.names))*nameNoteSize
}

// delays are how far behind the present recent slots were written, lately: the most of about a
// minute of slots, and of the one before.
type delays struct {
	began      int64 // slot
	this, last int64
	some       bool
}

// delayTurn is how many slots are a minute of delays. So many are taken for the delay at first.
const delayTurn = 60

// mark notes the present.
func (d *delays) mark(now int64) {
	switch {
	case !d.some:
		*d = delays{began: now, this: delayTurn, some: true}
	case now < d.began || now-d.began >= delayTurn:
		d.began, d.this, d.last = now, 0, d.this
	}
}

func (d *delays) note(behind int64) { d.this = max(d.this, behind) }

func (d *delays) longest() int64 { return max(d.this, d.last) }

// notes are the changes of recent slots, ascending by count and by slot: later changes that are
// lower stand for all before them.
type notes []note

// note says that of the changes up to a count, and above that of the note before, the lowest
// was at a slot. Slots above it may have changed as well.
type note struct {
	count uint64
	slot  int64
}

const (
	// maxNotes is how many notes a journal keeps. When there are more, neighbours become one.
	maxNotes = 256
	noteSize = 16

	// precision is the part of its age, in slots, over which an old note may reach. With 12,
	// a million slots need 12 ln 10⁶ = 166 notes.
	precision = 12
)

// lowest returns the slot of the lowest change behind a count.
func (n notes) lowest(count uint64) int64 {
	i, _ := slices.BinarySearchFunc(n, count, func(n note, count uint64) int {
		if n.count <= count {
			return -1
		}
		return 1
	})
	if i == len(n) {
		return math.MaxInt64
	}
	return n[i].slot
}

func (n *notes) add(count uint64, slot int64) {
	list := *n
	for len(list) > 0 && list[len(list)-1].slot >= slot {
		list = list[:len(list)-1]
	}
	if len(list) == maxNotes {
		for share := uint64(precision); len(list) > maxNotes*3/4; share /= 2 {
			list = list.join(share)
		}
	}
	*n = append(list, note{count, slot})
}

// join joins neighbours that together reach over less than a share of their age: the lower slot,
// the later count.
func (n notes) join(share uint64) notes {
	kept := len(n) - 1
	newest := n[kept].slot
	past := newest // of the notes that are kept, the slot of the one behind the last
	for i := kept - 1; i >= 0; i-- {
		slot := n[i].slot
		if share == 0 || uint64(past-slot) < uint64(newest-slot)/share {
			n[kept].slot = slot
			continue
		}
		past = n[kept].slot
		kept--
		n[kept] = n[i]
	}
	return append(n[:0], n[kept:]...)
}
