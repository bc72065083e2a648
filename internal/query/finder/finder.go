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

// Index is a source.Index over tags. Where a bucket has the name of a collection, the collection
// also has those series of the bucket that tags do not put there: each is known by its key, and has the
// tags of its key only.
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

	// May sets may[i] to whether series i of a bucket may have a point in the slots [from, past).
	// It is cheap, and false only where there is certainly none.
	May(ctx context.Context, b source.Bucket, keys [][]byte, from, past int64, may []bool) error
}

// Grace is how long before its first and behind its last point a series is found.
const Grace = time.Hour

// Lookup implements source.Index.
func (x *Index) Lookup(ctx context.Context, l source.Lookup, fn func(source.Hit) bool) error {
	q := tags.Query{Collection: []byte(l.Collection), Metric: l.Metric, Where: CondOf(l.Where)}
	f := &find{Index: x, ctx: ctx, l: l, fn: fn}
	known := x.Tags.Known(q.Collection)
	if !known || !q.Where.Stored() {
		if err := f.untagged(q.Where, known); err != nil {
			return err
		}
	}
	if known && !f.ended {
		if err := f.tagged(&q); err != nil {
			return err
		}
	}
	if f.found {
		return nil
	}
	return f.miss(&q)
}

// tagged finds the series of the collection in the index.
func (f *find) tagged(q *tags.Query) error {
	for _, d := range f.l.Tags {
		q.Want = append(q.Want, nameOf(d))
	}
	handles := make(map[uint64]source.Bucket)
	var failed error
	steps, err := f.Tags.Lookup(f.ctx, q, func(h *tags.Hit) (more bool) {
		b, ok := handles[h.Bucket]
		if !ok {
			b, failed = f.Buckets.Tagged(h.Bucket)
			if errors.Is(failed, source.ErrUnknownBucket) { // it was deleted just now
				b, failed = nil, nil
			}
			handles[h.Bucket] = b
		}
		if b == nil {
			return failed == nil
		}
		if f.bare[string(h.Key)] && b.Info().Name == f.l.Collection {
			return true
		}
		more, failed = f.hit(b, h.Key, h.Values)
		return more && failed == nil
	})
	if err == nil && failed == nil {
		_, failed = f.flush()
	}
	for _, s := range steps {
		f.step(source.Step(s))
	}
	return errors.Join(err, failed)
}

// find is a lookup under way.
type find struct {
	*Index
	ctx context.Context
	l   source.Lookup
	fn  func(source.Hit) bool

	// Series of a bucket that were found, and not looked at yet.
	bucket source.Bucket
	keys   [][]byte
	text   []byte // keys and values
	ends   []int  // in text, of each key and behind it of each value; -1 for one that there is not
	may    [together]bool
	ended  bool // fn has returned false

	found bool // a series with points in the range

	// Series that were found without tags, and may get some before the index is asked.
	bare map[string]bool
}

// together is how many series are looked at together.
const together = 256

func (f *find) step(s source.Step) {
	if f.l.Step != nil {
		f.l.Step(s)
	}
}

// hit takes a series that was found.
func (f *find) hit(b source.Bucket, key []byte, values [][]byte) (more bool, err error) {
	if f.bucket != b || len(f.ends) == together*(1+len(f.l.Tags)) {
		if more, err := f.flush(); !more || err != nil {
			return more, err
		}
		f.bucket = b
	}
	f.text = append(f.text, key...)
	f.ends = append(f.ends, len(f.text))
	for _, v := range values {
		end := -1
		if v != nil {
			f.text = append(f.text, v...)
			end = len(f.text)
		}
		f.ends = append(f.ends, end)
	}
	return true, nil
}

// flush calls fn for the series that were found and have a point in the range.
func (f *find) flush() (more bool, err error) {
	if len(f.ends) == 0 || f.ended {
		return !f.ended, nil
	}
	res, grace := f.bucket.Info().Resolution, Grace.Milliseconds()
	from, past := max(0, f.l.Start-grace)/res, (max(0, f.l.End+grace)+res-1)/res
	// The hits keep the memory of all: it is not used again.
	text, ends, tags, at := string(f.text), f.ends, make([]source.Tag, 0, len(f.ends)), 0
	hits := make([]source.Hit, 0, together)
	f.keys = f.keys[:0]
	for len(ends) > 0 {
		key := f.text[at:ends[0]:ends[0]]
		at, f.keys = ends[0], append(f.keys, key)
		first := len(tags)
		for i, d := range f.l.Tags {
			if end := ends[1+i]; end >= 0 {
				tags = append(tags, source.Tag{DimVar: d, Value: text[at:end]})
				at = end
			}
		}
		hits = append(hits, source.Hit{Bucket: f.bucket, Key: key, Tags: tags[first:len(tags):len(tags)]})
		ends = ends[1+len(f.l.Tags):]
	}
	may := f.may[:len(hits)]
	if err := f.Buckets.May(f.ctx, f.bucket, f.keys, from, past, may); err != nil {
		return false, err
	}
	f.text, f.ends = make([]byte, 0, cap(f.text)), f.ends[:0]
	for i := range hits {
		if !may[i] {
			continue
		}
		if f.found = true; !f.fn(hits[i]) {
			f.ended = true
			return false, nil
		}
	}
	return true, nil
}

// untagged finds the series of the bucket that is named as the collection, if there is one. With
// known, those are left out that the index has in the collection.
func (f *find) untagged(where *tags.Cond, known bool) error {
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
	member := func([]byte) bool { return false }
	if known {
		f.bare = make(map[string]bool)
		member = tags.Members(f.Tags, []byte(f.l.Collection), b.Info().ID)
	}
	s := source.Step{What: "all series of the bucket"}
	var failed error
	look := func(key []byte) bool {
		if s.Checked++; !holds(key) || member(key) {
			return true
		}
		if s.Found++; known {
			f.bare[string(key)] = true
		}
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
	if err == nil && failed == nil {
		_, failed = f.flush()
	}
	f.step(s)
	return errors.Join(err, failed)
}

func nameOf(d dql.DimVar) tags.TagName {
	return tags.TagName{Namespace: []byte(d.Namespace), Name: []byte(d.Name)}
}

// CondOf returns a condition in the words of package tags, nil for nil.
func CondOf(c *dql.Cond) *tags.Cond {
	if c == nil {
		return nil
	}
	to := &tags.Cond{Tag: nameOf(c.Tag)}
	switch c.Op {
	case dql.CondAnd:
		return &tags.Cond{Op: tags.And, Left: CondOf(c.Left), Right: CondOf(c.Right)}
	case dql.CondOr:
		return &tags.Cond{Op: tags.Or, Left: CondOf(c.Left), Right: CondOf(c.Right)}
	case dql.CondNot:
		return &tags.Cond{Op: tags.Not, Left: CondOf(c.Left)}
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
