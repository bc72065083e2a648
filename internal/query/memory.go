package query

import "fmt"

// Memory lends a query what it is going to use.
type Memory interface {
	// Grow lends so many bytes more, or says why not.
	Grow(bytes int64) error
}

const (
	// leafSize is what a series takes in a plan beside its buffers: its node and
	// those above it, its key, its name in the result.
	leafSize = 768

	// leavesAtOnce is how many series of a plan are borrowed for at a time.
	leavesAtOnce = 1024
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
