package store

import (
	"math"
	"slices"
	"sync"
	"unsafe"

	"dalmatiner/internal/account"
	"dalmatiner/internal/columns"
	"dalmatiner/internal/head"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/series"
)

const (
	// maxUnpredicted points are looked up together at most. Of 100,000 series in random
	// order three or more are then of one group.
	maxUnpredicted  = 1 << unpredictedBits
	unpredictedBits = 11

	// maxUnpredictedNames is the memory of their names.
	maxUnpredictedNames = 128 << 10

	// maxUnpredictedSets is how many sessions have such points at a time; others look up
	// point by point.
	maxUnpredictedSets = 32
	unpredictedCost    = maxUnpredictedNames + int64(unsafe.Sizeof(unpredicted{})) +
		maxUnpredicted*int64(unsafe.Sizeof(unpredictedPoint{})+unsafe.Sizeof(unpredictedGroup{})+unsafe.Sizeof(head.Run{})+2*8)

	// tryEvery points that were not predicted it is tried whether the sender goes
	// on in an order from there on.
	tryEvery = 32

	// alwaysTry is after how many of them what the next one is compared with is only
	// what a try has found: each name that is not it costs a cache miss or two.
	alwaysTry = 4 * tryEvery

	// slotBits is how many bits hold the distance of their slots.
	slotBits = 22

	// fewPoints that were predicted among others that were not are chance.
	fewPoints = 4
)

// unpredicted are points of a session whose columns were not predicted. Their names are
// looked up together, and those of one group are stored by one write: a look-up, a
// lock and a log record for each would cost more than twice as much.
//
// The order of a session's points matters for those of one series in one slot, and
// is kept: what was buffered is stored behind the unpredicted points of its slots. These
// all came before, since one that comes later has it stored first.
type unpredicted struct {
	names  []byte
	points []unpredictedPoint
	lo, hi uint64 // their slots
	due    uint64 // the slot from which on what is stored brings them behind open blocks

	ids    [maxUnpredicted]metric.SeriesID
	refs   [maxUnpredicted]series.Ref
	order  [maxUnpredicted]uint16
	sorted []uint64 // see sortKey
	groups []unpredictedGroup
	runs   []head.Run // of a group
	words  []uint64
}

// unpredictedGroup is a group and its part of the sorted points.
type unpredictedGroup struct {
	g          *head.Group // nil for one that is no more
	cols       *head.Columns
	id         uint32
	from, past int
}

type unpredictedPoint struct {
	from, to uint32 // of names
	slot     uint64
	word     uint64
}

// unpredictedSets are the sets that sessions take turns with. The one that was given back
// last is taken next: it is in the cache, and no more are made than are in use at a
// time.
type unpredictedSets struct {
	mu   sync.Mutex
	free []*unpredicted
	made int
}

// take returns a set, or nil when all are in use.
func (s *unpredictedSets) take() *unpredicted {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		l := s.free[n-1]
		s.free = s.free[:n-1]
		return l
	}
	if s.made == maxUnpredictedSets {
		return nil
	}
	s.made++
	return new(unpredicted)
}

func (s *unpredictedSets) giveBack(l *unpredicted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, l)
}

// bytes is the memory of all sets.
func (s *unpredictedSets) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.made) * unpredictedCost
}

func (l *unpredicted) name(p *unpredictedPoint) []byte { return l.names[p.from:p.to:p.to] }

