package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/source"
)

// valueOf returns the value of a dimension; ok is false where there is none.
func valueOf(tags []tag, d dql.DimVar) (value string, ok bool) {
	for _, t := range tags {
		if t.DimVar == d {
			return t.Value, true
		}
	}
	return "", false
}

// lookup plans the series that a lookup finds, in the order of bucket and key,
// or with GROUP BY one series for each combination of values, in their order.
// Dimensions that the field is named by have to be there.
func (p *planner) lookup(l *dql.Lookup, shift int64) (value, error) {
	v := value{typ: function.TypeMetric}
	var using *function.Entry
	if l.Group != nil {
		var ok bool
		if using, ok = function.Find(l.Using, []function.Type{function.TypeMetrics}); !ok {
			return v, p.unrecognised(l.UsingPos, l.Using, []function.Type{function.TypeMetrics}, nil)
		}
	}
	index := p.offers.Index
	if index == nil {
		return v, p.unsupported(l.Pos(), "lookup by dimensions (FROM)")
	}
	p.out.Indexed = true
	hits, err := p.hitsOf(index, l, shift)
	if err != nil {
		return v, err
	}
	p.found = p.found || len(hits) > 0
	p.expect(2 * len(hits)) // as most are read for a function of each
	v.series = make([]Series, 0, len(hits))
	var b bucket
	for _, h := range hits {
		if b.handle != h.Bucket { // they come bucket by bucket
			b = bucket{h.Bucket, h.Bucket.Info()}
		}
		n, err := p.leaf(l.Pos(), b, h.Key, nil, shift)
		if err != nil {
			return v, err
		}
		v.series = append(v.series, Series{
			Of:     n,
			Key:    h.Key,
			tags:   h.Tags,
			dims:   h.Tags,
			Bucket: b.Name,
			id:     b.ID,
		})
	}
	if l.Group == nil {
		return v, nil
	}
	return p.grouped(l, using, v)
}

func (p *planner) hitsOf(index source.Index, l *dql.Lookup, shift int64) ([]source.Hit, error) {
	want := source.Lookup{
		Collection: l.Collection, Metric: l.Metric.Key, Where: l.Where,
		Start: p.out.Start - shift, End: p.out.End - shift,
		Tags: append(p.wanted[:len(p.wanted):len(p.wanted)], l.Group...),
	}
	for _, d := range p.named {
		exists := &dql.Cond{Pos: l.Pos(), Op: dql.CondExists, Tag: d}
		if want.Where != nil {
			exists = &dql.Cond{Pos: l.Pos(), Op: dql.CondAnd, Left: want.Where, Right: exists}
		}
		want.Where = exists
	}
	did := Lookup{Shift: shift}
	if p.opt.Explain {
		did.What = dql.Name(&dql.Lookup{
			All:        l.All,
			Metric:     l.Metric,
			Collection: l.Collection,
			Where:      want.Where,
		}, maxName)
		want.Step = func(s source.Step) { did.Steps = append(did.Steps, s) }
	}
	if p.opt.Memory != nil {
		want.Memory = p
	}
	if !p.opt.Compat {
		want.Miss = func(reason string, near []string) {
			p.misses(l, func() (string, []string) { return reason, near })
		}
	}
	var hits []source.Hit
	var refused error
	err := index.Lookup(p.ctx, want, func(h source.Hit) bool {
		hits = append(hits, h)
		size := seriesSize + int64(len(h.Key))
		for _, t := range h.Tags {
			size += tagSize + int64(len(t.Value))
		}
		refused = p.Grow(size)
		return refused == nil && int64(len(hits)) <= p.opt.Limits.MaxSeries
	})
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("look up in collection %s: %w", metric.Quote(l.Collection), err)
	}
	if n := int64(len(hits)); n > p.opt.Limits.MaxSeries {
		return nil, p.tooManySeries(l.Pos(), n)
	}
	if p.opt.Explain {
		did.Hits = len(hits)
		p.out.Lookups = append(p.out.Lookups, did)
	}
	slices.SortFunc(hits, func(a, b source.Hit) int {
		if a.Bucket != b.Bucket {
			if by := strings.Compare(a.Bucket.Info().Name, b.Bucket.Info().Name); by != 0 {
				return by
			}
		}
		return bytes.Compare(a.Key, b.Key)
	})
	return hits, nil
}

// grouped combines the series that have equal values of the dimensions. A
// dimension that a series lacks is a value of its own, before all others.
func (p *planner) grouped(l *dql.Lookup, using *function.Entry, all value) (value, error) {
	type group struct {
		values []string
		dims   []tag
		of     []Series
	}
	var groups []*group
	known := make(map[string]*group)
	for _, s := range all.series {
		values, dims := make([]string, len(l.Group)), make([]tag, len(l.Group))
		for i, d := range l.Group {
			if text, ok := valueOf(s.tags, d); ok {
				values[i], dims[i] = "="+text, tag{DimVar: d, Value: text}
			}
		}
		key := fmt.Sprintf("%q", values)
		g := known[key]
		if g == nil {
			g = &group{values: values, dims: dims}
			known[key] = g
			groups = append(groups, g)
		}
		g.of = append(g.of, s)
	}
	slices.SortFunc(groups, func(a, b *group) int { return slices.Compare(a.values, b.values) })
	v := value{typ: function.TypeMetric}
	for _, g := range groups {
		one, err := p.combine(l.UsingPos, using.Op, g.of)
		if err != nil {
			return v, err
		}
		one.series[0].dims, one.series[0].grouped = g.dims, true
		v.series = append(v.series, one.series...)
	}
	return v, nil
}

// inMetadata returns the dimensions in the metadata of a field.
func inMetadata(meta []dql.MetaPair) []dql.DimVar {
	var list []dql.DimVar
	for _, pair := range meta {
		if pair.Number == nil && pair.Elem.Dim != nil {
			list = append(list, *pair.Elem.Dim)
		}
	}
	return list
}

// dimensions returns those that a field is named by.
func dimensions(as *dql.Pattern) []dql.DimVar {
	var list []dql.DimVar
	if as != nil {
		for _, e := range as.Elems {
			if e.Dim != nil {
				list = append(list, *e.Dim)
			}
		}
	}
	return list
}
