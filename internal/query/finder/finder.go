// Package finder finds series for queries in the index of package tags.
package finder

import (
	"context"
	"errors"
	"time"

	"dalmatiner/internal/dql"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/tags"
)

// Index is a source.Index over tags. A collection of which there are no tags, but a bucket of its
// name, has the series of the bucket: each is known by its key, and has the tags of its key only.
type Index struct {
	Tags    *tags.Index
	Buckets Buckets
}

// Buckets is what an Index asks of the store. Handles are for one query.
type Buckets interface {
	// Tagged returns a handle of the bucket with an id, or an error that wraps
	// source.ErrUnknownBucket.
	Tagged(id uint64) (source.Bucket, error)

	// Bucket returns a handle of the bucket with a name, or such an error.
	Bucket(name string) (source.Bucket, error)

	// May reports whether a series of a bucket may have a point in the slots [from, past). It
	// is cheap, and false only where there is certainly none.
	May(ctx context.Context, b source.Bucket, key []byte, from, past int64) (bool, error)
}

// Grace is how long before its first and behind its last point a series is found.
const Grace = time.Hour

// Lookup implements source.Index.
func (x *Index) Lookup(ctx context.Context, l source.Lookup, fn func(source.Hit) bool) error {
	q := tags.Query{Collection: []byte(l.Collection), Metric: l.Metric, Where: condOf(l.Where)}
	f := &find{Index: x, ctx: ctx, l: l, fn: fn}
	if !x.Tags.Known(q.Collection) {
		err := f.untagged(q.Where)
		if err == nil && !f.found {
			err = f.miss(&q)
		}
		return err
	}
	for _, d := range l.Tags {
		q.Want = append(q.Want, nameOf(d))
	}
	handles := make(map[uint64]source.Bucket)
	var failed error
	steps, err := x.Tags.Lookup(ctx, &q, func(h *tags.Hit) (more bool) {
		b, ok := handles[h.Bucket]
		if !ok {
			b, failed = x.Buckets.Tagged(h.Bucket)
			if errors.Is(failed, source.ErrUnknownBucket) { // it was deleted just now
				b, failed = nil, nil
			}
			handles[h.Bucket] = b
		}
		if b == nil {
			return failed == nil
		}
		more, failed = f.hit(b, h.Key, h.Values)
		return more && failed == nil
	})
	for _, s := range steps {
		f.step(source.Step(s))
	}
	if err = errors.Join(err, failed); err == nil && !f.found {
		err = f.miss(&q)
	}
	return err
}

// find is a lookup under way.
type find struct {
	*Index
	ctx context.Context
	l   source.Lookup
	fn  func(source.Hit) bool

	found bool // a series
}

func (f *find) step(s source.Step) {
	if f.l.Step != nil {
		f.l.Step(s)
	}
}

// hit calls fn for a series, unless it has no point in the range.
func (f *find) hit(b source.Bucket, key []byte, values [][]byte) (more bool, err error) {
	res, grace := b.Info().Resolution, Grace.Milliseconds()
	from, past := max(0, f.l.Start-grace)/res, (max(0, f.l.End+grace)+res-1)/res
	if may, err := f.Buckets.May(f.ctx, b, key, from, past); !may || err != nil {
		return true, err
	}
	f.found = true
	h := source.Hit{Bucket: b, Key: append([]byte(nil), key...)}
	for i, v := range values {
		if v != nil {
			h.Tags = append(h.Tags, source.Tag{DimVar: f.l.Tags[i], Value: string(v)})
		}
	}
	return f.fn(h), nil
}

// untagged finds the series of the bucket that is named as the collection, if there is one.
func (f *find) untagged(where *tags.Cond) error {
	b, err := f.Buckets.Bucket(f.l.Collection)
	if errors.Is(err, source.ErrUnknownBucket) {
		return nil
	}
	if err != nil {
		return err
	}
	holds, err := where.Untagged()
	if err != nil {
		return err
	}
	s := source.Step{What: "all series of the bucket"}
	var failed error
	look := func(key []byte) bool {
		if s.Checked++; !holds(key) {
			return true
		}
		s.Found++
		values := make([][]byte, len(f.l.Tags))
		for i, d := range f.l.Tags {
			values[i] = tags.ImpliedValue(nameOf(d), key)
		}
		var more bool
		more, failed = f.hit(b, key, values)
		return more && failed == nil
	}
	if f.l.Metric == nil {
		err = b.Metrics(f.ctx, nil, look)
	} else {
		s.What = "the metric in the bucket"
		var there bool
		if there, err = b.Series(f.l.Metric).Exists(f.ctx); there {
			look(f.l.Metric)
		}
	}
	f.step(s)
	return errors.Join(err, failed)
}

func nameOf(d dql.DimVar) tags.TagName {
	return tags.TagName{Namespace: []byte(d.Namespace), Name: []byte(d.Name)}
}

// condOf returns a condition in the words of package tags.
func condOf(c *dql.Cond) *tags.Cond {
	if c == nil {
		return nil
	}
	to := &tags.Cond{Tag: nameOf(c.Tag)}
	switch c.Op {
	case dql.CondAnd:
		return &tags.Cond{Op: tags.And, Left: condOf(c.Left), Right: condOf(c.Right)}
	case dql.CondOr:
		return &tags.Cond{Op: tags.Or, Left: condOf(c.Left), Right: condOf(c.Right)}
	case dql.CondNot:
		return &tags.Cond{Op: tags.Not, Left: condOf(c.Left)}
	case dql.CondEqual, dql.CondNotEqual:
		to.Op, to.Value = tags.Equal, []byte(c.Value)
	case dql.CondMatch, dql.CondNotMatch:
		to.Op, to.Pattern = tags.Regexp, c.Value
	case dql.CondLike, dql.CondNotLike:
		to.Op = tags.Glob
		for _, p := range c.Pieces {
			to.Pieces = append(to.Pieces, []byte(p))
		}
	}
	switch c.Op {
	case dql.CondNotEqual, dql.CondNotMatch, dql.CondNotLike:
		return &tags.Cond{Op: tags.Not, Left: to}
	}
	return to
}
