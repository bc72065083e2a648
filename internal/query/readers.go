package query

import (
	"sync"

	"dalmatiner/internal/chunk"
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

// most is how many a query gets at most.
func (r *Readers) most() int {
	if r == nil {
		return 0
	}
	return min(cap(r.free), maxReaders)
}

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

const (
	// maxReaders bounds how many of them one query has.
	maxReaders = 7
	// aheadBlocks is how many blocks each of them may be ahead of the query.
	aheadBlocks = 4
)

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
const keptHeaders = 2 * spanRounds * roundSlots / chunkSlots

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

// ahead reads leaves before they are pulled, in the order in which a round does
// that. The query itself takes part wherever it would wait.
type ahead struct {
	helpers []*reader
	group   sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond // a leaf is done, a block is free, or the round is over
	leaves  []*leaf   // read slot by slot, in order
	next    int       // leaves before this one are begun
	free    []block
	over    bool
}

// aheadState is how far a leaf is in a round.
type aheadState uint8

const (
	aheadIdle aheadState = iota
	aheadBusy
	aheadDone  // ready has its outputs, or failure why not
	aheadTaken // it was pulled
)

func newAhead(p *planner, helpers []*reader) *ahead {
	a := &ahead{helpers: helpers}
	a.changed.L = &a.mu
	if len(helpers) > 0 && p.slotwise() {
		a.leaves = p.pullOrder()
		a.free = make([]block, min(aheadBlocks*len(helpers), len(a.leaves)))
	}
	return a
}

// pullOrder returns the leaves that are not pushed in the order in which a round
// pulls them.
func (p *planner) pullOrder() []*leaf {
	var list []*leaf
	var visit func(n node)
	visit = func(n node) {
		c := n.shared()
		if c.listed {
			return
		}
		c.listed = true
		if l, ok := n.(*leaf); ok && !l.pushed() {
			list = append(list, l)
		}
		for _, in := range c.inputs {
			visit(in)
		}
	}
	for _, r := range p.roots {
		visit(r.of)
	}
	for _, n := range p.ranks {
		visit(n)
	}
	return list
}

// begin opens a round, end closes it.
func (a *ahead) begin() {
	if len(a.leaves) < 2 {
		return
	}
	a.next, a.over = 0, false
	for _, l := range a.leaves {
		if l.state != aheadDone { // one that nobody pulled keeps its block
			l.state = aheadIdle
		}
	}
	for _, r := range a.helpers {
		a.group.Go(func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			for !a.over && a.next < len(a.leaves) {
				if !a.one(r) {
					a.changed.Wait()
				}
			}
		})
	}
}

func (a *ahead) end() {
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.changed.Broadcast()
	a.group.Wait()
}

// one reads the next leaf, if there is one and memory for it. Under the lock,
// which it gives back meanwhile.
func (a *ahead) one(r *reader) bool {
	for a.next < len(a.leaves) && a.leaves[a.next].state != aheadIdle {
		a.next++
	}
	if a.next == len(a.leaves) || len(a.free) == 0 {
		return false
	}
	l, b := a.leaves[a.next], a.free[len(a.free)-1]
	a.next, a.free = a.next+1, a.free[:len(a.free)-1]
	l.state = aheadBusy
	a.mu.Unlock()
	if b.v == nil {
		b.v = make([]float64, 0, len(r.words))
	}
	b, err := l.produce(r, b)
	a.mu.Lock()
	l.ready, l.failure, l.state = b, err, aheadDone
	a.changed.Broadcast()
	return true
}

// pull appends what a leaf has in this round to dst.
func (a *ahead) pull(l *leaf, r *reader, dst block) (block, error) {
	a.mu.Lock()
	for l.state == aheadBusy {
		if !a.one(r) {
			a.changed.Wait()
		}
	}
	if l.state == aheadDone {
		if cap(dst.v) == cap(l.ready.v) && len(dst.v) == 0 {
			dst, l.ready = l.ready, dst // nobody's memory grows by it
		} else {
			dst = dst.take(&l.ready)
		}
		a.free = append(a.free, l.ready.empty())
		l.ready = block{}
		a.changed.Broadcast()
	}
	l.state = aheadTaken
	err := l.failure
	a.mu.Unlock()
	if err != nil {
		return dst, err
	}
	return l.produce(r, dst) // what was not read yet
}
