package query

import "fmt"

// Memory lends a query what it is going to use.
type Memory interface {
	// Grow lends so many bytes more, or says why not.
	Grow(bytes int64) error
}

const (
	// What a plan takes, in bytes: a node beside its key, what a leaf has more
	// than others, a series among those of a function, a series of the
	// result beside its name and values, and an entry of its metadata.
	nodeSize   = 384
	leafSize   = 528
	seriesSize = 112
	rootSize   = 704
	metaSize   = 64

	// stepSize is what EXPLAIN takes for a step, as a struct and as two texts.
	stepSize = 1024

	// maxSteps is the longest plan that is given: some 10 MB of text, which is
	// made in one go. Nobody reads more.
	maxSteps = 20_000

	// growAtOnce is how much is borrowed for a plan at a time.
	growAtOnce = 256 << 10

	// maxName is the longest name that a field gets without AS: aliases let a
	// short query have a name of gigabytes.
	maxName = 1 << 20
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

// grow takes memory for the plan while it is made. That is where planning
// ends when nobody waits for it any more.
func (p *planner) grow(bytes int64) error {
	if p.explain && len(p.nodes) > maxSteps {
		return p.limit(p.at, "steps to explain", int64(len(p.nodes)), maxSteps, "ask for fewer series, or for the values")
	}
	if p.planned += bytes; p.planned <= p.lent {
		return nil
	}
	if err := givenUp(p.ctx); err != nil {
		return err
	}
	if err := p.checkMemory(p.at, p.held+p.planned); err != nil {
		return err
	}
	ahead := p.planned - p.lent + growAtOnce
	p.lent += ahead
	return p.borrow(ahead)
}

// borrowRest takes memory for running the plan, and for showing it.
func (p *planner) borrowRest() error {
	bytes := max(0, p.memory()-p.lent)
	if p.explain {
		bytes += stepSize * int64(len(p.nodes))
	}
	return p.borrow(bytes)
}