// follows makes key the predicted column if it is what follows the last one, or
// what followed before the sender jumped elsewhere.
func (x *Session) follows(key []byte) bool {
	if p, ok := x.position.Follows(key); ok {
		if p.Group != x.position.Group {
			p.Group.Approach(int64(x.runSlot))
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

// seek makes key the predicted column, as find does, or keeps its point to be
// looked up later with others, or refuses it: then it is false.
func (x *Session) seek(key []byte, slot, word uint64) bool {
	if len(key) == 0 {
		x.refuse(account.EmptyName, 1)
		return false
	}
	if (x.misses < alwaysTry || x.misses%tryEvery == 2) && x.follows(key) {
		x.misses = 0
		return true
	}
	x.misses++
	// A sender that goes on in another place does so in the slot of its row, or
	// where a group ends.
	jumps := x.misses <= 2 && (slot == x.runSlot || x.position.Column >= x.position.Columns.Len())
	if x.unpredicted == nil && jumps || !x.keep(key, slot, word) {
		return x.lookUp(key, 1)
	}
	if x.misses%tryEvery == 2 {
		x.probe(key)
	}
	return false
}

// probe makes what follows key the other position to go on from.
func (x *Session) probe(key []byte) {
	ref, known := x.s.columns.Index.Lookup(x.b.SeriesID(key))
	if !known || ref.Inactive() {
		return
	}
	if g := x.s.columns.Groups.Get(ref.Group()); g != nil {
		x.other = columns.Position{Group: g, Columns: g.Columns(), Column: ref.Column() + 1}
	}
}

// keep adds a point to the unpredicted ones. It is false when there is no memory for it.
func (x *Session) keep(key []byte, slot, word uint64) bool {
	x.endRun()
	if len(x.runs) > 0 && slot >= x.lo && (slot <= x.hi || slot-x.lo >= uint64(x.b.Height)) {
		x.flush() // what was buffered would come late behind it
	}
	if x.unpredicted == nil {
		if x.unpredicted = x.s.unpredictedSets.take(); x.unpredicted == nil {
			return false
		}
	}
	x.add(key, slot, word)
	return true
}

// add adds a point to the unpredicted ones, of which there are some.
func (x *Session) add(key []byte, slot, word uint64) {
	l := x.unpredicted
	far := len(l.points) > 0 && max(l.hi, slot)-min(l.lo, slot) >= 1<<slotBits
	if far || len(l.points) == maxUnpredicted || len(l.names)+len(key) > maxUnpredictedNames {
		x.storeUnpredicted()
	}
	if len(l.points) == 0 {
		l.lo, l.hi, l.due = slot, slot, math.MaxUint64
	}
	from := uint32(len(l.names))
	l.names = append(l.names, key...)
	l.points = append(l.points, unpredictedPoint{from: from, to: uint32(len(l.names)), slot: slot, word: word})
	l.lo, l.hi = min(l.lo, slot), max(l.hi, slot)
	if due := slot + uint64(x.b.Height); due > x.runSlot { // others are late in any case
		l.due = min(l.due, due)
	}
}

// covers reports whether there are unpredicted points of slots like n from slot on.
func (l *unpredicted) covers(slot, n uint64) bool {
	return l != nil && len(l.points) > 0 && slot <= l.hi && l.lo < slot+n
}

// mingle makes the few points that were buffered unpredicted as well, if they are among
// such points: then it is true.
func (x *Session) mingle() bool {
	if x.before > fewPoints || !x.unpredicted.covers(x.lo, x.hi-x.lo+1) {
		return false
	}
	words := x.words[:x.before]
	for _, r := range x.runs {
		for i := range r.Points {
			x.add(x.position.Columns.Key(r.Column+i), uint64(r.Slot), words[i])
		}
		words = words[r.Points:]
	}
	x.runs, x.before = x.runs[:0], 0
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
	x.s.unpredictedSets.giveBack(x.unpredicted)
	x.unpredicted = nil
}

// storeUnpredicted stores all unpredicted points.
func (x *Session) storeUnpredicted() {
	l := x.unpredicted
	x.admitUnpredicted(l)
	x.locateUnpredicted(l)
	slices.Sort(l.sorted)
	x.s.prefetch(l)
	for i := range l.groups {
		x.storeGroup(l, &l.groups[i])
	}
	clear(l.groups)
	l.names, l.points = l.names[:0], l.points[:0]
}

// prefetch finds the groups of sorted points, and asks for all that is about to be
// read of them, step by step: what leads to a name lies in four places, each of
// which tells the next one.
func (s *Store) prefetch(l *unpredicted) {
	l.groups = l.groups[:0]
	for i, n := range l.sorted {
		id := sortedGroup(n)
		if last := len(l.groups) - 1; last >= 0 && l.groups[last].id == id {
			l.groups[last].past = i + 1
			continue
		}
		g := s.columns.Groups.Get(id)
		if g != nil {
			g.Fetch()
		}
		l.groups = append(l.groups, unpredictedGroup{id: id, g: g, from: i, past: i + 1})
	}
	for i := range l.groups {
		if q := &l.groups[i]; q.g != nil {
			q.cols = q.g.Columns()
			q.cols.Fetch()
		}
	}
	for _, ask := range []func(c *head.Columns, col int){(*head.Columns).FetchSpan, (*head.Columns).FetchName} {
		for i := range l.groups {
			if q := &l.groups[i]; q.g != nil {
				for _, n := range l.sorted[q.from:q.past] {
					ask(q.cols, l.refs[number(n)].Column())
				}
			}
		}
	}
}

// admitUnpredicted refuses the points of slots that the bucket does not take.
func (x *Session) admitUnpredicted(l *unpredicted) {
	lo, hi := x.s.admitted(x.b)
	if lo <= l.lo && l.hi < hi {
		return
	}
	l.points = slices.DeleteFunc(l.points, func(p unpredictedPoint) bool {
		switch {
		case p.slot < lo:
			x.refuse(account.Expired, 1)
		case p.slot >= hi:
			x.refuse(account.Future, 1)
		default:
			return false
		}
		return true
	})
}

// locateUnpredicted finds the columns of all points, in the order of their arrival those
// that have none yet.
func (x *Session) locateUnpredicted(l *unpredicted) {
	for i := range l.points {
		l.ids[i] = x.b.SeriesID(l.name(&l.points[i]))
	}
	x.s.columns.Index.LookupAll(l.ids[:len(l.points)], l.refs[:], l.order[:])
	l.sorted = l.sorted[:0]
	for i := range l.points {
		if l.refs[i] == series.NoColumn {
			p, ok := x.locate(l.name(&l.points[i]), 1)
			if !ok {
				continue
			}
			l.refs[i] = series.At(p.Group.ID, p.Column)
			x.other = columns.Position{Group: p.Group, Columns: p.Group.Columns(), Column: p.Column + 1}
		}
		l.sorted = append(l.sorted, l.sortKey(i))
	}
}

// sortKey puts the points of a group in the order of their slots: with some of its
// last slots before others of its first, these would come behind its open blocks.
// Those of a row are in the order of their columns, and those of a column in a slot
// in that of their arrival.
func (l *unpredicted) sortKey(i int) uint64 {
	ref := l.refs[i]
	row := uint64(ref.Group())<<slotBits | (l.points[i].slot - l.lo)
	return row<<(8+unpredictedBits) | uint64(ref.Column())<<unpredictedBits | uint64(i)
}

// sortedGroup and number are what a sort key is made of.
func sortedGroup(key uint64) uint32 { return uint32(key >> (slotBits + 8 + unpredictedBits)) }
func number(key uint64) int         { return int(key & (maxUnpredicted - 1)) }

// at returns a point and its column by a sort key.
func (l *unpredicted) at(key uint64) (p *unpredictedPoint, col int) {
	i := number(key)
	return &l.points[i], l.refs[i].Column()
}

// storeGroup stores the points of one group.
func (x *Session) storeGroup(l *unpredicted, q *unpredictedGroup) {
	g, cols, sorted := q.g, q.cols, l.sorted[q.from:q.past]
	if g == nil {
		x.refuse(account.BucketDeleted, uint64(len(sorted)))
		return
	}
	l.runs, l.words = l.runs[:0], l.words[:0]
	for _, n := range sorted {
		p, col := l.at(n)
		if !cols.Is(col, l.name(p)) {
			x.storeOne(l.name(p), int64(p.slot), p.word)
			continue
		}
		l.words = append(l.words, p.word)
		if last := len(l.runs) - 1; last >= 0 {
			if r := &l.runs[last]; r.Slot == int64(p.slot) && r.Column+r.Points == col {
				r.Points++
				continue
			}
		}
		l.runs = append(l.runs, head.Run{Column: col, Points: 1, Slot: int64(p.slot)})
	}
	if len(l.runs) > 0 {
		x.storeRuns(g, cols, l.runs, l.words)
	}
}

// storeOne stores a point of a series that has no column or another one than it had a
// moment ago.
func (x *Session) storeOne(key []byte, slot int64, word uint64) {
	if p, ok := x.locate(key, 1); ok {
		x.storeAt(p, head.Write{Slot: slot, Words: []uint64{word}})
	}
}
