package finder

import (
	"math"

	"dalmatiner/internal/host/suggest"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// textsLookedAt bounds the texts of the index that one of a lookup is compared with.
const textsLookedAt = 50_000

// maxNear is how many tags are suggested.
const maxNear = 3

// miss says why a lookup found nothing, and what may be meant. It asks the index again, for parts
// of the lookup. The only error is that of the context.
func (f *find) miss(q *tags.Query) error {
	if f.l.Miss == nil {
		return nil
	}
	m := missing{find: f, q: q}
	reason, near := m.why()
	if err := f.ctx.Err(); err != nil {
		return err
	}
	f.l.Miss(reason+suggest.Hint(near), near)
	return nil
}

// missing is a lookup that found nothing.
type missing struct {
	*find
	q *tags.Query
}

func (m *missing) why() (reason string, near []string) {
	collection := "collection " + metric.Quote(m.l.Collection)
	if !m.Tags.HasCollection(m.q.Collection) {
		if _, err := m.Buckets.Bucket(m.l.Collection); err == nil {
			return "bucket " + metric.Quote(m.l.Collection) +
				" has no such series; its series have no tags but those of their keys", nil
		}
		list, _ := m.Tags.Collections(m.ctx, *m.listing())
		return "there is no " + collection, m.near(m.l.Collection, list)
	}
	if m.q.Metric != nil && !m.finds(nil) {
		return m.noMetric(collection)
	}
	if m.q.Metric != nil {
		collection = "metric " + metric.Text(m.q.Metric) + " of " + collection
	}
	for _, c := range needed(m.q.Where, nil) {
		if m.finds(c) {
			continue
		}
		return m.lacking(collection, c)
	}
	if !m.finds(m.q.Where) {
		return "no series of " + collection + " meets all conditions, though some meet each of them", nil
	}
	return "all such series of " + collection +
		" have their points more than an hour before or behind the range", nil
}

// noMetric says that the collection does not have the metric, or not with tags.
func (m *missing) noMetric(collection string) (reason string, near []string) {
	text := metric.Text(m.q.Metric)
	if b, err := m.Buckets.Bucket(m.l.Collection); err == nil {
		there, err := b.Series(m.q.Metric).Exists(m.ctx)
		switch {
		case err != nil || !there:
		case tags.Members(m.Tags, m.q.Collection, b.Info().ID)(m.q.Metric):
			return collection + " knows " + text + " by another name", nil
		default:
			return "metric " + text + " of " + collection + " has no tags but those of its key", nil
		}
	}
	return collection + " has no metric " + text, m.nearMetrics()
}

// lacking says that no series meets a condition.
func (m *missing) lacking(collection string, c *tags.Cond) (reason string, near []string) {
	has := &tags.Cond{Op: tags.Exists, Tag: c.Tag}
	switch {
	case c.Op <= tags.Regexp && !m.finds(has):
		reason, near = "no series of "+collection+" has a tag "+c.Tag.String(), m.nearTags(c.Tag)
	case c.Op == tags.Equal:
		list, _ := m.Tags.Values(m.ctx, m.listing(), c.Tag)
		reason, near = "no series of "+collection+" has "+c.String(), m.near(string(c.Value), list)
	default:
		reason = "no series of " + collection + " meets " + c.String()
		if c.Op == tags.Regexp {
			reason += ", which has to match the whole value"
		}
	}
	return reason, near
}

// needed are the conditions of which each has to be met.
func needed(c *tags.Cond, list []*tags.Cond) []*tags.Cond {
	switch {
	case c == nil:
		return list
	case c.Op == tags.And:
		return needed(c.Right, needed(c.Left, list))
	}
	return append(list, c)
}

// finds reports whether a series of the collection and metric meets a condition, at any time.
func (m *missing) finds(c *tags.Cond) (found bool) {
	q := tags.Query{Collection: m.q.Collection, Metric: m.q.Metric, Where: c}
	_, err := m.Tags.Lookup(m.ctx, &q, func(*tags.Hit) bool {
		found = true
		return false
	})
	return found || err != nil
}

func (m *missing) listing() *tags.Listing {
	return &tags.Listing{
		Collection: m.q.Collection,
		Metric:     m.q.Metric,
		Limit:      textsLookedAt,
		Now:        math.MaxUint64,
	}
}

func (m *missing) near(word string, list tags.List) []string {
	near := suggest.NewCollector(word)
	for _, e := range list.Elements {
		near.Add(e.Text)
	}
	found := near.Names()
	for i, text := range found {
		found[i] = metric.Quote(text)
	}
	return found
}

// nearMetrics returns the metrics of the collection that are near to the one that is not there.
func (m *missing) nearMetrics() []string {
	q := m.listing()
	q.Metric = nil
	list, _ := m.Tags.Metrics(m.ctx, q, 0)
	near := suggest.NewCollector(metric.Text(m.q.Metric))
	for _, e := range list.Elements {
		near.Add(metric.Text([]byte(e.Text)))
	}
	return near.Names()
}

// nearTags returns the tags of the series whose names are near to that of a tag, in any namespace.
func (m *missing) nearTags(tag tags.TagName) []string {
	near := suggest.NewCollector(string(tag.Name))
	named := make(map[string][]tags.TagName)
	for _, n := range m.Tags.TagNames() {
		near.Add(string(n.Name))
		named[string(n.Name)] = append(named[string(n.Name)], n)
	}
	var found []string
	for _, name := range near.Names() {
		for _, n := range named[name] {
			if len(found) < maxNear && m.finds(&tags.Cond{Op: tags.Exists, Tag: n}) {
				found = append(found, n.String())
			}
		}
	}
	return found
}
