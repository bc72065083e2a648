package plan

import (
	"slices"

	"dalmatiner/internal/chunk"
)

const (
	// MaxReaders bounds how many goroutines a query has beside its own.
	MaxReaders = 7
	// AheadBlocks is how many blocks each of them may be ahead of the query.
	AheadBlocks = 4

	// bufferedValues bounds the values held by all nodes that keep a round's
	// outputs; with many of them rounds become shorter.
	bufferedValues = 8 << 20

	// maxPartials is how many partial results a combination has at most.
	maxPartials = joinBits + 2

	// aloneSlots is what a query reads by itself in less time than it takes to
	// wake another processor and to wait for it.
	aloneSlots = 64 << 10
	// headerSlots is how many slots take the time of a header.
	headerSlots = 50
)

// setRounds sets how the plan is run, once it is known what is read by spans.
func (p *planner) setRounds() {
	p.out.Slotwise = slices.ContainsFunc(p.out.Reads, func(n *Node) bool { return !n.Op.(*Read).Pushed() })
	p.out.Helpers = p.helpers()
	longest := int64(0)
	p.out.Finest = p.out.Reads[0].Resolution
	for _, n := range p.out.Reads {
		p.out.Finest = min(p.out.Finest, n.Resolution)
		longest = max(longest, n.Values)
	}
	slots := p.opt.RoundSlots
	if !p.out.Slotwise {
		slots *= SpanRounds
	}
	if buffers := p.buffers(); buffers > 0 {
		slots = min(slots, max(1, bufferedValues/int64(buffers)/chunk.Slots)*chunk.Slots)
	}
	slots *= p.stretch()
	// No round is longer than the range, rounded up to whole chunks on both sides.
	p.out.Slots = min(slots, (longest/chunk.Slots+2)*chunk.Slots)
}

// stretch is how many times as many slots a round has where nothing but spans
// longer than a chunk is read: it has as many of them as it would have chunks.
func (p *planner) stretch() int64 {
	if p.out.Slotwise {
		return 1
	}
	shortest := int64(1 << 32) // more than a query may read, and little enough to multiply
	for _, s := range p.out.Spans {
		shortest = min(shortest, s.Size*s.Read.Resolution/p.out.Finest)
	}
	return max(1, shortest/chunk.Slots)
}

// buffers returns how many series hold their values of a round; a window over
// spans has one for minSpan of its slots at most.
func (p *planner) buffers() int {
	n := p.bill.buffers + min(len(p.out.Spans), 1+p.out.Helpers) + (p.bill.spanWindows+minSpan-1)/minSpan
	if p.out.Slotwise {
		n += (1 + AheadBlocks) * p.out.Helpers
	}
	for _, node := range p.out.Nodes {
		if node.Uses > 1 {
			n++
		}
	}
	return n
}

// work returns how many slots take the time of all that is read.
func (p *planner) work() int64 {
	slots := int64(0)
	for _, node := range p.out.Reads {
		n, read := node.Values, node.Op.(*Read)
		if read.Pushed() && !slices.ContainsFunc(read.Spans, func(s *Spans) bool { return s.Size < chunk.Slots }) {
			n = n / chunk.Slots * headerSlots
		}
		slots += n
	}
	return slots
}

// helpers returns how many goroutines beside its own the query may have. What
// is little is read alone, and so is what EXPLAIN shows, or times would not add
// up.
func (p *planner) helpers() int {
	if p.opt.Explain || p.work() <= p.opt.AloneSlots {
		return 0
	}
	return min(p.opt.Readers, MaxReaders, max(len(p.out.Spans), len(p.out.Reads))-1)
}

// memory returns the bytes that the query holds at most while it runs: its
// plan, its result, a round of every node that keeps one, and what functions hold.
func (p *planner) memory() int64 {
	values := p.results
	if p.opt.Confidence {
		values *= 2
	}
	slots := (p.out.Slots + p.stretch() - 1) / p.stretch()
	round := slots
	if slices.ContainsFunc(p.out.Nodes, func(n *Node) bool { return n.Confidence }) {
		round = 2 * slots
	}
	partials := p.bill.partials
	if !p.out.Slotwise { // of outputs of spans
		partials = (partials + minSpan - 1) / minSpan
	}
	return p.bill.planned + p.bill.held + 8*(values+int64(p.buffers()+partials)*round)
}
