package plan

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"dalmatiner/internal/host/suggest"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
)

// Missing is a selector or a lookup of a query that finds nothing.
type Missing struct {
	Selector string `json:"selector"` // its canonical text
	Pos      int    `json:"offset"`   // in the query, in bytes
	Reason   string `json:"message"`  // the part without a hit, and what may be meant

	// Near are metrics, collections, tags or values that exist, as text of the language,
	// nearest first; never nil.
	Near []string `json:"near"`
}

const (
	// namesLookedAt bounds the names that a query is compared with in all for
	// suggestions: some milliseconds.
	namesLookedAt = 50_000
	// nearPerSelector is how many of them are suggested.
	nearPerSelector = 3
	// maxMissing is the most selectors of one query that get a reason.
	maxMissing = 20
)

// hit notes whether a selector finds something. With compat a metric that does
// not exist is 0, as in the original.
func (p *planner) hit(s *dql.Select, b bucket, found bool) {
	if found || p.opt.Compat {
		p.found = true
		return
	}
	p.misses(s, func() (string, []string) { return p.explainMiss(s, b) })
}

// misses notes a selector or lookup that finds nothing, each text once. why gives the reason.
func (p *planner) misses(e dql.Expr, why func() (reason string, near []string)) {
	name := dql.Name(e, math.MaxInt)
	if slices.ContainsFunc(p.out.Missing, func(m Missing) bool {
		return m.Selector == name
	}) || len(p.out.Missing) == maxMissing {
		return
	}
	m := Missing{Selector: name, Pos: e.Pos()}
	var near []string
	m.Reason, near = why()
	m.Near = append([]string{}, near...)
	p.out.Missing = append(p.out.Missing, m)
}

// nothingFound is the error of a query of which no selector finds anything.
func (p *planner) nothingFound() error {
	if p.found || len(p.out.Missing) == 0 {
		return nil
	}
	m := p.out.Missing[0]
	return p.errorAt(m.Pos, ErrNoResults, "%s", m.Reason)
}

// explainMiss says which part of a selector finds nothing, and what may be meant.
func (p *planner) explainMiss(s *dql.Select, b bucket) (string, []string) {
	what := "there is no metric " + selected(s) + " in bucket " + metric.Quote(b.Name)
	m := miss{want: wanted(s.Metric), depth: -1}
	err := b.handle.Metrics(p.ctx, nil, func(key []byte) bool {
		m.look(key)
		p.looked++
		return p.looked < namesLookedAt
	})
	if err != nil { // the reason is one more courtesy
		return what, nil
	}
	reason, near := m.reason()
	return what + reason + suggest.Hint(near) + p.elsewhere(s, b), near
}

// elsewhere names another bucket that has the metric.
func (p *planner) elsewhere(s *dql.Select, not bucket) string {
	names := p.source.BucketNames()
	for _, name := range names[:min(len(names), maxMissing)] {
		b, err := p.source.Bucket(name)
		if err != nil || name == not.Name || s.Metric.Parts != nil {
			continue
		}
		if found, err := b.Series(s.Metric.Key).Exists(p.ctx); found && err == nil {
			return "; bucket " + metric.Quote(name) + " has it"
		}
	}
	return ""
}

// wanted returns the parts that a metric is asked for by, nil of a key that is
// no list of parts.
func wanted(m dql.Metric) []dql.Part {
	if m.Parts != nil {
		return m.Parts
	}
	parts, _ := metric.Parts(m.Key)
	list := make([]dql.Part, len(parts))
	for i, part := range parts {
		list[i].Text = string(part)
	}
	return list
}

// selected returns the metric of a selector as text, without its bucket.
func selected(s *dql.Select) string {
	if s.Metric.Parts == nil {
		return metric.Text(s.Metric.Key)
	}
	return partsText(s.Metric.Parts)
}

func partsText(parts []dql.Part) string {
	list := make([]string, len(parts))
	for i, part := range parts {
		if list[i] = metric.Quote(part.Text); part.Any {
			list[i] = "*"
		}
	}
	return strings.Join(list, ".")
}

// miss compares the names of a bucket with what was asked for.
type miss struct {
	want  []dql.Part
	depth int      // most parts, from the first on, that a name has as wanted
	there []string // of names with as many: those that come next, the first in their order
	names []string // of names with as many, the first in their order
	near  []nearName
}

type nearName struct {
	text     string
	distance int
}

// look compares a name.
func (m *miss) look(key []byte) {
	parts, ok := metric.Parts(key)
	if !ok {
		return
	}
	depth := 0
	for depth < min(len(parts), len(m.want)) &&
		(m.want[depth].Any || m.want[depth].Text == string(parts[depth])) {
		depth++
	}
	if depth > m.depth {
		m.depth, m.there, m.names = depth, nil, nil
	}
	if depth == m.depth {
		m.names = keepFirst(m.names, func() string { return metric.Text(key) })
		if depth < len(parts) {
			m.there = keepFirst(m.there, func() string { return metric.Quote(string(parts[depth])) })
		}
	}
	if d, ok := m.distance(parts); ok {
		m.near = append(m.near, nearName{metric.Text(key), d})
		slices.SortFunc(m.near, func(a, b nearName) int {
			return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.text, b.text))
		})
		m.near = m.near[:min(len(m.near), nearPerSelector)]
	}
}

// keepFirst adds a text to a short list of the first ones, each once.
func keepFirst(list []string, text func() string) []string {
	t := text()
	i, known := slices.BinarySearch(list, t)
	if known || i > nearPerSelector { // one more says that there are more
		return list
	}
	list = slices.Insert(list, i, t)
	return list[:min(len(list), nearPerSelector+1)]
}

// distance returns how far the parts of a name are from those wanted. A wanted
// part with dots in it may be meant for several.
func (m *miss) distance(parts [][]byte) (int, bool) {
	if len(m.want) == 1 && len(parts) > 1 {
		return suggest.Distance(m.want[0].Text, string(bytes.Join(parts, []byte("."))))
	}
	if len(parts) != len(m.want) {
		return 0, false
	}
	sum := 0
	for i, w := range m.want {
		if w.Any {
			continue
		}
		d, ok := suggest.Distance(w.Text, string(parts[i]))
		if !ok {
			return 0, false
		}
		sum += d
	}
	return sum, true
}

// reason says which part finds nothing, and returns the names that may be meant.
func (m *miss) reason() (string, []string) {
	var near []string
	for _, n := range m.near {
		if n.distance == 0 || m.near[0].distance > 0 {
			near = append(near, n.text)
		}
	}
	star := ""
	for _, w := range m.want {
		if !w.Any && strings.Contains(w.Text, "*") {
			star = " (a * in quotes is a letter like any other: without them it stands for a whole part)"
		}
	}
	switch {
	case m.depth < 0:
		return ", which is empty", nil
	case m.depth == len(m.want):
		return ", but there are longer ones that begin so", m.names[:min(len(m.names), nearPerSelector)]
	}
	if near == nil && len(m.there) == 0 { // what it begins with is a whole name
		near = m.names[:1]
	}
	text := ": none begins with " + partsText(m.want[:m.depth+1])
	if len(m.there) > 0 {
		there := strings.Join(m.there[:min(len(m.there), nearPerSelector)], ", ")
		if len(m.there) > nearPerSelector {
			there += ", …"
		}
		if m.depth == 0 {
			text += " (but with " + there + ")"
		} else {
			text += " (behind " + partsText(m.want[:m.depth]) + " there is " + there + ")"
		}
	}
	return text + star, near
}
