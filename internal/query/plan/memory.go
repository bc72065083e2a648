package plan

import (
	"context"
	"fmt"
	"math"

	"dalmatiner/internal/query/dql"
)

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
	seriesSize = 136
	tagSize    = 64
	rootSize   = 704
	metaSize   = 64

	// stepSize is what EXPLAIN takes for a step, as a struct and as two texts, beside what it says
	// that the step does.
	stepSize = 1024

	// maxSteps is the longest plan that is given: some 10 MB of text, which is
	// made in one go. Nobody reads more.
	maxSteps = 20_000

	// growAtOnce is how much is borrowed for a plan at a time.
	growAtOnce = 64 << 10

	// maxName is the longest name that a field gets without AS: aliases let a
	// short query have a name of gigabytes.
	maxName = 1 << 20
)

// bill is the memory of a query, as far as it is known, and what its rounds will need.
type bill struct {
	held    int64 // bytes that functions hold
	planned int64 // bytes of the plan
	told    int64 // bytes of what EXPLAIN says that steps do: in the plan, and in two texts
	lent    int64 // bytes borrowed for it

	buffers     int // series that hold a part each while a round runs
	partials    int // parts that combinations hold beside the two of a plain one
	spanWindows int // nodes that read spans
}

// borrow takes memory before it is used; the error is the lender's.
func (g *graph) borrow(bytes int64) error {
	if g.opt.Memory == nil {
		return nil
	}
	if err := g.opt.Memory.Grow(bytes); err != nil {
		return fmt.Errorf("the query is refused: %w", err)
	}
	return nil
}

// Grow takes memory for the plan while it is made. That is where planning
// ends when nobody waits for it any more.
func (g *graph) Grow(bytes int64) error {
	if g.opt.Explain && len(g.out.Nodes) > maxSteps {
		return g.limit(g.at, "steps to explain", int64(len(g.out.Nodes)), maxSteps,
			"ask for fewer series, or for the values")
	}
	g.bill.planned += bytes
	need := g.bill.planned + g.bill.told
	if need <= g.bill.lent {
		return nil
	}
	if err := GivenUp(g.ctx); err != nil {
		return err
	}
	if err := g.checkMemory(g.at, g.bill.held+need); err != nil {
		return err
	}
	ahead := need - g.bill.lent + growAtOnce
	g.bill.lent += ahead
	return g.borrow(ahead)
}

// hold adds bytes that a function holds while the query runs.
func (g *graph) hold(pos int, bytes int64) error {
	g.bill.held += bytes
	return g.checkMemory(pos, g.bill.held+g.bill.planned)
}

// checkMemory compares what the query needs with its limit.
func (g *graph) checkMemory(pos int, bytes int64) error {
	if bytes <= g.opt.Limits.MaxMemory {
		return nil
	}
	return g.limit(pos, "bytes to hold at once", bytes, g.opt.Limits.MaxMemory,
		"ask for a shorter range, shorter spans or fewer series")
}

// borrowRest takes memory for running the plan, and for showing it.
func (g *graph) borrowRest() error {
	bytes := max(0, g.out.Memory+g.bill.told-g.bill.lent)
	if g.opt.Explain {
		bytes += stepSize * int64(len(g.out.Nodes))
	}
	return g.borrow(bytes)
}

// histogramBytes returns the memory of a histogram's counts, without making
// it. An integer of the language is at most 2^53.
func histogramBytes(highest int64, digits int) int64 {
	sub := int64(math.Exp2(math.Ceil(math.Log2(2 * math.Pow10(digits)))))
	buckets := int64(1)
	for least := sub; least <= highest; least <<= 1 {
		buckets++
	}
	return (buckets + 1) * sub / 2 * 8
}

// sizeOf returns the bytes that a series of the result takes beside its values.
func sizeOf(r *Root, f *dql.Field) int64 {
	n := rootSize
	if f.As != nil {
		n += len(r.Name)
	}
	for name, v := range r.Meta {
		text, _ := v.(string)
		n += metaSize + len(name) + len(text)
	}
	return int64(n)
}

// GivenUp is the error of a query for which nobody waits any more.
func GivenUp(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the query was given up: %w", err)
	}
	return nil
}
