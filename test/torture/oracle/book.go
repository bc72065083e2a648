// Package oracle keeps what was sent to a node, and judges what the node gives
// back. It shares no code with the store: values are computed from the number of
// the write, states are lists of writes.
package oracle

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
)

// Book is everything that was sent to one data directory.
type Book struct {
	Buckets []*Bucket
	Events  *Events // nil where none are sent
	Tags    *Tags
	series  atomic.Uint32
}

// Salt, 0 to 7, lets the book expect other values than one of another salt does, so that what was
// sent to another directory is told apart.
func (k *Book) Salt(salt uint32) { k.series.Store(salt << 20) }

// Texts adds a bucket of events, the earliest at first, and tags of series of another bucket.
func (k *Book) Texts(first int64, metrics [][]string) {
	salt := mix(uint64(k.series.Load()))
	k.Events = &Events{Bucket: "logs", First: first, salt: salt}
	k.Tags = &Tags{Bucket: "tagged", Metrics: metrics, salt: salt, writes: map[tagSlot][]tagWrite{}}
}

// State says whether a bucket must be there.
type State uint8

const (
	Present  State = iota
	Gone           // deleted, or not yet created
	Deleting       // a deletion is under way, or was cut off
	Adding         // likewise a creation
)

// Bucket is a bucket and its lane.
type Bucket struct {
	Name       string
	Resolution int64 // ms
	HPTS       bool
	TTL        int64 // points, 0 = none
	First      int64 // slot
	Slots      int   // all writes lie in [First, First+Slots)
	State      State
	Lane       *Lane
	Series     []*Series
	book       *Book
}

// Lane is the order in which one sender writes; a bucket has one. Its lock
// guards the lane and what belongs to its bucket.
type Lane struct {
	sync.Mutex
	sent  uint32 // number of the newest write
	acked uint32 // writes up to here are acknowledged, but for maybe
	maybe []span // writes of which the node refused some

	confirmed uint64 // writes that were acknowledged and not refused
}

type span struct{ first, last uint32 }

// Series is one metric. cells has the number of the newest write of each slot, 0
// for none; over has all writes of slots with several, oldest first, where 0
// stands for "seen unset after a crash".
type Series struct {
	Bucket    *Bucket
	Key       []byte
	ID        uint32
	Kind      Kind
	Deleting  bool // a deletion is under way, or was cut off
	cells     []uint32
	over      map[int32][]uint32
	deletions []deletion
	left      bool // expired and seen to be gone
}

// deletion is what a deletion took.
type deletion struct {
	cells []uint32
	over  map[int32][]uint32
	at    uint32 // the newest write of the lane
}

// Add adds a bucket that is Gone until the caller says otherwise.
func (k *Book) Add(b Bucket) *Bucket {
	b.Lane, b.book, b.State = &Lane{}, k, Gone
	k.Buckets = append(k.Buckets, &b)
	return &b
}

// NewSeries adds a series to the bucket; its key is given by the caller.
func (b *Bucket) NewSeries(key []byte) *Series {
	id := b.book.series.Add(1)
	s := &Series{Bucket: b, Key: key, ID: id, Kind: Kind(id % uint32(kinds))}
	b.Lane.Lock()
	b.Series = append(b.Series, s)
	b.Lane.Unlock()
	return s
}

// AppendWrite notes a new write and appends its point. The caller holds the lane.
func (s *Series) AppendWrite(dst []byte, slot int64) []byte {
	i := int32(slot - s.Bucket.First)
	if i < 0 || int(i) >= s.Bucket.Slots {
		panic(fmt.Sprintf("slot %d lies outside bucket %s", slot, s.Bucket.Name))
	}
	l := s.Bucket.Lane
	l.sent++
	if s.cells == nil {
		s.cells = make([]uint32, s.Bucket.Slots)
	}
	if old := s.cells[i]; old != 0 || len(s.over[i]) > 0 {
		if s.over == nil {
			s.over = make(map[int32][]uint32)
		}
		if len(s.over[i]) == 0 {
			s.over[i] = []uint32{old}
		}
		s.over[i] = append(s.over[i], l.sent)
	}
	s.cells[i] = l.sent
	s.left = false
	return s.appendPoint(dst, slot, l.sent)
}

// Sent is the number of the newest write. The caller holds the lane.
func (l *Lane) Sent() uint32 { return l.sent }

