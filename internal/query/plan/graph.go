package plan

import (
	"fmt"
	"maps"
	"strconv"

	"dalmatiner/internal/query/calendar"
	"dalmatiner/internal/query/function"
)

// graph is the plan while nodes are added to it. Equal expressions become one node.
type graph struct {
	request
	out    *Plan
	nodes  map[name]*Node // by what they compute
	naming naming         // memory for names
	text   string         // of the name that was new last
	shapes map[shape]int
	bill   bill

	calendars map[calendar.Step]*Calendar // by their steps
	bounded   map[boundsOf][]int64        // bounds of windows
	// for nodes to come and what they have, made for several at a time
	spare struct {
		nodes   []Node
		reads   []Read
		windows []Window
		spans   []Spans
	}
	at int // position of the field being planned
}

// name says what a node computes, and of which other one, by its ID; of -1 where it reads
// none or several, which are in the text then.
type name struct {
	text string
	of   int
}

// naming is the bytes of the text of a name. Names are made for every series of a query:
// they are put together without formatting, in memory that the next one uses again.
type naming []byte

// name begins the text of a name. It is valid until the next one.
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
func (g *graph) intern(text naming, build func(*Node), inputs ...*Node) *Node {
	g.naming = text // it may have grown
	if n, ok := g.nodes[name{string(text), -1}]; ok {
		return n
	}
	return g.add(name{string(text), -1}, g.node(inputs), build)
}

// internOver is intern for a node that reads a single one.
func (g *graph) internOver(in *Node, text naming, build func(*Node)) *Node {
	g.naming = text
	if n, ok := g.nodes[name{string(text), in.ID}]; ok {
		return n
	}
	if g.text != string(text) { // else it is the same function of another series
		g.text = string(text)
	}
	n := g.node(nil)
	n.one[0] = in
	n.Inputs = n.one[:]
	return g.add(name{g.text, in.ID}, n, build)
}

// node returns a new node.
func (g *graph) node(inputs []*Node) *Node {
	n := nextOf(&g.spare.nodes, len(g.out.Nodes))
	n.ID, n.Inputs = len(g.out.Nodes), inputs
	return n
}

// add builds a node that has its inputs, and adds it to the plan.
func (g *graph) add(key name, n *Node, build func(*Node)) *Node {
	if len(n.Inputs) > 0 {
		n.First = n.Inputs[0].First
	}
	build(n)
	g.bill.planned += nodeSize + int64(len(key.text)) // Grow has it paid for
	for _, in := range n.Inputs {
		in.Uses++
		n.Late = n.Late || in.Late
	}
	if n.Late {
		// What waits for late values, or takes them all at once, holds them.
		for _, in := range n.Inputs {
			g.bill.held += 2 * 8 * in.Values // with confidences
		}
	}
	g.nodes[key] = n
	g.out.Nodes = append(g.out.Nodes, n)
	return n
}

// expect makes room for so many nodes more.
func (g *graph) expect(more int) {
	if more > len(g.nodes) {
		nodes := make(map[name]*Node, len(g.nodes)+more)
		maps.Copy(nodes, g.nodes)
		g.nodes = nodes
	}
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
		g.bill.told += 3 * int64(len(n.What)) // Grow has it paid for
	}
}

// shape is a way in which outputs become complete: what nodes do, and with which numbers.
type shape struct {
	what    string
	numbers [4]int64
}

// shape numbers the ways in which outputs become complete: nodes of equal
// shape complete equally many outputs in every round.
func (g *graph) shape(what string, numbers ...int64) int {
	key := shape{what: what}
	copy(key.numbers[:], numbers)
	id, ok := g.shapes[key]
	if !ok {
		id = len(g.shapes)
		g.shapes[key] = id
	}
	return id
}

// unary plans a node that gives one output per input, when it comes.
func (g *graph) unary(in *Node, key string, op Op) *Node {
	return g.unaryWith(in, key, func(n *Node) { n.Op = op })
}

// unaryWith plans such a node, of which build sets what is not as in its input.
func (g *graph) unaryWith(in *Node, key string, build func(*Node)) *Node {
	return g.internOver(in, g.name(key), func(n *Node) {
		n.Resolution, n.Values, n.Form, n.Restart, n.Calendar = in.Resolution, in.Values, in.Form,
			in.Restart, in.Calendar
		build(n)
	})
}

func (g *graph) replace(in *Node, threshold, with float64) *Node {
	return g.unary(in, fmt.Sprintf("replace %x %x", threshold, with),
		&Replace{Threshold: threshold, With: with})
}

// step plans a node that computes from each value and the one before it. With compat its first
// output waits for the second input.
func (g *graph) step(in *Node, fn function.Op) *Node {
	return g.unaryWith(in, fmt.Sprintf("step %d", fn), func(n *Node) {
		if g.opt.Compat {
			n.Form = g.shape("steps", int64(n.Form))
		}
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
			n.Form = g.shape("lines of", int64(in.ID))
		}
		n.Op = &Fill{With: with}
	})
	return n, err
}

// nothing plans a series without values.
func (g *graph) nothing(in *Node, span int64) *Node {
	return g.unaryWith(in, "nothing", func(n *Node) {
		n.Resolution *= max(1, span/n.Resolution)
		n.Values, n.Restart, n.Form = 0, 0, g.shape("nothing")
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
