package cardinality

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// scope returns the buckets that are counted.
func (c *counter) scope() []buckets.Info {
	if c.Bucket != nil {
		return []buckets.Info{*c.Bucket}
	}
	return c.Store.Buckets()
}

// metrics calls fn for every metric of a bucket. A bucket that is deleted meanwhile has none,
// unless it was asked for.
func (c *counter) metrics(ctx context.Context, b buckets.Info, fn func(key []byte) error) error {
	var failed error
	err := c.Store.Metrics(ctx, b, c.Prefix, func(key []byte) bool {
		failed = fn(key)
		return failed == nil
	})
	if errors.Is(err, buckets.ErrUnknown) && c.Bucket == nil {
		err = nil
	}
	return errors.Join(failed, err)
}

func (c *counter) countBuckets(ctx context.Context) error {
	t, err := c.countAll(ctx, 0)
	if err != nil {
		return err
	}
	for _, b := range c.scope() {
		e := t.of(metric.Series(b.ID, nil))
		c.answer.Distinct++
		c.best.add(int(e.series), int(e.recent), []byte(b.Name), nil, func() Element {
			return Element{Text: metric.Escape(b.Name)}
		})
	}
	return nil
}

// countPrefixes counts by hashes, and then looks for the names of the best: with all names in
// memory a count would take as much as the catalogue.
func (c *counter) countPrefixes(ctx context.Context) error {
	t, err := c.countAll(ctx, c.Depth)
	if err != nil {
		return err
	}
	c.answer.Distinct = t.n
	hashes := best{limit: c.Limit, byNew: c.ByNew, memory: c.Memory}
	for i := range t.slots {
		if s := &t.slots[i]; s.series > 0 {
			hashes.add(int(s.series), int(s.recent), s.id[:], nil, func() Element {
				return Element{Deeper: s.deeper}
			})
		}
	}
	if hashes.err != nil {
		return hashes.err
	}
	hashes.cut()
	return c.nameBest(ctx, hashes.list)
}

// countAll counts all series by beginnings of so many parts.
func (c *counter) countAll(ctx context.Context, depth int) (*prefixCounts, error) {
	recent := c.Arrivals.RecentSeries()
	c.answer.Since, c.answer.AtLeast = recent.Since.UnixMilli(), recent.Missed
	t := newPrefixCounts(c.Memory, recent)
	err := c.eachPrefix(ctx, depth, t.add)
	if err == nil {
		err = t.flush()
	}
	c.answer.Series, c.answer.New = t.series, t.recent
	return t, err
}

// errFound ends a walk early.
var errFound = errors.New("all are found")

// nameBest finds the prefixes of hashes. Those of which all series have been deleted since are
// left out.
func (c *counter) nameBest(ctx context.Context, list []ranked) error {
	of := make(map[metric.SeriesID]Element, len(list))
	var some [1 << 16]bool // by bits of the hashes, as most are none of these
	for i := range list {
		id := metric.SeriesID(list[i].first)
		of[id] = list[i].Element
		some[binary.LittleEndian.Uint16(id[:])] = true
	}
	var last prefix
	err := c.eachPrefix(ctx, c.Depth, func(b *buckets.Info, _ []byte, p prefix) error {
		if len(of) == 0 {
			return errFound
		}
		if p.same(b.ID, &last) {
			return nil
		}
		last.set(b.ID, p)
		id := metric.Series(b.ID, p.key)
		if !some[binary.LittleEndian.Uint16(id[:])] {
			return nil
		}
		e, ok := of[id]
		if !ok {
			return nil
		}
		delete(of, id)
		c.best.add(e.Series, e.New, p.key, []byte(b.Name), func() Element {
			e.Text, e.Bucket = metric.Text(p.key), metric.Escape(b.Name)
			return e
		})
		return c.best.err
	})
	if errors.Is(err, errFound) {
		return nil
	}
	return err
}

// prefix is the beginning of a metric.
type prefix struct {
	bucket uint64 // of the one before
	key    []byte
	deeper bool // the metric has more parts
}

func (p prefix) same(bucket uint64, last *prefix) bool {
	return last.key != nil && bucket == last.bucket && bytes.Equal(p.key, last.key)
}

// set makes a copy of a prefix.
func (p *prefix) set(bucket uint64, of prefix) {
	p.bucket, p.key = bucket, append(p.key[:0], of.key...)
	if p.key == nil {
		p.key = []byte{}
	}
}

// eachPrefix calls fn for every metric that begins with the parts of Prefix, with its beginning
// that has depth more. A key that is no list of parts has no beginning but itself, and the empty
// one.
func (c *counter) eachPrefix(ctx context.Context, depth int,
	fn func(b *buckets.Info, key []byte, p prefix) error) error {
	parts, _ := metric.Parts(c.Prefix)
	for _, b := range c.scope() {
		if err := c.metrics(ctx, b, func(key []byte) error {
			end, deeper, ok := cut(key, len(parts)+depth)
			switch {
			case ok:
			case len(parts) > 0:
				return nil
			case depth == 0:
				end = 0
			default:
				end, deeper = len(key), false
			}
			return fn(&b, key, prefix{key: key[:end], deeper: deeper})
		}); err != nil {
			return err
		}
	}
	return nil
}

// cut returns the length of the first n parts of a key, and whether it has more. ok is false for
// a key that is no list of parts.
func cut(key []byte, n int) (end int, deeper, ok bool) {
	at := 0
	for ; at < len(key); n-- {
		if n == 0 {
			end, deeper = at, true
		}
		at += 1 + int(key[at])
	}
	if !deeper {
		end = at
	}
	return end, deeper, at == len(key)
}
