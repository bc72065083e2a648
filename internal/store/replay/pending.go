package replay

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
)

// recordsSize is the pending records of a group without their positions, and their place in the
// table.
const recordsSize = 112 + 8

// pendingRecords are what the log has of a group and the head has not yet. Who wants to
// write to the group or to read it replays them first.
type pendingRecords struct {
	group uint32
	empty atomic.Bool // nothing is left; set under mu

	mu   sync.Mutex
	b    *columns.Bucket
	next uint64 // position of the first record, 0 = none
	last uint64 // of the last one
	rest []byte // from the first to the last: the distance of each to the one before it
	held int    // memory of rest, also of what was passed
	left left   // what these records count as stored
	past int    // their columns lie below

	lowest, highest int64 // slots of all records that ever were in it
}

// left is what records count as stored: points, and copies.
type left struct{ points, copies uint64 }

func (l *left) of(ofCopies bool) *uint64 {
	if ofCopies {
		return &l.copies
	}
	return &l.points
}

// take takes so many away as there are, and returns how many.
func (l *left) take(ofCopies bool, points uint64) uint64 {
	n := l.of(ofCopies)
	points = min(points, *n)
	*n -= points
	return points
}

// add takes a record with points in, the last one so far.
func (l *pendingRecords) add(lsn uint64, b *columns.Bucket, p *logrecord.Record) {
	if l.b == nil {
		l.lowest, l.highest = p.Slot, p.Last
	}
	l.lowest, l.highest = min(l.lowest, p.Slot), max(l.highest, p.Last)
	if l.next == 0 {
		l.next = lsn
		l.empty.Store(false)
	} else {
		l.rest = binary.AppendUvarint(l.rest, lsn-l.last)
	}
	l.b, l.last, l.held = b, lsn, max(l.held, cap(l.rest))
	*l.left.of(p.Copies) += p.Counts.StoredPoints()
	l.past = max(l.past, p.EndColumn(b.Width()))
}

// pass goes on to the next record.
func (l *pendingRecords) pass() {
	if len(l.rest) == 0 {
		l.next, l.rest, l.past = 0, nil, 0
		return
	}
	l.next, l.rest = nextPosition(l.next, l.rest)
}

// nextPosition returns the position behind one, and what follows.
func nextPosition(lsn uint64, rest []byte) (uint64, []byte) {
	d, n := binary.Uvarint(rest)
	return lsn + d, rest[n:]
}

// done goes on behind a record whose points are in the head.
func (l *pendingRecords) done(ofCopies bool, stored uint64) {
	l.left.take(ofCopies, stored)
	l.pass()
}

// pendingTable has the pending records of all groups. No group is added after the first
// reading.
type pendingTable struct {
	p      *progress
	limit  int64 // bytes of positions, see Options.MaxPositions
	groups []*pendingRecords
	n      int64 // of them
}

// of returns the pending records of a group, or nil.
func (t *pendingTable) of(group uint32) *pendingRecords {
	if int(group) < len(t.groups) {
		return t.groups[group]
	}
	return nil
}

// add leaves a record with points to the second reading of the log. With tooMany the group
// is to be replayed before that: positions take all the memory that they may, and those of
// the group a good part of it. To replay one record at a time would take hours.
func (t *pendingTable) add(lsn uint64, b *columns.Bucket, p *logrecord.Record) (tooMany bool) {
	if need := int(p.Group) + 1 - len(t.groups); need > 0 {
		t.groups = append(t.groups, make([]*pendingRecords, need)...)
	}
	l := t.groups[p.Group]
	if l == nil {
		l = &pendingRecords{group: p.Group}
		t.groups[p.Group] = l
		t.n++
		t.p.bytes.Add(recordsSize)
	}
	was := l.held
	l.add(lsn, b, p)
	grown := int64(l.held - was)
	if grown == 0 {
		return false
	}
	t.p.bytes.Add(grown)
	return t.p.positions.Add(grown) > t.limit && int64(l.held)*t.n > t.limit/2
}

// drop drops all pending records of a bucket.
func (t *pendingTable) drop(b *columns.Bucket) {
	for _, l := range t.groups {
		if l != nil && l.b == b {
			l.mu.Lock()
			l.next, l.rest, l.left, l.past = 0, nil, left{}, 0
			t.giveBack(l)
			l.mu.Unlock()
		}
	}
}

// giveBack gives back the memory of pending records of which none is left.
func (t *pendingTable) giveBack(l *pendingRecords) {
	t.p.bytes.Add(-int64(l.held))
	t.p.positions.Add(-int64(l.held))
	l.held = 0
	l.empty.Store(true)
}

// Pending is what the log has of a group and the head has not.
type Pending struct {
	Group       uint32
	First, Last uint64 // positions of its records; 0 where none is left
	Bytes       int64  // memory of the positions in between
}

// list returns what is pending of every group that the log has points of.
func (t *pendingTable) list() (all []Pending) {
	for _, l := range t.groups {
		if l == nil {
			continue
		}
		l.mu.Lock()
		one := Pending{Group: l.group, Bytes: int64(cap(l.rest))}
		if l.next != 0 {
			one.First, one.Last = l.next, l.last
		}
		l.mu.Unlock()
		all = append(all, one)
	}
	return all
}
