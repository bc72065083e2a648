package tags

import "dalmatiner/internal/tags/postings"

// Size is how much an index holds.
type Size struct {
	Series      int // in all collections: one that is in two counts twice
	Remembered  int // of them and of what left, those that remember what was removed
	Collections int
	Names       int // of tags
	Tags        int // different ones: name and value
}

// Size returns how much the index holds.
func (x *Index) Size() Size {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := Size{
		Remembered:  x.remembered,
		Collections: x.collections.len(),
		Names:       x.names.len(),
		Tags:        x.pairs.len(),
	}
	for b := range x.buckets.ids {
		s.Series += x.inBucket.Len(uint32(b))
	}
	return s
}

// Bytes returns the memory of the index. It takes longer the more long lists there are: a
// millisecond for ten thousand.
func (x *Index) Bytes() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := x.rows.Bytes() + int64(cap(x.at)+cap(x.free)+cap(x.freed))*4 + x.byKey.bytes()
	for _, d := range []*dict{&x.collections, &x.metrics, &x.names, &x.pairs} {
		n += d.bytes()
	}
	for _, l := range []*postings.Lists{&x.inCollection, &x.inBucket, &x.ofMetric, &x.withName,
		&x.withPair, &x.ofName} {
		n += l.Bytes()
	}
	return n + x.recent.of[0].Bytes() + x.recent.of[1].Bytes()
}
