package exec

import (
	"slices"
	"sync"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/query/plan"
)

// Readers are the goroutines with which queries read several series at a time.
// All queries of a node share them: one that finds none free reads alone, so that
// queries never have more processors than these and their own. Memory that one
// query read into is there for the next: what is new to the process costs more
// than a short read.
type Readers struct {
	free    chan struct{}
	buffers sync.Pool // of *readBuffers
}

// NewReaders returns n of them. Without any a query reads one series after the
// other.
func NewReaders(n int) *Readers {
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

// take returns how many of those that are wanted are free. The caller gives them
// back.
func (r *Readers) take(want int) int {
	for n := range want {
		select {
		case <-r.free:
		default:
			return n
		}
	}
	return max(want, 0)
}

func (r *Readers) give(n int) {
	for range n {
		r.free <- struct{}{}
	}
}

// reader is what one goroutine of a query reads with.
type reader struct {
	*executor
	*readBuffers
}

// readBuffers is the memory that it reads into.
type readBuffers struct {
	words   []uint64       // what leaves read into
	headers []chunk.Header // what spans read into

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

// room returns memory for n values, which is the window's until the query ends.
func (b *readBuffers) room(n int) []float64 {
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

// takeBuffers returns buffers without words in them. They are given back when
// nobody reads into them any more.
func (r *Readers) takeBuffers() *readBuffers {
	if r == nil {
		return new(readBuffers)
	}
	b, ok := r.buffers.Get().(*readBuffers)
	if !ok {
		return new(readBuffers)
	}
	b.words, b.free, b.taken = b.words[:0], nil, 0
	return b
}

func (r *Readers) giveBuffers(b *readBuffers) {
	if r == nil {
		return
	}
	if cap(b.headers) > keptHeaders {
		b.headers = nil
	}
	if len(b.rooms) > keptRooms {
		b.rooms = slices.Delete(b.rooms, keptRooms, len(b.rooms))
	}
	r.buffers.Put(b)
}
