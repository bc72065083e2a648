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
func (l *layout) setRounds() {
	l.out.Slotwise = slices.ContainsFunc(l.out.Reads, func(n *Node) bool {
		return !n.Op.(*Read).Pushed()
	})
	l.out.Helpers = l.helpers()
	longest := int64(0)
	l.out.Finest = l.out.Reads[0].Resolution
	for _, n := range l.out.Reads {
		l.out.Finest = min(l.out.Finest, n.Resolution)
		longest = max(longest, n.Values)
	}
	slots := l.opt.RoundSlots
	if !l.out.Slotwise {
		slots *= SpanRounds
	}
	if buffers := l.buffers(); buffers > 0 {
		slots = min(slots, max(1, bufferedValues/int64(buffers)/chunk.Slots)*chunk.Slots)
	}
	slots *= l.stretch()
	// No round is longer than the range, rounded up to whole chunks on both sides.
	l.out.Slots = min(slots, (longest/chunk.Slots+2)*chunk.Slots)
}

// stretch is how many times as many slots a round has where nothing but spans
// longer than a chunk is read: it has as many of them as it would have chunks.
func (l *layout) stretch() int64 {
	if l.out.Slotwise {
		return 1
	}
	shortest := int64(1 << 32) // more than a query may read, and little enough to multiply
	for _, s := range l.out.Spans {
		shortest = min(shortest, s.Size*s.Read.Resolution/l.out.Finest)
	}
	return max(1, shortest/chunk.Slots)
}

// buffers returns how many series hold their values of a round; a window over
// spans has one for minSpan of its slots at most.
func (l *layout) buffers() int {
	n := l.bill.buffers + min(len(l.out.Spans), 1+l.out.Helpers) +
		(l.bill.spanWindows+minSpan-1)/minSpan
	if l.out.Slotwise {
		n += (1 + AheadBlocks) * l.out.Helpers
	}
	for _, node := range l.out.Nodes {
		if node.Uses > 1 {
			n++
		}
	}
	return n
}

// work returns how many slots take the time of all that is read.
func (l *layout) work() int64 {
	slots := int64(0)
	for _, node := range l.out.Reads {
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
func (l *layout) helpers() int {
	if l.opt.Explain || l.work() <= l.opt.AloneSlots {
		return 0
	}
	return min(l.opt.Readers, MaxReaders, max(len(l.out.Spans), len(l.out.Reads))-1)
}

// memory returns the bytes that the query holds at most while it runs: its
// plan, its result, a round of every node that keeps one, and what functions hold.
func (l *layout) memory() int64 {
	values := l.out.Output
	if l.opt.Confidence {
		values *= 2
	}
	slots := (l.out.Slots + l.stretch() - 1) / l.stretch()
	round := slots
	if slices.ContainsFunc(l.out.Nodes, func(n *Node) bool { return n.Confidence }) {
		round = 2 * slots
	}
	partials := l.bill.partials
	if !l.out.Slotwise { // of outputs of spans
		partials = (partials + minSpan - 1) / minSpan
	}
	return l.bill.planned + l.bill.held + 8*(values+int64(l.buffers()+partials)*round)
}
