package intake

import (
	"math"
	"slices"
	"sync"
	"unsafe"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/series"
)

const (
	// maxUnpredicted points are looked up together at most. Of 100,000 series in random
	// order three or more are then of one group.
	maxUnpredicted  = 1 << unpredictedBits
	unpredictedBits = 11

	// maxUnpredictedNames is the memory of their names.
	maxUnpredictedNames = 128 << 10

	// maxSets is how many sessions have such points at a time; others look up
	// point by point.
	maxSets = 32
	setCost = maxUnpredictedNames + int64(unsafe.Sizeof(unpredictedPoints{})) +
		maxUnpredicted*int64(
			unsafe.Sizeof(unpredictedPoint{})+unsafe.Sizeof(unpredictedGroup{})+unsafe.Sizeof(
				head.Run{})+2*8)

	// MaxBytes is the most that Intake.Bytes returns.
	MaxBytes = maxSets * setCost

	// slotBits is how many bits hold the distance of their slots.
	slotBits = 22
)

// unpredictedPoints are points of a session whose columns were not predicted. Their names are
// looked up together, and those of one group are stored by one write: a look-up, a
// lock and a log record for each would cost more than twice as much.
//
// The order of a session's points matters for those of one series in one slot, and
// is kept: what was buffered is stored behind the unpredicted points of its slots. These
// all came before, since one that comes later has it stored first.
type unpredictedPoints struct {
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

// sets are the sets of unpredicted points that sessions take turns with. The one that was
// given back last is taken next: it is in the cache, and no more are made than are in use
// at a time.
type sets struct {
	mu   sync.Mutex
	free []*unpredictedPoints
	made int
}

// take returns a set, or nil when all are in use.
func (s *sets) take() *unpredictedPoints {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		l := s.free[n-1]
		s.free = s.free[:n-1]
		return l
	}
	if s.made == maxSets {
		return nil
	}
	s.made++
	return new(unpredictedPoints)
}

func (s *sets) giveBack(l *unpredictedPoints) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, l)
}

// bytes is the memory of all sets.
func (s *sets) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.made) * setCost
}

func (l *unpredictedPoints) name(p *unpredictedPoint) []byte { return l.names[p.from:p.to:p.to] }

// isFull reports whether a point has no place beside the others.
func (l *unpredictedPoints) isFull(key []byte, slot uint64) bool {
	far := len(l.points) > 0 && max(l.hi, slot)-min(l.lo, slot) >= 1<<slotBits
	return far || len(l.points) == maxUnpredicted || len(l.names)+len(key) > maxUnpredictedNames
}

// add adds a point. due is the slot from which on what is stored makes it late.
func (l *unpredictedPoints) add(key []byte, slot, word, due uint64) {
	if len(l.points) == 0 {
		l.lo, l.hi, l.due = slot, slot, math.MaxUint64
	}
	from := uint32(len(l.names))
	l.names = append(l.names, key...)
	l.points = append(l.points, unpredictedPoint{
		from: from,
		to:   uint32(len(l.names)),
		slot: slot,
		word: word,
	})
	l.lo, l.hi, l.due = min(l.lo, slot), max(l.hi, slot), min(l.due, due)
}

// covers reports whether there are unpredicted points of slots like n from slot on.
func (l *unpredictedPoints) covers(slot, n uint64) bool {
	return l != nil && len(l.points) > 0 && slot <= l.hi && l.lo < slot+n
}

// store stores all points. It returns the position behind the last column that was not
// found with the others, of a new series mostly; its group is nil where there is none.
func (l *unpredictedPoints) store(k *storer) (next columns.Position) {
	l.admit(k)
	next = l.locate(k)
	slices.Sort(l.sorted)
	l.prefetch(&k.o.Columns.Groups)
	for i := range l.groups {
		l.storeGroup(k, &l.groups[i])
	}
	clear(l.groups)
	l.names, l.points = l.names[:0], l.points[:0]
	return next
}

