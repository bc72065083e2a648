package exec

import (
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
	b.words = b.words[:0]
	return b
}

func (r *Readers) giveBuffers(b *readBuffers) {
	if r == nil {
		return
	}
	if cap(b.headers) > keptHeaders {
		b.headers = nil
	}
	r.buffers.Put(b)
}
