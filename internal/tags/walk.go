package tags

import (
	"bytes"
	"cmp"
	"slices"
)

// walkRows is how many rows Walk copies before it lets others at the index.
const walkRows = 256

// maxPart is how many bytes of tags a change of a walk has before another one says the rest.
const maxPart = 128 << 10

// Walk calls fn with changes that make the present state when they are applied to an empty
// index, removals too, until fn returns an error, which it returns. They have one order, by a
// hash of bucket and key, bucket, key, collection and timestamp: two indexes of the same state give
// the same changes. The change is valid during the call; fn may call the index.
//
// What is applied or dropped during a walk may be among the changes or not.
func (x *Index) Walk(fn func(*Change) error) error {
	ids := x.sorted()
	var w walker
	for len(ids) > 0 {
		n := min(walkRows, len(ids))
		for n < len(ids) && ids[n]>>32 == ids[n-1]>>32 {
			n++
		}
		if err := x.walk(&w, ids[:n], fn); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// WalkSeries is Walk for one series, whose rows it looks up.
func (x *Index) WalkSeries(bucket uint64, key []byte, fn func(*Change) error) error {
	var w walker
	hash := seriesHash(bucket, key)
	x.mu.RLock()
	var ids []uint64
	s := x.byKey.search(hash)
	for id, ok := s.next(); ok; id, ok = s.next() {
		b, _, k, _ := keyOf(x.rows.Get(x.at[id]))
		if x.buckets.ids[b] == bucket && bytes.Equal(k, key) {
			ids = append(ids, uint64(hash)<<32|uint64(id))
		}
	}
	x.mu.RUnlock()
	return x.walk(&w, ids, fn)
}

// walk calls fn with the changes of rows that are copied together.
func (x *Index) walk(w *walker, ids []uint64, fn func(*Change) error) error {
	x.copyRows(w, ids)
	for rest := w.buf; len(rest) > 0; {
		var err error
		if rest, err = ParseChange(&w.change, rest); err != nil {
			return err
		}
		if err = fn(&w.change); err != nil {
			return err
		}
	}
	return nil
}

// walker is the memory of a walk.
type walker struct {
	buf    []byte
	row    row
	codec  rowCodec
	change Change
}

// sorted returns hash<<32 | id of all rows, by hashes.
func (x *Index) sorted() []uint64 {
	x.mu.RLock()
	ids := make([]uint64, 0, x.byKey.n)
	for _, s := range x.byKey.slots {
		if s != 0 {
			ids = append(ids, s-1)
		}
	}
	x.mu.RUnlock()
	slices.Sort(ids)
	return ids
}

// copyRows sets the buffer to the changes of rows, of which all with the same hash are there.
func (x *Index) copyRows(w *walker, ids []uint64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ids = slices.DeleteFunc(slices.Clone(ids), func(id uint64) bool { return !x.hasHash(id) })
	slices.SortFunc(ids, func(a, b uint64) int {
		if order := cmp.Compare(a>>32, b>>32); order != 0 {
			return order
		}
		b1, c1, k1, _ := keyOf(x.rows.Get(x.at[uint32(a)]))
		b2, c2, k2, _ := keyOf(x.rows.Get(x.at[uint32(b)]))
		return cmp.Or(cmp.Compare(x.buckets.ids[b1], x.buckets.ids[b2]), bytes.Compare(k1, k2),
			bytes.Compare(x.collections.text(c1), x.collections.text(c2)))
	})
	w.buf = w.buf[:0]
	for _, id := range ids {
		w.codec.decode(&w.row, x.rows.Get(x.at[uint32(id)]), x.nodes.ids)
		w.buf = appendRow(w.buf, &w.change, &w.row, w.codec.timestamps, indexTexts{x})
	}
}

// hasHash reports whether an id is that of a row with the hash that stands before it.
func (x *Index) hasHash(id uint64) bool {
	at := x.at[uint32(id)]
	if at == 0 {
		return false
	}
	bucket, _, key, _ := keyOf(x.rows.Get(at))
	return seriesHash(x.buckets.ids[bucket], key) == uint32(id>>32)
}

// texts say what the numbers of a row mean.
type texts interface {
	bucketOf(uint32) uint64
	collectionOf(uint32) []byte
	metricOf(uint32) []byte
	tagNameOf(uint32) TagName
	tagValueOf(pair uint32) []byte
}

// indexTexts are those of the rows of an index.
type indexTexts struct{ *Index }

func (x indexTexts) bucketOf(n uint32) uint64      { return x.buckets.ids[n] }
func (x indexTexts) collectionOf(n uint32) []byte  { return x.collections.text(n) }
func (x indexTexts) metricOf(n uint32) []byte      { return x.metrics.text(n) }
func (x indexTexts) tagNameOf(n uint32) TagName    { return parseName(x.names.text(n)) }
func (x indexTexts) tagValueOf(pair uint32) []byte { return x.value(pair) }

// appendRow appends a change for each timestamp of a row. c is memory for one.
func appendRow(dst []byte, c *Change, r *row, timestamps []timestamp, of texts) []byte {
	slices.SortFunc(timestamps, timestamp.compare)
	for _, s := range timestamps {
		*c = Change{
			Bucket: of.bucketOf(r.bucket), Key: r.key, Collection: of.collectionOf(r.collection),
			Leave: r.left == s, Replace: r.cleared == s,
			Set: c.Set[:0], Removed: c.Removed[:0], Clock: s.clock, Node: s.node,
		}
		if r.named == s {
			c.Name = of.metricOf(r.name)
		}
		for _, g := range r.tags {
			if g.timestamp != s {
				continue
			}
			if n := of.tagNameOf(g.name); g.removed {
				c.Removed = append(c.Removed, n)
			} else {
				c.Set = append(c.Set, Tag{n, of.tagValueOf(g.pair)})
			}
		}
		slices.SortFunc(c.Set, func(a, b Tag) int { return a.TagName.compare(b.TagName) })
		slices.SortFunc(c.Removed, TagName.compare)
		dst = appendParts(dst, c)
	}
	return dst
}

// appendParts appends a change, as several where it has more tags or bytes than one may have:
// several changes may have had one timestamp.
func appendParts(dst []byte, c *Change) []byte {
	part := *c
	for set, removed := c.Set, c.Removed; ; {
		n, m := 0, 0
		for size := 0; n < min(len(set), MaxTags) && size < maxPart; n++ {
			size += len(set[n].Namespace) + len(set[n].Name) + len(set[n].Value)
		}
		for size := 0; n == len(set) && m < min(len(removed), MaxTags-n) && size < maxPart; m++ {
			size += len(removed[m].Namespace) + len(removed[m].Name)
		}
		part.Set, part.Removed = set[:n], removed[:m]
		dst = AppendChange(dst, &part)
		if set, removed = set[n:], removed[m:]; len(set)+len(removed) == 0 {
			return dst
		}
	}
}

func (n TagName) compare(o TagName) int {
	return cmp.Or(bytes.Compare(n.Namespace, o.Namespace), bytes.Compare(n.Name, o.Name))
}
