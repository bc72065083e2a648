package events

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"math"
	"slices"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/host/memory"
)

// tableBatch is how many events a read takes from a table at a time, under the lock.
const tableBatch = 256

// source gives events of one bucket in the order of a merge.
type source interface {
	// load makes the list not empty, or reports false at the end.
	load(m *merged) bool
	// first is that of the list, or one that is not behind what load would give.
	first() key
	// list is what is loaded and not yet taken.
	waiting() []Event
	take()
}

// fromTable is the events of a table.
type fromTable struct {
	s    *Local
	t    *table
	list []Event
	buf  []Event
	next key // where load goes on: from it, or backwards before it
	back bool
	done bool
}

func (f *fromTable) waiting() []Event { return f.list }
func (f *fromTable) take()            { f.list = f.list[1:] }

func (f *fromTable) first() key {
	if len(f.list) > 0 {
		return keyOf(&f.list[0])
	}
	return f.next
}

func (f *fromTable) load(m *merged) bool {
	if f.done {
		return false
	}
	f.s.mu.RLock()
	if f.back {
		f.buf = f.t.before(f.buf[:0], m.bucket, f.next, tableBatch)
	} else {
		f.buf = f.t.from(f.buf[:0], m.bucket, f.next, tableBatch)
	}
	f.s.mu.RUnlock()
	f.list = f.buf
	if len(f.list) == 0 {
		f.done = true
		return false
	}
	if f.next = keyOf(&f.list[len(f.list)-1]); !f.back {
		f.next = f.next.following()
	}
	f.done = len(f.list) < tableBatch
	return true
}

// following is the next key.
func (k key) following() key {
	for i := len(k.id) - 1; i >= 0; i-- {
		if k.id[i]++; k.id[i] != 0 {
			return k
		}
	}
	k.time++
	return k
}

// fromFile is the events of a file: one block at a time is in memory.
type fromFile struct {
	f        *file
	at, past int  // blocks
	back     bool // the last one comes first
	list     []Event
	buf      *eventfile.Buffer
	lent     int64 // memory of buf
}

func (f *fromFile) waiting() []Event { return f.list }
func (f *fromFile) take()            { f.list = f.list[1:] }

func (f *fromFile) first() key {
	switch {
	case len(f.list) > 0:
		return keyOf(&f.list[0])
	case f.at == f.past && f.back:
		return lastKey
	case f.at == f.past:
		return key{}
	case f.back:
		return key{time: f.f.reader.Blocks[f.past-1].Last, id: lastKey.id}
	}
	return key{time: f.f.reader.Blocks[f.at].First}
}

func (f *fromFile) load(m *merged) bool {
	for f.at < f.past {
		if f.buf == nil {
			f.buf = new(eventfile.Buffer)
		}
		if m.err = m.lend(&f.lent, blockMemory); m.err != nil {
			return false
		}
		block := f.at
		if f.back {
			f.past--
			block = f.past
		} else {
			f.at++
		}
		list, err := f.f.reader.Load(block, f.buf)
		if err != nil {
			m.damaged(f.f, block, err)
			continue
		}
		if m.err = m.lend(&f.lent, f.buf.Bytes()); m.err != nil {
			return false
		}
		if f.back {
			slices.Reverse(list)
		}
		f.list = list
		return true
	}
	f.buf = nil
	m.lease.Shrink(f.lent)
	f.lent = 0
	return false
}

// blockMemory is what a block takes that is full of short bodies. It is lent before it is read; a
// body may be longer.
const blockMemory = 640 << 10

// lend makes up for what lent lacks to bytes.
func (m *merged) lend(lent *int64, bytes int64) error {
	if bytes <= *lent {
		return nil
	}
	if err := m.lease.GrowWhenFree(m.ctx, bytes-*lent); err != nil {
		return err
	}
	*lent = bytes
	return nil
}

// merged merges sources into one order without repeats. Files are read when the order has come to
// their next block, so memory holds a block of those that overlap.
type merged struct {
	bucket  uint64
	sources []source
	damaged func(f *file, block int, err error)
	last    key
	back    bool // the last event comes first

	ctx   context.Context // of waits for memory
	lease *memory.Lease   // of blocks; nil lends everything
	err   error           // why there are no more events
}

// order compares keys in the order of the merge.
func (m *merged) order(a, b key) int {
	if m.back {
		a, b = b, a
	}
	return a.compare(b)
}

