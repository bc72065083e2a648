package exec

import (
	"sync"

	"dalmatiner/internal/query/plan"
)

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

func newAhead(x *executor, helpers []*reader) *ahead {
	a := &ahead{helpers: helpers}
	a.changed.L = &a.mu
	if len(helpers) > 0 && x.plan.Slotwise {
		a.leaves = x.pullOrder()
		a.free = make([]block, min(plan.AheadBlocks*len(helpers), len(a.leaves)))
	}
	return a
}

// pullOrder returns the leaves that are not pushed in the order in which a round
// pulls them.
func (x *executor) pullOrder() []*leaf {
	var list []*leaf
	var visit func(n *plan.Node)
	visit = func(n *plan.Node) {
		c := x.nodes[n.ID].shared()
		if c.listed {
			return
		}
		c.listed = true
		if l, ok := x.nodes[n.ID].(*leaf); ok && !l.Pushed() {
			list = append(list, l)
		}
		for _, in := range n.Inputs {
			visit(in)
		}
	}
	for _, r := range x.plan.Roots {
		visit(r.Of)
	}
	for _, n := range x.plan.Ranks {
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
		b.v = make([]float64, 0, len(r.Words))
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
