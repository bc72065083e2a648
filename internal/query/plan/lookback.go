package plan

import (
	"time"

	"dalmatiner/internal/query/function"
)

// Some functions look at outputs before the range, so that a value is the same whatever range
// is asked for.
const (
	// Patience is how long a value stands for its series at most, in ms, and how far apart two
	// values of a counter may be.
	Patience = int64(5 * time.Minute / time.Millisecond)

	// Chain is how far apart the last values of a series may be, in ms, to say how far its
	// values are apart.
	Chain = int64(2 * time.Minute / time.Millisecond)

	// ChainLength is of how many distances the largest one counts. Of a series with one value
	// more at the begin of a range nothing before it matters.
	ChainLength = 3
)

// LongestPatience returns how many outputs a value stands for its series at most; half of one
// more is within it, too.
func LongestPatience(resolution int64) int64 { return max(Patience, 2*resolution) / resolution }

// holdBack returns how many outputs before a step tell which value a series has there.
func holdBack(resolution int64) int64 {
	if resolution > Chain {
		return LongestPatience(resolution)
	}
	return (Patience + ChainLength*Chain + resolution - 1) / resolution
}

// LooksBack reports whether the value of a window depends on the last one before it.
func (w *Window) LooksBack() bool { return w.Fn == function.Increase || w.Fn == function.Rate }

// holds reports whether a node holds the values of its inputs.
func (n *Node) holds() bool {
	switch n.Op.(type) {
	case *Combine, *Across:
		return true
	}
	return false
}

// extra returns how many outputs a node has before those that are wanted of it, because they
// know too little of what was before them.
func (n *Node) extra() int64 {
	if n.Calendar != nil {
		return 0 // the windows before the range are not computed
	}
	if n.holds() {
		return holdBack(n.Resolution)
	}
	switch op := n.Op.(type) {
	case *Step:
		return LongestPatience(n.Resolution)
	case *MovingAvg:
		return op.Size - 1
	}
	return 0
}

// Takes returns how many outputs before the range a node takes of an input.
func (n *Node) Takes(in *Node) int64 {
	switch op := n.Op.(type) {
	case *Window:
		return n.Before*op.Size + op.History(in.Resolution)
	case *Histogram:
		return n.Before * op.Size
	}
	return n.Before
}

// History returns how many inputs ahead of its first one a window looks at.
func (w *Window) History(resolution int64) int64 {
	if !w.LooksBack() {
		return 0
	}
	return LongestPatience(resolution)
}

// lookBack sets how many outputs nodes have before the range.
func (g *graph) lookBack() error {
	if g.opt.Compat {
		return nil
	}
	wanted := make([]int64, len(g.out.Nodes))
	for i := len(g.out.Nodes) - 1; i >= 0; i-- { // who reads a node comes after it
		n := g.out.Nodes[i]
		n.Before = wanted[i] + n.extra()
		n.Values += n.Before
		holds := n.holds() && wanted[i] == 0
		for _, in := range n.Inputs {
			wanted[in.ID] = max(wanted[in.ID], n.Takes(in))
			in.firm = in.firm || !holds
		}
	}
	for _, n := range g.out.Reads {
		g.out.Before = max(g.out.Before, n.Before*n.Resolution)
		g.out.Points += n.Before
	}
	if g.out.Points > g.opt.Limits.MaxPoints {
		return g.limit(0, "points to read, with those that functions look back at", g.out.Points,
			g.opt.Limits.MaxPoints,
			"ask for a shorter range, shorter spans or fewer series")
	}
	return nil
}
