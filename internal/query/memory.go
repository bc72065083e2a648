package query

import "fmt"

// Memory lends a query what it is going to use.
type Memory interface {
	// Grow lends so many bytes more, or says why not.
	Grow(bytes int64) error
}

const (
	valueSize = 8

	// leafSize is what a series takes in a plan beside its buffers: its node and
	// those above it, its key, its name in the result.
	leafSize = 768

	// leavesAtOnce is how many series of a plan are borrowed for at a time.
	leavesAtOnce = 1024

	// scratchBlocks is how many rounds of values a plan without shared nodes has
	// at hand: one for each operator in the deepest chain, of which more than
	// this many are rare and small beside the rest.
	scratchBlocks = 8
)

// borrow takes memory before it is used; the error is the lender's.
func (p *planner) borrow(bytes int64) error {
	if p.opt.Memory == nil {
		return nil
	}
	if err := p.opt.Memory.Grow(bytes); err != nil {
		return fmt.Errorf("the query is refused: %w", err)
	}
	return nil
}

// borrowLeaves takes memory for the series of a plan while it is made.
func (p *planner) borrowLeaves() error {
	if len(p.leaves)%leavesAtOnce != 1 {
		return nil
	}
	return p.borrow(leavesAtOnce * leafSize)
}

// borrowRun takes what the run of a finished plan will use: the results, and a
// round for everything that holds one.
func (p *planner) borrowRun() error {
	_, slots := p.roundLength()
	width := int64(valueSize)
	blocks := scratchBlocks + int64(p.buffers)
	for _, n := range p.nodes {
		c := n.shared()
		if c.conf {
			width = 2 * valueSize
		}
		if c.refs > 1 {
			blocks++
		}
	}
	results := int64(0)
	for _, r := range p.roots {
		if r.columns != nil {
			results += min(r.of.shared().n, slots)
		} else {
			results += r.of.shared().n
		}
	}
	if p.opt.Width > 0 {
		results += p.output
	}
	return p.borrow((results + blocks*slots) * width)
}
