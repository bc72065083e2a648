// Package finder finds series for queries in the index of package tags.
package finder

import (
	"context"
	"errors"
	"strings"
	"time"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/tags"
)

// Index is a source.Index over tags. Where a bucket has the name of a collection, the collection
// also has those series of the bucket that tags do not put there: each is known by its key, and has
// the tags of its key only.
type Index struct {
	Tags    *tags.Index
	Buckets Buckets
}

// Buckets is what an Index asks of the store. Handles are for one query.
type Buckets interface {
	// Tagged returns a handle of the bucket with an id, or an error that wraps
	// buckets.ErrUnknown.
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
	known := x.Tags.HasCollection(q.Collection)
	if !known || !q.Where.NeedsStored() {
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
	var last source.Bucket // of id
	var id uint64
	var mixed bool // last is the bucket that is named as the collection
	var failed error
	steps, err := f.Tags.Lookup(f.ctx, q, func(h *tags.Hit) (more bool) {
		if last == nil || id != h.Bucket {
			if last, failed = f.handle(handles, h.Bucket); last == nil {
				return failed == nil
			}
			id, mixed = h.Bucket, last.Info().Name == f.l.Collection
		}
		if mixed {
			if _, bare := f.bare[metric.Series(id, h.Key)]; bare {
				return true
			}
		}
		more, failed = f.hit(last, h.Key, h.Values)
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

// handle returns the handle of a bucket that is in handles or comes into them, nil for one that
// was deleted just now.
func (f *find) handle(handles map[uint64]source.Bucket, id uint64) (source.Bucket, error) {
	b, ok := handles[id]
	if ok {
		return b, nil
	}
	b, err := f.Buckets.Tagged(id)
	if errors.Is(err, buckets.ErrUnknown) {
		b, err = nil, nil
	}
	handles[id] = b
	return b, err
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
	text   []byte // keys
	ends   []int  // of each key in text
	values []byte
	past   []int // of each value of each series in values; -1 for one that there is not
	may    [together]bool
	ended  bool  // fn has returned false
	lent   int64 // for these series

	found bool // a series with points in the range

	// Series that were found without tags, and may get some before the index is asked.
	bare map[metric.SeriesID]struct{}
}

// Series are looked at together: so many, or as many as have that many bytes of keys and values.
const (
	together      = 1024
	togetherBytes = 64 << 10
)

// bareSize is what a series takes in find.bare.
const bareSize = 48

func (f *find) step(s source.Step) {
	if f.l.Step != nil {
		f.l.Step(s)
	}
}

// hit takes a series that was found.
func (f *find) hit(b source.Bucket, key []byte, values [][]byte) (more bool, err error) {
	if f.bucket != b || len(f.ends) == together || len(f.text)+len(f.values) >= togetherBytes {
		if more, err := f.flush(); !more || err != nil {
			return more, err
		}
		f.bucket = b
	}
	size := len(key)
	for _, v := range values {
		size += len(v)
	}
	if err := f.lend(size); err != nil {
		return false, err
	}
	f.text = append(f.text, key...)
	f.ends = append(f.ends, len(f.text))
	for _, v := range values {
		past := -1
		if v != nil {
			f.values = append(f.values, v...)
			past = len(f.values)
		}
		f.past = append(f.past, past)
	}
	return true, nil
}

// lend takes the memory of one more series: its bytes are here and where they come from.
func (f *find) lend(bytes int) error {
	more := 2*int64(len(f.text)+len(f.values)+bytes) - f.lent
	if more <= 0 {
		return nil
	}
	f.lent += more
	return f.grow(more)
}

func (f *find) grow(bytes int64) error {
	if f.l.Memory == nil {
		return nil
	}
	return f.l.Memory.Grow(bytes)
}

// flush calls fn for the series that were found and have a point in the range.
func (f *find) flush() (more bool, err error) {
	if len(f.ends) == 0 || f.ended {
		return !f.ended, nil
	}
	res, grace := f.bucket.Info().Resolution, Grace.Milliseconds()
	from, past := max(0, f.l.Start-grace)/res, (max(0, f.l.End+grace)+res-1)/res
	f.keys = f.keys[:0]
	at := 0
	for _, end := range f.ends {
		f.keys = append(f.keys, f.text[at:end:end])
		at = end
	}
	may := f.may[:len(f.keys)]
	if err := f.Buckets.May(f.ctx, f.bucket, f.keys, from, past, may); err != nil {
		return false, err
	}
	more = f.call(may)
	f.text, f.ends = f.text[:0], f.ends[:0]
	return more, nil
}

// call calls fn for series that may have a point.
func (f *find) call(may []bool) (more bool) {
	keys, values := f.kept(may)
	pasts, at := f.past, 0
	f.values, f.past = f.values[:0], f.past[:0]
	tags := make([]source.Tag, 0, len(pasts))
	for i, of := range f.keys {
		first, begin := len(tags), at
		for j, d := range f.l.Tags {
			if past := pasts[j]; past >= 0 {
				if may[i] {
					tags = append(tags, source.Tag{DimVar: d, Value: values[at-begin : past-begin]})
				}
				at = past
			}
		}
		if pasts = pasts[len(f.l.Tags):]; !may[i] {
			continue
		}
		values = values[at-begin:]
		key := keys[:len(of):len(of)]
		keys = keys[len(of):]
		f.found = true
		if !f.fn(source.Hit{Bucket: f.bucket, Key: key, Tags: tags[first:len(tags):len(tags)]}) {
			f.ended = true
			return false
		}
	}
	return true
}

// kept returns the keys and values of series that may have a point, one after the other, in memory
// that is theirs alone: the hits keep it.
func (f *find) kept(may []bool) (keys []byte, values string) {
	size, at, pasts := 0, 0, f.past
	var text strings.Builder
	for i, key := range f.keys {
		begin := at
		for _, past := range pasts[:len(f.l.Tags)] {
			at = max(at, past)
		}
		if pasts = pasts[len(f.l.Tags):]; may[i] {
			size += len(key)
			text.Write(f.values[begin:at])
		}
	}
	keys = make([]byte, 0, size)
	for i, key := range f.keys {
		if may[i] {
			keys = append(keys, key...)
		}
	}
	return keys, text.String()
}

// untagged finds the series of the bucket that is named as the collection, if there is one. With
// known, those are left out that the index has in the collection.
func (f *find) untagged(where *tags.Cond, known bool) error {
	b, err := f.Buckets.Bucket(f.l.Collection)
	if errors.Is(err, buckets.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	holds, err := where.UntaggedFilter()
	if err != nil {
		return err
	}
	member := func([]byte) bool { return false }
	if known {
		f.bare = make(map[metric.SeriesID]struct{})
		member = tags.Members(f.Tags, []byte(f.l.Collection), b.Info().ID)
	}
	s := source.Step{What: "all series of the bucket"}
	var failed error
	look := func(key []byte) bool {
		if s.Checked++; !holds(key) || member(key) {
			return true
		}
		if s.Found++; known {
			f.bare[metric.Series(b.Info().ID, key)] = struct{}{}
			failed = f.grow(bareSize)
		}
		values := make([][]byte, len(f.l.Tags))
		for i, d := range f.l.Tags {
			values[i] = tags.ImpliedValue(nameOf(d), key)
		}
		more := false
		if failed == nil {
			more, failed = f.hit(b, key, values)
		}
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
