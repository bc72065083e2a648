package plan

import (
	"fmt"
	"strconv"

	"dalmatiner/internal/query/function"
)

// graph is the plan while nodes are added to it. Equal expressions become one node.
type graph struct {
	request
	out    *Plan
	nodes  map[string]*Node // by what they compute
	naming naming           // memory for names
	shapes map[string]int
	bill   bill
	spare  struct { // for nodes and reads to come, made for several at a time
		nodes []Node
		reads []Read
	}
	at int // position of the field being planned
}

// naming is the bytes of a name. Names are made for every series of a query: they
// are put together without formatting, in memory that the next one uses again.
type naming []byte

// name begins the name of a node or of a shape. It is valid until the next one.
func (g *graph) name(what string) naming { return append(g.naming[:0], what...) }

// number adds numbers, each behind a space.
func (k naming) number(numbers ...int64) naming {
	for _, n := range numbers {
		k = strconv.AppendInt(append(k, ' '), n, 10)
	}
	return k
}

// intern returns the node that computes what its name says, set by build if
// there is none yet. It reads the inputs.
func (g *graph) intern(name naming, build func(*Node), inputs ...*Node) *Node {
	g.naming = name // it may have grown
	if n, ok := g.nodes[string(name)]; ok {
		return n
	}
	key := string(name)
	n := nextOf(&g.spare.nodes, len(g.out.Nodes))
	n.ID, n.Inputs = len(g.out.Nodes), inputs
	build(n)
	g.bill.planned += nodeSize + int64(len(key)) // grow has it paid for
	for _, in := range inputs {
		in.Uses++
		n.Late = n.Late || in.Late
	}
	if n.Late {
		// What waits for late values, or takes them all at once, holds them.
		for _, in := range inputs {
			g.bill.held += 2 * 8 * in.Values // with confidences
		}
	}
	g.nodes[key] = n
	g.out.Nodes = append(g.out.Nodes, n)
	return n
}

// nextOf returns the next of a list that is made anew when it is used up, with as many as
// there are, so that a plan of thousands does not allocate each.
func nextOf[T any](free *[]T, there int) *T {
	if len(*free) == 0 {
		*free = make([]T, min(max(there, 1), 64))
	}
	next := &(*free)[0]
	*free = (*free)[1:]
	return next
}

// describe names a node for EXPLAIN, if that is asked for: a query may have
// very many nodes.
func (g *graph) describe(n *Node, format string, args ...any) {
	if g.opt.Explain && n.What == "" {
		n.What = fmt.Sprintf(format, args...)
	}
}

// shape numbers the ways in which outputs become complete: nodes of equal
// shape complete equally many outputs in every round.
func (g *graph) shape(name naming) int {
	g.naming = name
	id, ok := g.shapes[string(name)]
	if !ok {
		id = len(g.shapes)
		g.shapes[string(name)] = id
	}
	return id
}

// unary plans a node that gives one output per input, when it comes.
func (g *graph) unary(in *Node, key string, op Op) *Node {
	return g.unaryWith(in, key, func(n *Node) { n.Op = op })
}

// unaryWith plans such a node, of which build sets what is not as in its input.
func (g *graph) unaryWith(in *Node, key string, build func(*Node)) *Node {
	return g.intern(g.name(key).number(int64(in.ID)), func(n *Node) {
		n.Resolution, n.Values, n.Form, n.Restart = in.Resolution, in.Values, in.Form, in.Restart
		build(n)
	}, in)
}

func (g *graph) replace(in *Node, threshold, with float64) *Node {
	return g.unary(in, fmt.Sprintf("replace %x %x", threshold, with), &Replace{Threshold: threshold, With: with})
}

// step plans a node whose first output waits for the second input.
func (g *graph) step(in *Node, fn function.Op) *Node {
	return g.unaryWith(in, fmt.Sprintf("step %d", fn), func(n *Node) {
		n.Form = g.shape(g.name("steps").number(int64(n.Form)))
		n.Op = &Step{Fn: fn}
	})
}

// fill plans what stands in gaps. A line waits for its other end, which may be
// as far away as the range is long.
func (g *graph) fill(in *Node, with string, pos int) (*Node, error) {
	var err error
	n := g.unaryWith(in, "fill "+with, func(n *Node) {
		if with == "linear" {
			err = g.hold(pos, 2*8*n.Values)
			n.Late = true
			n.Form = g.shape(g.name("lines of").number(int64(in.ID)))
		}
		n.Op = &Fill{With: with}
	})
	return n, err
}

// nothing plans a series without values.
func (g *graph) nothing(in *Node, span int64) *Node {
	return g.unaryWith(in, "nothing", func(n *Node) {
		n.Resolution *= max(1, span/n.Resolution)
		n.Values, n.Restart, n.Form = 0, 0, g.shape(g.name("nothing"))
		n.Op = &Nothing{}
	})
}

func (g *graph) scalar(pos int, fn function.Op, in *Node, constant float64) (*Node, error) {
	if fn == function.Divide && constant == 0 {
		return nil, g.errorAt(pos, nil, "division by the constant 0")
	}
	n := g.unary(in, fmt.Sprintf("scalar %d %x", fn, constant), &Scalar{Fn: fn, Constant: constant})
	g.describe(n, "%s %v", function.NameOf(function.KindScalar, fn), constant)
	return n, nil
}
