package intake

import (
	"math"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write/columns"
)

// The order of a sender: what it is expected to send next, and what happens to points that
// were not expected.

const (
	// Every tryEvery-th unpredicted point, probe checks whether the sender has started a known order
	// here.
	tryEvery = 32

	// After alwaysTry unpredicted points, names are compared only with the result of a probe. Each
	// failed comparison costs one or two cache misses.
	alwaysTry = 4 * tryEvery

	// fewPoints predicted points among unpredicted ones are chance, not an order.
	fewPoints = 4
)

// find makes the column of key the predicted one. It tries the order of the sender first, then the
// hash index, and creates a series that does not exist. It returns false if the points were
// refused.
func (x *Session) find(key []byte, p points) bool {
	if len(key) == 0 {
		x.storer.refuse(account.EmptyName, p.n)
		return false
	}
	return x.follows(key) || x.lookUp(key, p)
}

// follows makes the column of key the predicted one if it comes next in the order of the sender.
// The order may also continue where the sender left it with its last jump.
func (x *Session) follows(key []byte) bool {
	if p, ok := x.position.Follows(key); ok {
		if p.Group != x.position.Group {
			p.Group.Approach(int64(x.buffer.runSlot))
		}
		x.predict(p)
		return true
	}
	p, ok := x.other.Follows(key)
	if ok {
		x.other = x.position
		x.predict(p)
	}
	return ok
}

// lookUp is find by hash.
func (x *Session) lookUp(key []byte, of points) bool {
	p, ok := x.storer.locate(key, of)
	if !ok {
		return false
	}
	if x.position.Group != nil && p.Column == 0 && x.position.Column >= x.position.Columns.Len() {
		x.position.Group.SetNext(p.Group)
	}
	x.other = x.position
	x.predict(p)
	return true
}

// predict makes a column the next one. Buffered runs stay within one group and one epoch of its
// names, so any other column flushes them. position keeps the newest view of the names.
func (x *Session) predict(p columns.Position) {
	if p.Group != x.position.Group || p.Columns.Epoch() != x.position.Columns.Epoch() {
		x.flush()
	} else if x.position.Columns.Bound() > p.Columns.Bound() {
		p.Columns = x.position.Columns
	}
	x.position = p
}

// seek makes the column of key the predicted one, as find does. Else it returns false: the point
// was refused, or is kept and looked up later together with others.
func (x *Session) seek(key []byte, slot, word uint64) bool {
	if len(key) == 0 {
		x.storer.refuse(account.EmptyName, 1)
		return false
	}
	if (x.misses < alwaysTry || x.misses%tryEvery == 2) && x.follows(key) {
		x.misses = 0
		return true
	}
	x.misses++
	// Senders jump within a row, in the same slot, or at the end of a group.
	jumps := x.misses <= 2 &&
		(slot == x.buffer.runSlot || x.position.Column >= x.position.Columns.Len())
	if x.unpredicted == nil && jumps || !x.keep(key, slot, word) {
		return x.lookUp(key, points{slot, 1, func(uint64) (raw, timestamp uint64) { return word, 0 }})
	}
	if x.misses%tryEvery == 2 {
		x.probe(key)
	}
	return false
}

// probe makes the column after key the second position at which the order may continue.
func (x *Session) probe(key []byte) {
	series := x.storer.o.Columns
	ref, known := series.Index.Lookup(x.storer.b.SeriesID(key))
	if !known || ref.Inactive() {
		return
	}
	if g := series.Groups.Get(ref.Group()); g != nil {
		x.other = columns.Position{Group: g, Columns: g.Columns(), Column: ref.Column() + 1}
	}
}

// keep adds a point to the unpredicted ones. It is false when there is no memory for it.
func (x *Session) keep(key []byte, slot, word uint64) bool {
	b := &x.buffer
	b.endRun()
	if len(b.runs) > 0 && slot >= b.lo && (slot <= b.hi || slot-b.lo >= uint64(x.storer.b.Height)) {
		x.flush() // what was buffered would come late behind it
	}
	if x.unpredicted == nil {
		if x.unpredicted = x.sets.take(); x.unpredicted == nil {
			return false
		}
	}
	x.add(key, slot, word)
	return true
}

// add adds a point to the unpredicted ones, of which there is a set.
func (x *Session) add(key []byte, slot, word uint64) {
	if x.unpredicted.isFull(key, slot) {
		x.storeUnpredicted()
	}
	due := slot + uint64(x.storer.b.Height)
	if due <= x.buffer.runSlot {
		due = math.MaxUint64 // it is late in any case
	}
	x.unpredicted.add(key, slot, word, due)
}

// mingle makes the few points that were buffered unpredicted as well, if they are among
// such points: then it is true.
func (x *Session) mingle() bool {
	b := &x.buffer
	if b.before > fewPoints || !x.unpredicted.covers(b.lo, b.hi-b.lo+1) {
		return false
	}
	words := b.words[:b.before]
	for _, r := range b.runs {
		for i := range r.Points {
			x.add(x.position.Columns.Key(r.Column+i), uint64(r.Slot), words[i])
		}
		words = words[r.Points:]
	}
	b.clear()
	return true
}

// settle stores the unpredicted points before others of n slots from slot on.
func (x *Session) settle(slot, n uint64) {
	if x.unpredicted.covers(slot, n) {
		x.settleAll()
	}
}

// settleAll stores all unpredicted points, and gives their memory to other sessions.
func (x *Session) settleAll() {
	if x.unpredicted == nil {
		return
	}
	x.storeUnpredicted()
	x.sets.giveBack(x.unpredicted)
	x.unpredicted = nil
}

// storeUnpredicted stores all unpredicted points. A sender that began a series may go on
// behind its column.
func (x *Session) storeUnpredicted() {
	if p := x.unpredicted.store(&x.storer); p.Group != nil {
		x.other = p
	}
}
