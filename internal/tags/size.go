package tags

import "dalmatiner/internal/tags/postings"

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
