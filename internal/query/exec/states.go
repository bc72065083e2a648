package exec

// state is what a node that looks back holds between two steps.
type state struct {
	last, sure float64
	odd        bool // it may be from more than a step before: the steps cannot be kept
}

const stateSize = 24

// looksBack is a node whose outputs depend on the last input before.
type looksBack interface {
	state() state
	setState(s state)
}

func (s *step) state() state { return state{last: s.last, sure: s.lastSure} }

// setState has the node stand behind inputs.
func (s *step) setState(of state) { s.came, s.last, s.lastSure = 2, of.last, of.sure }

// state of a window is odd with NaN, which it passes over.
func (w *window) state() state {
	g := w.by.(*growth)
	return state{last: g.last, odd: g.odd}
}

func (w *window) setState(of state) {
	g := w.by.(*growth)
	g.begun, g.last = true, of.last
}

// lookingBack calls fn for each node that has a state, in their order.
func (x *executor) lookingBack(fn func(looksBack)) {
	for _, n := range x.nodes {
		switch n := n.(type) {
		case *step:
			fn(n)
		case *window:
			if n.LooksBack() {
				fn(n)
			}
		}
	}
}

// noteStates notes what nodes hold behind the steps that are to be kept, and ends the notes of leaves.
func (x *executor) noteStates() {
	x.states = []state{}
	x.lookingBack(func(n looksBack) { x.states = append(x.states, n.state()) })
	for _, l := range x.leaves {
		l.noting = false
	}
}

func (x *executor) setStates(list []state) {
	x.lookingBack(func(n looksBack) {
		n.setState(list[0])
		list = list[1:]
	})
}