// Ack notes that the node acknowledged everything up to write last, since the
// one acknowledged before, and refused some of it.
func (l *Lane) Ack(last uint32, refused uint64) {
	l.Lock()
	defer l.Unlock()
	if refused > 0 {
		l.maybe = append(l.maybe, span{l.acked + 1, last})
	}
	l.confirmed += uint64(last-l.acked) - refused
	l.acked = last
}

// Counts returns how many writes were acknowledged and not refused, and sent.
func (l *Lane) Counts() (confirmed, sent uint64) {
	l.Lock()
	defer l.Unlock()
	return l.confirmed, uint64(l.sent)
}

// Break notes that the connection ended: what was not acknowledged may be stored
// or not, whatever is acknowledged later.
func (l *Lane) Break() {
	l.Lock()
	defer l.Unlock()
	if l.sent > l.acked {
		l.maybe = append(l.maybe, span{l.acked + 1, l.sent})
		l.acked = l.sent
	}
}

func (l *Lane) isAcked(n uint32) bool {
	if n == 0 {
		return true
	}
	if n > l.acked {
		return false
	}
	i := sort.Search(len(l.maybe), func(i int) bool { return l.maybe[i].last >= n })
	return i == len(l.maybe) || l.maybe[i].first > n
}

// writes returns all writes of a slot, oldest first.
func (s *Series) writes(i int32) []uint32 {
	if w := s.over[i]; len(w) > 0 {
		return w
	}
	if s.cells == nil || s.cells[i] == 0 {
		return nil
	}
	return []uint32{s.cells[i]}
}

// allowed returns the writes of which one must be there, oldest first; 0 among
// them allows the slot to be unset. Nil means that it must be unset.
func (s *Series) allowed(i int32) []uint32 {
	w := s.writes(i)
	for j := len(w) - 1; j >= 0; j-- {
		if s.Bucket.Lane.isAcked(w[j]) {
			return w[j:]
		}
	}
	if len(w) == 0 {
		return nil
	}
	return append([]uint32{0}, w...)
}

// end ends the life of a series: nothing of it may be seen again.
func (s *Series) end() {
	if s.cells != nil {
		s.deletions = append(s.deletions, deletion{s.cells, s.over, s.Bucket.Lane.sent})
	}
	s.cells, s.over, s.Deleting = nil, nil, false
}

// Deleted notes an acknowledged deletion of the series.
func (s *Series) Deleted() {
	s.Bucket.Lane.Lock()
	defer s.Bucket.Lane.Unlock()
	s.end()
}

// DeletedAfter says whether the series was deleted after a write of its lane.
func (s *Series) DeletedAfter(n uint32) bool {
	return len(s.deletions) > 0 && s.deletions[len(s.deletions)-1].at > n
}

// Written says whether anything was sent since the last deletion.
func (s *Series) Written() bool { return s.cells != nil }

// Acknowledged says whether a point of the series must be there: what was sent may
// all have been refused, as by a full disk.
func (s *Series) Acknowledged() bool {
	s.Bucket.Lane.Lock()
	defer s.Bucket.Lane.Unlock()
	for i := range s.cells {
		if w := s.allowed(int32(i)); len(w) > 0 && w[0] != 0 {
			return true
		}
	}
	return false
}

// SetDeleting notes that a deletion of the series is about to be asked for. All
// of its writes are acknowledged.
func (s *Series) SetDeleting() {
	s.Bucket.Lane.Lock()
	defer s.Bucket.Lane.Unlock()
	s.Deleting = true
}

// SetState notes what was asked of a bucket, or what became of it; with Gone
// nothing of its series may be seen again.
func (b *Bucket) SetState(st State) {
	b.Lane.Lock()
	defer b.Lane.Unlock()
	b.setState(st)
}

func (b *Bucket) setState(st State) {
	b.State = st
	if st == Gone {
		for _, s := range b.Series {
			s.end()
		}
	}
}

// WrittenBetween says whether a write with a number in (after, upto] went into one
// of the count slots from slot on.
func (s *Series) WrittenBetween(slot int64, count int, after, upto uint32) bool {
	if s.cells == nil {
		return false
	}
	lo := max(slot-s.Bucket.First, 0)
	hi := min(slot-s.Bucket.First+int64(count), int64(s.Bucket.Slots))
	for i := lo; i < hi; i++ {
		for _, n := range s.writes(int32(i)) {
			if n > after && n <= upto {
				return true
			}
		}
	}
	return false
}
