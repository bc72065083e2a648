package plan

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"dalmatiner/internal/host/suggest"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/source"
)

// bucket is a bucket that the query reads, with its handle.
type bucket struct {
	handle source.Bucket
	source.Info
}

// bucket returns the bucket of a name that stands at a position of the query.
func (p *planner) bucket(name string, pos int) (bucket, error) {
	if b, ok := p.buckets[name]; ok {
		return b, nil
	}
	handle, err := p.source.Bucket(name)
	if err != nil {
		var near []string
		if errors.Is(err, buckets.ErrUnknown) {
			for _, name := range suggest.Nearest(name, p.source.BucketNames()) {
				near = append(near, metric.Quote(name))
			}
		}
		return bucket{}, p.errorAt(pos, err, "%v%s", err, suggest.Hint(near))
	}
	b := bucket{handle, handle.Info()}
	if b.Resolution <= 0 {
		panic(fmt.Sprintf("query: bucket %q has a resolution of %d ms", name, b.Resolution))
	}
	p.buckets[name] = b
	return b, nil
}

// selectMetrics plans the reads of a selector, shifted into the past by shift.
func (p *planner) selectMetrics(s *dql.Select, shift int64) (value, error) {
	b, err := p.bucket(s.Bucket, s.BucketPos)
	if err != nil {
		return value{}, err
	}
	p.choose(s)
	keys := [][]byte{s.Metric.Key}
	if s.Metric.Parts != nil {
		if keys, err = p.expand(s, b); err != nil {
			return value{}, err
		}
	}
	found := len(keys) > 0
	var handle source.Series                    // of a single metric
	if s.Metric.Parts == nil && !p.opt.Compat { // there a metric that does not exist is 0
		handle = b.handle.Series(s.Metric.Key)
		if found, err = handle.Exists(p.ctx); err != nil {
			return value{}, fmt.Errorf("look for %s in bucket %s: %w", metric.Text(s.Metric.Key),
				metric.Quote(b.Name), err)
		}
	}
	p.hit(s, b, found)
	p.expect(2 * len(keys)) // as most are read for a function of each
	v := value{typ: function.TypeMetric, series: make([]Series, len(keys))}
	for i, key := range keys {
		n, err := p.leaf(s.Pos(), b, key, handle, shift)
		if err != nil {
			return v, err
		}
		v.series[i] = Series{Of: n, Key: key, Bucket: b.Name, id: b.ID, pattern: s.Metric.Parts}
	}
	return v, nil
}

// expand returns the keys that a pattern matches: as many parts as it has,
// where * stands for exactly one. They are sorted. The original looked at what
// stands before the first * only.
func (p *planner) expand(s *dql.Select, b bucket) ([][]byte, error) {
	cacheKey := dql.Name(s, math.MaxInt)
	if keys, ok := p.hits[cacheKey]; ok {
		return keys, nil
	}
	var prefix []byte
	for _, part := range s.Metric.Parts {
		if part.Any {
			break
		}
		prefix = metric.AppendPart(prefix, part.Text)
	}
	var keys [][]byte
	var refused error
	err := b.handle.Metrics(p.ctx, prefix, func(key []byte) bool {
		if p.opt.Compat || matches(s.Metric.Parts, key) {
			keys = append(keys, bytes.Clone(key))
			refused = p.Grow(seriesSize + int64(len(key)))
		}
		return refused == nil && int64(len(keys)) <= p.opt.Limits.MaxSeries
	})
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("list the metrics of bucket %s: %w", metric.Quote(b.Name), err)
	}
	if n := int64(len(keys)); n > p.opt.Limits.MaxSeries {
		return nil, p.tooManySeries(s.Pos(), n)
	}
	slices.SortFunc(keys, bytes.Compare)
	p.hits[cacheKey] = keys
	return keys, nil
}

func matches(pattern []dql.Part, key []byte) bool {
	for _, part := range pattern {
		if len(key) == 0 || len(key) < 1+int(key[0]) {
			return false
		}
		n := 1 + int(key[0])
		if !part.Any && string(key[1:n]) != part.Text {
			return false
		}
		key = key[n:]
	}
	return len(key) == 0
}

// leaf plans the read of a series. handle is that of the series, if the planner has one already.
func (p *planner) leaf(pos int, b bucket, key []byte, handle source.Series,
	shift int64) (*Node, error) {
	var err error
	n := p.intern(append(append(p.name("read").number(int64(b.ID), shift), ' '), key...),
		func(n *Node) {
			start, end := p.out.Start-shift, p.out.End-shift
			r := nextOf(&p.spare.reads, len(p.out.Reads))
			if handle == nil {
				handle = b.handle.Series(key)
			}
			*r = Read{
				Series: handle,
				Bucket: b.Name,
				Key:    key,
				Shift:  shift,
				From:   SlotOf(start, b.Resolution),
				Past:   SlotOf(end, b.Resolution),
			}
			if p.opt.Compat { // a range that begins before 1970 is cut off there
				r.From, r.Past = max(1, start)/b.Resolution, max(1, end)/b.Resolution
			}
			r.Oldest = Oldest(&b.Info, p.opt.Now)
			n.Op, n.Resolution, n.Values, n.First = r, b.Resolution, r.Past-r.From, r.From*b.Resolution+shift
			if p.opt.Compat {
				n.Restart = p.opt.CompatSlots - 1
				n.Values -= n.Values / p.opt.CompatSlots
			}
			n.Form = p.shape("read", b.Resolution, shift, r.From, r.Past)
			err = p.addRead(pos, n)
		})
	if p.opt.Explain { // for very many reads the text costs
		p.describe(n, "read %s BUCKET %s, %d ms earlier", metric.Text(key), metric.Quote(b.Name), shift)
	}
	return n, err
}

// addRead adds a read to the plan, within the limits.
func (p *planner) addRead(pos int, n *Node) error {
	p.out.Reads = append(p.out.Reads, n)
	if n := int64(len(p.out.Reads)); n > p.opt.Limits.MaxSeries {
		return p.tooManySeries(pos, n)
	}
	if p.out.Points += n.Values; p.out.Points > p.opt.Limits.MaxPoints {
		return p.limit(pos, "points to read", p.out.Points, p.opt.Limits.MaxPoints,
			"ask for a shorter range or fewer series")
	}
	return p.Grow(leafSize)
}

// Oldest returns the first slot of a bucket that can be set at a time in unix ms: what has
// outlived the bucket cannot exist.
func Oldest(b *source.Info, now int64) int64 {
	if b.TTL == 0 {
		return 0
	}
	return max(0, SlotOf(now, b.Resolution)-b.TTL)
}

// SlotOf returns the slot that a time in unix ms falls into. Before 1970 it is
// negative, and never set.
func SlotOf(ms, res int64) int64 {
	slot := ms / res
	if ms%res < 0 {
		slot--
	}
	return slot
}
