package query

import (
	"cmp"
	"slices"

	"dalmatiner/internal/dql"
	"dalmatiner/internal/query/function"
)

// top plans TOP and BOTTOM: an aggregate over the whole length of every
// result. Nothing is left out, nor put into order, when there are few enough.
func (p *planner) top(l *dql.Limit) error {
	if l.N < 1 {
		return p.errorAt(l.Pos, nil, "TOP and BOTTOM keep at least 1 series, not %d", l.N)
	}
	a := arguments{pos: l.By.Pos()}
	types := []function.Type{function.TypeMetric}
	for _, e := range l.By.Args {
		v, err := p.expr(e)
		if err != nil {
			return err
		}
		types = append(types, v.typ)
		a.consts = append(a.consts, v)
	}
	var ok bool
	if a.fn, ok = function.Lookup(l.By.Name, append(types, function.TypeTime)); !ok || a.fn.Group() != "aggregate" {
		return p.errorAt(a.pos, nil, "Not recognized function %s(%s). TOP and BOTTOM take an aggregate over time without its span, such as avg() or percentile(0.9)",
			l.By.Name, function.TypeList(append(types, function.TypeTime)))
	}
	if int64(len(p.roots)) <= l.N {
		return nil
	}
	for _, r := range p.roots {
		c := r.of.shared()
		whole := a
		whole.series = []series{{of: r.of}}
		whole.consts = append(slices.Clone(a.consts), value{typ: function.TypeTime, span: c.res * max(1, c.n)})
		v, err := p.apply(whole)
		if err != nil {
			return err
		}
		n := v.series[0].of
		n.shared().refs++
		p.ranks = append(p.ranks, n)
	}
	return nil
}

// chosen returns the positions of the roots that are in the result, in its
// order. Of equal ranks the first stays first; a series without a number comes
// last.
func (x *executor) chosen() []int {
	list := make([]int, 0, len(x.plan.roots))
	for i, r := range x.plan.roots {
		if p, ok := r.of.(*pick); !ok || p.shown {
			list = append(list, i)
		}
	}
	l := x.plan.q.Limit
	if l == nil || len(x.ranks) == 0 || int64(len(list)) <= l.N {
		return list
	}
	slices.SortStableFunc(list, func(a, b int) int {
		va, vb := x.ranks[a].v, x.ranks[b].v
		lostA, lostB := len(va) == 0 || va[0] != va[0], len(vb) == 0 || vb[0] != vb[0]
		switch {
		case lostA && lostB:
			return 0
		case lostA:
			return 1
		case lostB:
			return -1
		case l.Bottom:
			return cmp.Compare(va[0], vb[0])
		}
		return cmp.Compare(vb[0], va[0])
	})
	return list[:l.N]
}
