package tags

import (
	"cmp"
	"context"
	"dalmatiner/internal/tags/match"
	"fmt"
	"slices"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags/postings"
)

// Query is what is looked for.
type Query struct {
	Collection []byte
	Metric     []byte    // key of the metric's name; nil for all
	Where      *Cond     // nil for all
	Want       []TagName // tags whose values are wanted
}

// Hit is a series that a lookup found. It is valid during the call that has it.
type Hit struct {
	Bucket uint64
	Key    []byte
	Values [][]byte // of the tags that are wanted; nil for those that the series lacks
}

// Step says how a lookup took a part of what was asked: it read Lists postings lists with Postings
// series in all, and looked into Checked series one by one. Found series were left behind it.
// The steps of a part come before it, one deeper.
type Step struct {
	Depth    int
	What     string
	Lists    int
	Postings int
	Checked  int
	Found    int
}

// HasCollection reports whether a collection has a series.
func (x *Index) HasCollection(collection []byte) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	number, ok := x.collections.find(collection)
	return ok && x.inCollection.Len(number) > 0
}

// Lookup calls fn for every series that q finds, until fn returns false. steps are what it
// did, in order. An error is that of the context, or of a regular expression.
//
// fn may call the index. A series that is dropped during the lookup may be left out, and one
// whose tags change may have the new ones.
func (x *Index) Lookup(ctx context.Context, q *Query,
	fn func(*Hit) bool) (steps []Step, err error) {
	l := lookup{x: x, ctx: ctx}
	x.lookups.Add(1) // no id that is found means another series until the end
	defer x.lookups.Add(-1)
	found, err := l.find(q)
	if err != nil {
		return nil, err
	}
	return l.steps, l.hits(q, found, fn)
}

// lookup is the state of one.
type lookup struct {
	x     *Index
	ctx   context.Context
	done  int // rows and values that were looked at
	steps []Step
	depth int
	err   error // of memory: whatever is left to do ends
}

const askEvery = 4096 // rows or values, between two looks at the context

func (l *lookup) cancelError() error {
	if l.done++; l.done%askEvery == 0 && l.err == nil {
		return l.ctx.Err()
	}
	return l.err
}

func (l *lookup) step(s Step) {
	s.Depth = l.depth
	l.steps = append(l.steps, s)
}

// find returns the rows of a query. Lists come before what looks at values, what looks at values
// before what looks at rows; of two lists the shorter one is first.
func (l *lookup) find(q *Query) (found postings.Set, err error) {
	x := l.x
	x.mu.RLock()
	defer x.mu.RUnlock()
	number, ok := x.collections.find(q.Collection)
	if !ok {
		return postings.Of(), nil
	}
	found = x.inCollection.Set(number)
	l.step(Step{
		What:     "collection " + metric.Quote(string(q.Collection)),
		Lists:    1,
		Postings: found.Len(),
		Found:    found.Len(),
	})
	if q.Metric != nil {
		named := l.rowsNamed(q.Metric, number)
		found = found.And(named)
		l.step(Step{
			What:     "metric " + metric.Text(q.Metric),
			Lists:    1,
			Postings: named.Len(),
			Found:    found.Len(),
		})
	}
	if q.Where == nil {
		return found.Clone(), nil
	}
	return l.all(q.Where, found)
}

// rowsNamed returns the rows of series that a collection knows by a name. Of those that have only
// their own key there is at most one in a bucket.
func (l *lookup) rowsNamed(name []byte, collection uint32) postings.Set {
	x := l.x
	var own []uint32
	for bucket, id := range x.buckets.ids {
		row, ok := x.find(seriesHash(id, name), uint32(bucket), collection, name)
		if !ok {
			continue
		}
		_, _, _, rest := keyOf(x.rows.Get(x.at[row]))
		if _, _, named := openTags(rest); !named {
			own = append(own, row)
		}
	}
	set := postings.Of(own...)
	if number, ok := x.metrics.find(name); ok {
		set = set.Or(x.ofMetric.Set(number))
	}
	return set
}

// operand is a part of a chain of AND with what it costs.
type operand struct {
	*Cond
	class, size int
}

// all returns the rows of within for which a condition holds. Those of a chain of AND are taken
// one by one, the cheapest first, until nothing is left.
func (l *lookup) all(c *Cond, within postings.Set) (found postings.Set, err error) {
	var operands []operand
	for rest := []*Cond{c}; len(rest) > 0; {
		c := rest[0]
		if rest = rest[1:]; c.Op == And {
			rest = append([]*Cond{c.Left, c.Right}, rest...)
			continue
		}
		class, size := l.cost(c)
		operands = append(operands, operand{c, class, size})
	}
	slices.SortStableFunc(operands, func(a, b operand) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.size, b.size))
	})
	for len(operands) > 0 {
		n := impliedOnes(operands)
		if n > 1 {
			within, err = l.rowsImplied(operands[:n], within)
		} else {
			n = 1
			within, err = l.rowsOf(operands[0].Cond, within)
		}
		if err != nil {
			return within, err
		}
		operands = operands[n:]
	}
	return within, nil
}

// impliedOnes returns how many of the first operands are about tags that keys imply.
func impliedOnes(operands []operand) (n int) {
	for _, o := range operands {
		switch o.Op {
		case And, Or, Not:
			return n
		}
		if _, ok := impliedTag(o.Tag); !ok {
			return n
		}
		n++
	}
	return n
}

