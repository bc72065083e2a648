package plan

import (
	"fmt"
	"slices"
	"strings"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/function"
)

// Unmatched are series on one side of an operator that have no partner on the other side.
type Unmatched struct {
	Selector string   `json:"selector"` // the side, canonical
	Pos      int      `json:"offset"`   // of it in the query, in bytes
	Series   []string `json:"series"`   // the first of them, by what their stars stand for
	More     int      `json:"more"`     // further ones
}

// unmatchedNamed is how many series of a side are named.
const unmatchedNamed = 20

// pairing plans an operator between series: those on the left each with the one on the right
// whose stars stand for the same.
type pairing struct {
	*planner
	of          *dql.Binary
	fn          function.Op
	left, right side
}

// side is what stands on one side of an operator.
type side struct {
	expr   dql.Expr
	series []Series
}

// stars returns how many stars, or dimensions of GROUP BY, the series of a side have: 0 where
// they differ, as topk of two patterns gives them.
func (s side) stars() int {
	n := s.series[0].stars()
	for i := range s.series {
		if s.series[i].stars() != n {
			return 0
		}
	}
	return n
}

func (s *Series) stars() int {
	if s.grouped {
		return len(s.dims)
	}
	n := 0
	for _, part := range s.pattern {
		if part.Any {
			n++
		}
	}
	return n
}

// single reports whether the side is a series that goes with all of the other.
func (s side) single() bool { return len(s.series) == 1 && s.stars() == 0 }

func (j *pairing) plan() (value, error) {
	v := value{typ: function.TypeMetric}
	l, r := j.left, j.right
	switch {
	case len(l.series) == 0 || len(r.series) == 0:
		return v, nil
	case j.of.On == nil && (l.single() || r.single()):
		for _, a := range l.series {
			for _, b := range r.series {
				if err := j.pair(&v, a, b); err != nil {
					return v, err
				}
			}
		}
		return v, nil
	}
	if err := j.check(); err != nil {
		return v, err
	}
	partners, err := j.byKey(r)
	if err != nil {
		return v, err
	}
	if _, err := j.byKey(l); err != nil {
		return v, err
	}
	var alone []Series
	for _, a := range l.series {
		key, ok := j.key(&a)
		b, found := partners[key]
		if !ok || !found {
			alone = append(alone, a)
			continue
		}
		delete(partners, key)
		if err := j.pair(&v, a, b); err != nil {
			return v, err
		}
	}
	j.leaveOut(l, alone)
	alone = nil
	for _, b := range r.series {
		if key, ok := j.key(&b); ok {
			if _, left := partners[key]; !left {
				continue
			}
		}
		alone = append(alone, b)
	}
	j.leaveOut(r, alone)
	return v, nil
}

// pair plans the operator between two series. The result has the name of the left one, or of
// the right one where a single series on the left goes with all; tags are those of both.
func (j *pairing) pair(v *value, a, b Series) error {
	one, err := j.combineAs(j.of.Pos(), j.fn, []Series{a, b}, true)
	if err != nil {
		return err
	}
	if j.left.single() && !j.right.single() {
		a, b = b, a
	}
	s := one.series[0]
	s.Key, s.tags, s.pattern, s.dims, s.grouped = a.Key, a.tags, a.pattern, a.dims, a.grouped
	if len(b.tags) > 0 {
		s.tags = slices.Concat(a.tags, b.tags)
	}
	v.series = append(v.series, s)
	return j.Grow(seriesSize + tagSize*int64(len(b.tags)))
}

// check reports what the sides cannot be joined by.
func (j *pairing) check() error {
	l, r := j.left.stars(), j.right.stars()
	if j.of.On == nil {
		if l == r && l > 0 {
			return nil
		}
		on := []dql.JoinKey{{Star: 1}}
		if l == 0 || r == 0 {
			on[0] = dql.JoinKey{Dim: &dql.DimVar{Name: "dimension"}}
		}
		shown := *j.of
		shown.On = on
		return j.errorAt(j.of.Pos(), nil,
			"%s on the left and %s on the right: say by which the series belong together, as in %s",
			starsText(l), starsText(r), dql.Text(&shown))
	}
	for _, k := range j.of.On {
		if most := min(l, r); k.Dim == nil && k.Star > int64(most) {
			return j.errorAt(k.Pos, nil, "ON %d: the left has %s and the right %s", k.Star, starsText(l),
				starsText(r))
		}
		for _, of := range []side{j.left, j.right} {
			if k.Dim != nil && !of.has(*k.Dim) {
				return j.errorAt(k.Pos, nil,
					"ON $%s: no series of %s is told from others by this dimension: use a lookup (FROM) of "+
						"single series, or with it in GROUP BY",
					k.Dim.Name, dql.Name(of.expr, maxName))
			}
		}
	}
	return nil
}

