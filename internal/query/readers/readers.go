// Package readers holds the goroutines and the memory that the queries of a node read with.
package readers

import (
	"slices"
	"sync"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/source"
)

// Readers are the goroutines with which queries read several series at a time.
// All queries of a node share them: one that finds none free reads alone, so that
// queries never have more processors than these and their own. Memory that one
// query read into is there for the next: what is new to the process costs more
// than a short read.
type Readers struct {
	free    chan struct{}
	buffers sync.Pool // of *Buffers
}

// New returns n of them. Without any a query reads one series after the
// other.
func New(n int) *Readers {
	r := &Readers{free: make(chan struct{}, max(n, 0))}
	for range cap(r.free) {
		r.free <- struct{}{}
	}
	return r
}

// Most is how many a query gets at most; none of nil.
func (r *Readers) Most() int {
	if r == nil {
		return 0
	}
	return min(cap(r.free), plan.MaxReaders)
}

// Free is how many no query has at the moment.
func (r *Readers) Free() int { return len(r.free) }

// Take returns how many of those that are wanted are free. The caller gives them
// back.
func (r *Readers) Take(want int) int {
	for n := range want {
		select {
		case <-r.free:
		default:
			return n
		}
	}
	return max(want, 0)
}

// Give gives n back.
func (r *Readers) Give(n int) {
	for range n {
		r.free <- struct{}{}
	}
}

// Buffers is the memory that one goroutine of a query reads into.
type Buffers struct {
	Words   []uint64        // what leaves read into
	headers []chunk.Header  // what spans read into
	Series  []source.Series // that are read together

	rooms [][]float64 // what windows over spans keep their values in
	taken int         // of the rooms, by this query
	free  []float64   // of the last one taken
}

const (
	// roomSize is how many values a room has: those of some series of a chart.
	roomSize = 4 << 10
	// keptRooms is how many of them are kept for the next query.
	keptRooms = 64
)

// Room returns memory for n values, which is the window's until the query ends.
func (b *Buffers) Room(n int) []float64 {
	if n > roomSize/4 {
		return make([]float64, 0, n)
	}
	if n > len(b.free) {
		if b.taken == len(b.rooms) {
			b.rooms = append(b.rooms, make([]float64, roomSize))
		}
		b.free = b.rooms[b.taken]
		b.taken++
	}
	room := b.free[:0:n]
	b.free = b.free[n:]
	return room
}

// keptHeaders is up to how many headers are kept, those of a round of long spans
// and some: more are rare, and take megabytes.
const keptHeaders = 2 * plan.SpanRounds * plan.RoundSlots / chunk.Slots

// TakeBuffers returns buffers without words in them. They are given back when
// nobody reads into them any more.
func (r *Readers) TakeBuffers() *Buffers {
	if r == nil {
		return new(Buffers)
	}
	b, ok := r.buffers.Get().(*Buffers)
	if !ok {
		return new(Buffers)
	}
	b.Words, b.free, b.taken = b.Words[:0], nil, 0
	return b
}

// GiveBuffers keeps buffers that nobody reads into any more for another query.
func (r *Readers) GiveBuffers(b *Buffers) {
	if r == nil {
		return
	}
	if cap(b.headers) > keptHeaders {
		b.headers = nil
	}
	clear(b.Series[:cap(b.Series)])
	if len(b.rooms) > keptRooms {
		b.rooms = slices.Delete(b.rooms, keptRooms, len(b.rooms))
	}
	r.buffers.Put(b)
}

// Headers returns memory for n headers, for one series after the other.
func (b *Buffers) Headers(n int64) []chunk.Header {
	if int64(cap(b.headers)) < n {
		b.headers = make([]chunk.Header, n)
	}
	return b.headers[:n]
}
