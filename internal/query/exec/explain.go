package exec

import "dalmatiner/internal/query/explain"

func (l *leaf) readStats() explain.ReadStats {
	return explain.ReadStats{Slots: l.of.past - l.of.from, Asked: l.asked, Set: l.of.set,
		Headers: l.cost.Headers, Rollups: l.cost.Rollups, Decoded: l.cost.Decoded, Bytes: l.cost.Bytes,
		Unknown: l.unknown()}
}

// explained returns the plan after the last round.
func (x *executor) explained() *explain.Explanation {
	p := x.plan
	out := &explain.Explanation{
		Steps:   make([]explain.Step, len(p.Nodes)),
		Rounds:  x.round,
		Slots:   p.Slots,
		Memory:  p.Memory,
		Lookups: p.Lookups,
	}
	for i, n := range p.Nodes {
		s := explain.Step{ID: n.ID + 1, Name: n.What, Resolution: n.Resolution, Values: n.Values,
			Uses:   n.Uses,
			Micros: x.nodes[i].shared().took.Microseconds()}
		for _, in := range n.Inputs {
			s.Inputs = append(s.Inputs, in.ID+1)
		}
		if l, ok := x.nodes[i].(*leaf); ok {
			stats := l.readStats()
			s.Read = &stats
		}
		out.Steps[i] = s
	}
	for _, r := range p.Roots {
		out.Fields = append(out.Fields, r.Of.ID+1)
	}
	for _, n := range p.Ranks {
		out.Ranks = append(out.Ranks, n.ID+1)
	}
	return out
}

// advance is node.next. For a plan its time is added up, less that of the
// nodes it pulls.
func (x *executor) advance(n node, dst block) (block, error) {
	if !x.plan.Explain {
		return n.next(x, dst)
	}
	outer := x.below
	x.below = 0
	began := x.env.Now()
	dst, err := n.next(x, dst)
	took := x.env.Now().Sub(began)
	n.shared().took += took - x.below
	x.below = outer + took
	return dst, err
}