// rowsImplied returns the rows of within for whose keys all of several conditions hold. Each row is
// looked at once: they lie all over the memory.
func (l *lookup) rowsImplied(operands []operand,
	within postings.Set) (found postings.Set, err error) {
	steps, tags, matchers := make([]Step, len(operands)), make([]keyTag, len(operands)),
		make([]*match.Matcher, len(operands))
	for i, o := range operands {
		steps[i].What = o.String()
		tags[i], _ = impliedTag(o.Tag)
		if o.Op != Exists {
			if matchers[i], err = matcherOf(o.Cond); err != nil {
				return found, fmt.Errorf("%s: %w", o.Cond, err)
			}
		}
	}
	var s Step
	var buf [8]byte
	found, err = l.filter(within, &s, func(row []byte) bool {
		_, _, key, _ := keyOf(row)
		for i, tag := range tags {
			steps[i].Checked++
			value, ok := tag.valueOf(buf[:], key)
			if !ok || matchers[i] != nil && !matchers[i].Match(value) {
				return false
			}
			steps[i].Found++
		}
		return true
	})
	for _, s := range steps {
		l.step(s)
	}
	return found, err
}

// The classes of conditions, the cheaper ones first.
const (
	byLists = iota
	byBoth
	byValues
	byRows
)

func (l *lookup) cost(c *Cond) (class, size int) {
	switch c.Op {
	case And, Or:
		a, n := l.cost(c.Left)
		b, m := l.cost(c.Right)
		return max(a, b, byBoth), n + m
	case Not:
		class, _ = l.cost(c.Left)
		return max(class, byBoth), 0
	}
	if _, ok := impliedTag(c.Tag); ok {
		return byRows, 0
	}
	name, ok := l.name(c.Tag)
	if !ok {
		return byLists, 0
	}
	switch c.Op {
	case Exists:
		return byLists, l.x.withName.Len(name)
	case Equal:
		pair, ok := l.pair(name, c.Value)
		if !ok {
			return byLists, 0
		}
		return byLists, l.x.withPair.Len(pair)
	}
	return byValues, l.x.ofName.Len(name)
}

func (l *lookup) name(n TagName) (number uint32, ok bool) {
	return l.x.names.find(appendName(nil, n))
}

func (l *lookup) pair(name uint32, value []byte) (number uint32, ok bool) {
	var buf [64]byte
	return l.x.pairs.find(appendPair(buf[:0], name, value))
}

// rowsOf returns the rows of within for which a condition holds that is no AND.
func (l *lookup) rowsOf(c *Cond, within postings.Set) (found postings.Set, err error) {
	s := Step{What: c.String()}
	l.depth++
	switch {
	case c.Op == Or:
		var right postings.Set
		if found, err = l.all(c.Left, within); err != nil {
			return found, err
		}
		if right, err = l.all(c.Right, within); err != nil {
			return found, err
		}
		found = found.Or(right)
	case c.Op == Not:
		if found, err = l.all(c.Left, within); err != nil {
			return found, err
		}
		found = within.AndNot(found)
	default:
		if found, err = l.leaf(c, within, &s); err != nil {
			return found, err
		}
	}
	l.depth--
	s.Found = found.Len()
	l.step(s)
	return found, nil
}

func (l *lookup) leaf(c *Cond, within postings.Set, s *Step) (found postings.Set, err error) {
	m := &match.Matcher{}
	if c.Op != Exists {
		if m, err = matcherOf(c); err != nil {
			return found, fmt.Errorf("%s: %w", c, err)
		}
	}
	if tag, ok := impliedTag(c.Tag); ok {
		var buf [8]byte
		return l.filter(within, s, func(row []byte) bool {
			_, _, key, _ := keyOf(row)
			value, ok := tag.valueOf(buf[:], key)
			return ok && (c.Op == Exists || m.Match(value))
		})
	}
	name, ok := l.name(c.Tag)
	switch {
	case !ok:
		return postings.Of(), nil
	case c.Op == Exists:
		list := l.x.withName.Set(name)
		s.Lists, s.Postings = 1, list.Len()
		return within.And(list), nil
	case m.Exact != nil:
		return l.exact(m.Exact, name, within, s), nil
	case within.Len() < l.x.ofName.Len(name):
		return l.filter(within, s, func(row []byte) bool {
			_, _, _, rest := keyOf(row)
			t, _, _ := openTags(rest)
			pair, ok := t.pair(name)
			return ok && m.Match(l.x.value(pair))
		})
	}
	var u postings.Union
	for pair := range l.x.ofName.Set(name).All() {
		if m.Match(l.x.value(pair)) {
			s.Lists++
			s.Postings += l.x.withPair.Len(pair)
			l.x.withPair.Collect(&u, pair)
		}
		if err := l.cancelError(); err != nil {
			return found, err
		}
	}
	return within.And(u.Set()), nil
}

// exact returns the rows that have one of some values.
func (l *lookup) exact(values [][]byte, name uint32, within postings.Set, s *Step) postings.Set {
	found := postings.Of()
	for _, v := range values {
		if pair, ok := l.pair(name, v); ok {
			list := l.x.withPair.Set(pair)
			s.Lists++
			s.Postings += list.Len()
			found = found.Or(within.And(list))
		}
	}
	return found
}

// filter returns the rows for which keep returns true.
func (l *lookup) filter(within postings.Set, s *Step, keep func(row []byte) bool) (
	found postings.Set, err error) {
	var u postings.Union
	for id := range within.All() {
		s.Checked++
		if keep(l.x.rows.Get(l.x.at[id])) {
			u.Add(id)
		}
		if err := l.cancelError(); err != nil {
			return found, err
		}
	}
	return u.Set(), nil
}
