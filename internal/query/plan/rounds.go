package plan

import (
	"slices"

	"dalmatiner/internal/codec/chunk"
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
func (g *graph) setRounds() {
	g.out.Slotwise = slices.ContainsFunc(g.out.Reads, func(n *Node) bool {
		return !n.Op.(*Read).Pushed()
	})
	g.out.Helpers = g.helpers()
	longest := int64(0)
	g.out.Finest = g.out.Reads[0].Resolution
	for _, n := range g.out.Reads {
		g.out.Finest = min(g.out.Finest, n.Resolution)
		longest = max(longest, n.Values)
	}
	slots := g.opt.RoundSlots
	if !g.out.Slotwise {
		slots *= SpanRounds
	}
	if buffers := g.buffers(); buffers > 0 {
		slots = min(slots, max(1, bufferedValues/int64(buffers)/chunk.Slots)*chunk.Slots)
	}
	slots *= g.stretch()
	// No round is longer than the range, rounded up to whole chunks on both sides.
	g.out.Slots = min(slots, (longest/chunk.Slots+2)*chunk.Slots)
}

// stretch is how many times as many slots a round has where nothing but spans
// longer than a chunk is read: it has as many of them as it would have chunks.
func (g *graph) stretch() int64 {
	if g.out.Slotwise {
		return 1
	}
	shortest := int64(1 << 32) // more than a query may read, and little enough to multiply
	for _, s := range g.out.Spans {
		shortest = min(shortest, s.Size*s.Read.Resolution/g.out.Finest)
	}
	return max(1, shortest/chunk.Slots)
}

// buffers returns how many series hold their values of a round; a window over
// spans has one for minSpan of its slots at most.
func (g *graph) buffers() int {
	n := g.bill.buffers + min(len(g.out.Spans), 1+g.out.Helpers) +
		(g.bill.spanWindows+minSpan-1)/minSpan
	if g.out.Slotwise {
		n += (1 + AheadBlocks) * g.out.Helpers
	}
	for _, node := range g.out.Nodes {
		if node.Uses > 1 {
			n++
		}
	}
	return n
}

// work returns how many slots take the time of all that is read.
func (g *graph) work() int64 {
	slots := int64(0)
	for _, node := range g.out.Reads {
		n, read := node.Values, node.Op.(*Read)
		if read.Pushed() && !slices.ContainsFunc(read.Spans, func(s *Spans) bool {
			return s.Size < chunk.Slots
		}) {
			n = n / chunk.Slots * headerSlots
		}
		slots += n
	}
	return slots
}

// helpers returns how many goroutines beside its own the query may have. What
// is little is read alone, and so is what EXPLAIN shows, or times would not add
// up.
func (g *graph) helpers() int {
	if g.opt.Explain || g.work() <= g.opt.AloneSlots {
		return 0
	}
	return min(g.opt.Readers, MaxReaders, max(len(g.out.Spans), len(g.out.Reads))-1)
}

// memory returns the bytes that the query holds at most while it runs: its
// plan, its result, a round of every node that keeps one, and what functions hold.
func (g *graph) memory() int64 {
	values := g.out.Output
	if g.opt.Confidence {
		values *= 2
	}
	slots := (g.out.Slots + g.stretch() - 1) / g.stretch()
	round := slots
	if slices.ContainsFunc(g.out.Nodes, func(n *Node) bool { return n.Confidence }) {
		round = 2 * slots
	}
	partials := g.bill.partials
	if !g.out.Slotwise { // of outputs of spans
		partials = (partials + minSpan - 1) / minSpan
	}
	return g.bill.planned + g.bill.held + 8*(values+int64(g.buffers()+partials)*round)
}