func (m *merged) Len() int { return len(m.sources) }
func (m *merged) Less(i, j int) bool {
	return m.order(m.sources[i].first(), m.sources[j].first()) < 0
}
func (m *merged) Swap(i, j int) { m.sources[i], m.sources[j] = m.sources[j], m.sources[i] }
func (m *merged) Push(x any)    { m.sources = append(m.sources, x.(source)) }
func (m *merged) Pop() any {
	last := m.sources[len(m.sources)-1]
	m.sources = m.sources[:len(m.sources)-1]
	return last
}

// next returns the next event, nil at the end, or where err says why there is none. It is valid
// until the next call.
func (m *merged) next() *Event {
	for len(m.sources) > 0 {
		top := m.sources[0]
		if len(top.waiting()) == 0 {
			if top.load(m) {
				heap.Fix(m, 0)
			} else if m.err != nil {
				return nil
			} else {
				heap.Pop(m)
			}
			continue
		}
		e := &top.waiting()[0]
		k := keyOf(e)
		if m.order(k, m.last) <= 0 { // a repeat
			top.take()
			heap.Fix(m, 0)
			continue
		}
		m.last = k
		return e
	}
	return nil
}

// memory returns that of the blocks that are loaded.
func (m *merged) memory() (n int64) {
	for _, s := range m.sources {
		if f, ok := s.(*fromFile); ok && f.buf != nil {
			n += f.buf.Bytes()
		}
	}
	return n
}

// done takes the event that next returned.
func (m *merged) done() {
	m.sources[0].take()
	heap.Fix(m, 0)
}

// lastKey is behind every event: none is of that time.
var lastKey = key{math.MaxInt64, ID(bytes.Repeat([]byte{0xff}, len(ID{})))}

// newMerged begins a merge of the events of a bucket from a time on, or with back before a time.
// Events of blocks that reach out of the range come as well.
func newMerged(s *Local, bucket uint64, from, end int64, tables []*table, files []*file,
	back bool) *merged {
	m := &merged{bucket: bucket, back: back}
	from = max(from, 1)
	next := key{time: from}
	if back {
		m.last, next = lastKey, key{time: end}
	}
	for _, t := range tables {
		m.sources = append(m.sources, &fromTable{s: s, t: t, next: next, back: back})
	}
	for _, f := range files {
		if at, past := f.reader.BlockRange(bucket, from, end); at < past {
			m.sources = append(m.sources, &fromFile{f: f, at: at, past: past, back: back})
		}
	}
	heap.Init(m)
	return m
}

// ctxEvery is after how many events a read looks at its context.
const ctxEvery = 256

// Read implements Store.
func (s *Local) Read(ctx context.Context, bucket string, start, end int64,
	fn func(*Event) error) ([]Gap, error) {
	return s.read(ctx, bucket, start, end, false, fn)
}

// ReadBack implements Store.
func (s *Local) ReadBack(ctx context.Context, bucket string, start, end int64,
	fn func(*Event) error) ([]Gap, error) {
	return s.read(ctx, bucket, start, end, true, fn)
}

func (s *Local) read(ctx context.Context, bucket string, start, end int64, back bool,
	fn func(*Event) error) ([]Gap, error) {
	info, err := s.o.Bucket(bucket)
	if err != nil {
		return nil, err
	}
	start = max(start, s.o.livesFrom(&info))
	if start >= end {
		return nil, nil
	}
	v, err := s.pin(info.ID, start, end)
	if err != nil {
		return nil, err
	}
	defer s.unpin(v)
	gaps := v.gaps(info.ID, start, end)
	m := newMerged(s, info.ID, start, end, v.tables, v.files, back)
	m.ctx, m.lease = ctx, s.o.Memory.LeaseFor(ctx)
	defer m.lease.Release()
	m.damaged = func(f *file, block int, err error) {
		s.o.Damage(s.o.name(f.Seq), err)
		gaps = append(gaps, gapOf(&f.reader.Blocks[block]))
	}
	for n := 0; ; n++ {
		if n%ctxEvery == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		e := m.next()
		if m.err != nil {
			return nil, m.err
		}
		if e == nil || !back && e.Time >= end || back && e.Time < start {
			return ordered(gaps), nil
		}
		if e.Time >= start && e.Time < end {
			if err := fn(e); errors.Is(err, Stop) {
				return ordered(gaps), nil
			} else if err != nil {
				return nil, err
			}
		}
		m.done()
	}
}