// admit refuses the points of slots that the bucket does not take.
func (l *unpredictedPoints) admit(k *storer) {
	lo, hi := k.slots()
	if lo <= l.lo && l.hi < hi {
		return
	}
	l.points = slices.DeleteFunc(l.points, func(p unpredictedPoint) bool {
		switch {
		case p.slot < lo:
			k.refuse(account.Expired, 1)
		case p.slot >= hi:
			k.refuse(account.Future, 1)
		default:
			return false
		}
		return true
	})
}

// locate finds the columns of all points, in the order of their arrival those
// that have none yet. It returns the position behind the last one of these.
func (l *unpredictedPoints) locate(k *storer) (next columns.Position) {
	for i := range l.points {
		l.ids[i] = k.b.SeriesID(l.name(&l.points[i]))
	}
	k.o.Columns.Index.LookupAll(l.ids[:len(l.points)], l.refs[:], l.order[:])
	l.sorted = l.sorted[:0]
	for i := range l.points {
		if l.refs[i] == series.NoColumn {
			p, ok := k.locate(l.name(&l.points[i]), points{n: 1})
			if !ok {
				continue
			}
			l.refs[i] = series.RefAt(p.Group.ID, p.Column)
			next = columns.Position{Group: p.Group, Columns: p.Group.Columns(), Column: p.Column + 1}
		}
		l.sorted = append(l.sorted, l.sortKey(i))
	}
	return next
}

// sortKey puts the points of a group in the order of their slots: with some of its
// last slots before others of its first, these would come behind its open blocks.
// Those of a row are in the order of their columns, and those of a column in a slot
// in that of their arrival.
func (l *unpredictedPoints) sortKey(i int) uint64 {
	ref := l.refs[i]
	row := uint64(ref.Group())<<slotBits | (l.points[i].slot - l.lo)
	return row<<(8+unpredictedBits) | uint64(ref.Column())<<unpredictedBits | uint64(i)
}

// sortedGroup and number are what a sort key is made of.
func sortedGroup(key uint64) uint32 { return uint32(key >> (slotBits + 8 + unpredictedBits)) }
func number(key uint64) int         { return int(key & (maxUnpredicted - 1)) }

// pointAt returns a point and its column by a sort key.
func (l *unpredictedPoints) pointAt(key uint64) (p *unpredictedPoint, col int) {
	i := number(key)
	return &l.points[i], l.refs[i].Column()
}

// prefetch finds the groups of sorted points, and asks for all that is about to be
// read of them, step by step: what leads to a name lies in four places, each of
// which tells the next one.
func (l *unpredictedPoints) prefetch(groups *series.Groups) {
	l.groups = l.groups[:0]
	for i, n := range l.sorted {
		id := sortedGroup(n)
		if last := len(l.groups) - 1; last >= 0 && l.groups[last].id == id {
			l.groups[last].past = i + 1
			continue
		}
		g := groups.Get(id)
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
	for _, ask := range []func(c *head.Columns, col int){(*head.Columns).FetchSpan,
		(*head.Columns).FetchName} {
		for i := range l.groups {
			if q := &l.groups[i]; q.g != nil {
				for _, n := range l.sorted[q.from:q.past] {
					ask(q.cols, l.refs[number(n)].Column())
				}
			}
		}
	}
}

// storeGroup stores the points of one group.
func (l *unpredictedPoints) storeGroup(k *storer, q *unpredictedGroup) {
	g, cols, sorted := q.g, q.cols, l.sorted[q.from:q.past]
	if g == nil {
		k.refuse(account.BucketDeleted, uint64(len(sorted)))
		return
	}
	l.runs, l.words = l.runs[:0], l.words[:0]
	for _, n := range sorted {
		p, col := l.pointAt(n)
		if !cols.Is(col, l.name(p)) {
			k.storeOne(l.name(p), int64(p.slot), p.word)
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
		k.storeRuns(g, cols, l.runs, l.words)
	}
}