func starsText(n int) string {
	switch n {
	case 0:
		return "no star"
	case 1:
		return "1 star"
	}
	return fmt.Sprintf("%d stars", n)
}

// key returns what a series is joined by; ok is false where it lacks a dimension.
func (j *pairing) key(s *Series) (key string, ok bool) {
	all := s.joinValues()
	var b []byte
	if j.of.On == nil {
		for _, text := range all {
			b = metric.AppendQuoted(append(b, '.'), []byte(text))
		}
		return string(b), true
	}
	for _, k := range j.of.On {
		var text string
		if k.Dim == nil {
			text = all[k.Star-1]
		} else if text, ok = valueOf(s.dims, *k.Dim); !ok {
			return "", false
		}
		b = metric.AppendQuoted(append(b, '.'), []byte(text))
	}
	return string(b), true
}

// has reports whether a dimension tells series of the side apart.
func (s side) has(d dql.DimVar) bool {
	return slices.ContainsFunc(s.series, func(of Series) bool {
		_, ok := valueOf(of.dims, d)
		return ok
	})
}

// joinValues returns what the stars of a series stand for, or its values of GROUP BY. A
// dimension that it lacks is a value of its own.
func (s *Series) joinValues() []string {
	var list []string
	if s.grouped {
		for _, d := range s.dims {
			if d.Name == "" {
				list = append(list, "")
			} else {
				list = append(list, "="+d.Value)
			}
		}
		return list
	}
	for _, text := range (&Root{Series: *s}).Stars() {
		list = append(list, "="+text)
	}
	return list
}

// byKey returns the series of a side by what they are joined by. Two with the same are an error:
// nobody knows which one is meant.
func (j *pairing) byKey(of side) (map[string]Series, error) {
	known := make(map[string]Series, len(of.series))
	for _, s := range of.series {
		key, ok := j.key(&s)
		if !ok {
			continue
		}
		if other, twice := known[key]; twice {
			return nil, j.errorAt(of.expr.Pos(), nil,
				"several series of %s belong to one of the other side: %s and %s; combine them first, as "+
					"with sum(…), or name more in ON",
				dql.Name(of.expr, maxName), other.title(), s.title())
		}
		known[key] = s
	}
	return known, nil
}

// title names a series among those of a side.
func (s *Series) title() string {
	if !s.grouped {
		return metric.Text(s.Key)
	}
	list := make([]string, len(s.dims))
	for i, d := range s.dims {
		list[i] = metric.Quote(d.Value)
	}
	return strings.Join(list, ", ")
}

// leaveOut notes the series of a side that have no partner.
func (j *pairing) leaveOut(of side, alone []Series) {
	if len(alone) == 0 {
		return
	}
	u := Unmatched{Selector: dql.Name(of.expr, maxName), Pos: of.expr.Pos()}
	for i := range alone[:min(len(alone), unmatchedNamed)] {
		u.Series = append(u.Series, alone[i].title())
	}
	u.More = len(alone) - len(u.Series)
	known := func(o Unmatched) bool { return o.Pos == u.Pos && o.Selector == u.Selector }
	if len(j.out.Unmatched) < maxMissing && !slices.ContainsFunc(j.out.Unmatched, known) {
		j.out.Unmatched = append(j.out.Unmatched, u)
	}
}

// nothingJoined is the error of a query without a result, where an operator left all series
// out.
func (p *planner) nothingJoined() error {
	if len(p.out.Roots) > 0 || len(p.out.Unmatched) == 0 {
		return nil
	}
	u := p.out.Unmatched[0]
	return p.errorAt(u.Pos, ErrNoResults,
		"no series of %s has a partner on the other side, such as %s", u.Selector, u.Series[0])
}

// inJoins returns the dimensions that operators of an expression join by.
func inJoins(e dql.Expr) []dql.DimVar {
	var list []dql.DimVar
	switch n := e.(type) {
	case *dql.Binary:
		for _, k := range n.On {
			if k.Dim != nil {
				list = append(list, *k.Dim)
			}
		}
		list = append(append(list, inJoins(n.L)...), inJoins(n.R)...)
	case *dql.Call:
		for _, a := range n.Args {
			list = append(list, inJoins(a)...)
		}
	}
	return list
}
