package plan

import (
	"slices"

	"dalmatiner/internal/query/dql"
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
	if a.fn, ok = function.Lookup(l.By.Name, append(types, function.TypeTime)); !ok ||
		a.fn.Group() != "aggregate" {
		return p.errorAt(a.pos, nil,
			"Not recognized function %s(%s). TOP and BOTTOM take an aggregate over time without its span, "+
				"such as avg() or percentile(0.9)",
			l.By.Name, function.TypeList(append(types, function.TypeTime)))
	}
	if int64(len(p.out.Roots)) <= l.N {
		return nil
	}
	for _, r := range p.out.Roots {
		whole := a
		whole.whole = true
		whole.series = []Series{{Of: r.Of}}
		whole.consts = append(slices.Clone(a.consts),
			value{typ: function.TypeTime, span: r.Of.Resolution * max(1, r.Of.Values)})
		v, err := p.apply(whole)
		if err != nil {
			return err
		}
		n := v.series[0].Of
		n.Uses++
		p.out.Ranks = append(p.out.Ranks, n)
	}
	return nil
}
