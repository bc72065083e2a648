package tags

import (
	"sync/atomic"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags/postings"
)

// Drop takes away what a series was told up to a clock, in all collections and with all that is
// remembered of it, and reports in how many it was. The caller sees to it that no change from
// before is applied again.
func (x *Index) Drop(bucket uint64, series metric.SeriesID, upTo uint64) (rows int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	number, ok := x.buckets.of[bucket]
	if !ok {
		return 0
	}
	hash := shortID(series)
	var ids []uint32
	s := x.byKey.search(hash)
	for id, ok := s.next(); ok; id, ok = s.next() {
		if b, _, k, _ := keyOf(x.rows.Get(x.at[id])); b == number &&
			metric.Series(bucket, k).Value() == series.Value() {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if keepAbove(x, id, upTo) {
			rows++
		}
	}
	return rows
}

// keepAbove takes what has a clock up to upTo out of a row, and the row if nothing is left of it.
// It reports whether there was something.
func keepAbove(x *Index, id uint32, upTo uint64) (changed bool) {
	old, r := &x.old, &x.row
	block := x.rows.Get(x.at[id])
	n := x.codec.decode(old, block, x.nodes.ids)
	tags := r.tags[:0]
	*r = *old
	for _, g := range old.tags {
		if g.clock > upTo {
			tags = append(tags, g)
		}
	}
	r.tags = tags
	changed = len(tags) < len(old.tags)
	for _, s := range []*timestamp{&r.seen, &r.left, &r.cleared, &r.named} {
		if s.some && s.clock <= upTo {
			*s, changed = timestamp{}, true
		}
	}
	if !r.named.some {
		r.name = 0
	}
	switch {
	case !changed:
	case !r.isKnown():
		x.drop(id, seriesHash(x.buckets.ids[old.bucket], old.key))
	default:
		rewrite(x, id, n)
	}
	return changed
}

// rewrite replaces a row, which is n bytes and old, by one with less. Drop and Forget end with it.
func rewrite(x *Index, id uint32, n int) {
	b := x.codec.encode(&x.row, x.nodes.get)
	x.kept.replaceRow(x, &x.old, &x.row)
	x.post(id, &x.old, &x.row)
	at, to := x.rows.Take(len(b))
	copy(to, b)
	x.rows.Give(x.at[id], n)
	x.at[id] = at
}

// DropBucket drops all series of a bucket.
func (x *Index) DropBucket(bucket uint64) (rows int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	number, ok := x.buckets.of[bucket]
	if !ok {
		return 0
	}
	for id, at := range x.at {
		if at == 0 {
			continue
		}
		if b, _, key, _ := keyOf(x.rows.Get(at)); b == number {
			x.drop(uint32(id), seriesHash(bucket, key))
			rows++
		}
	}
	return rows
}

func (x *Index) drop(id, hash uint32) {
	block := x.rows.Get(x.at[id])
	n := x.codec.decode(&x.old, block, x.nodes.ids)
	x.row = row{bucket: x.old.bucket, collection: x.old.collection, tags: x.row.tags[:0]}
	x.kept.replaceRow(x, &x.old, &x.row)
	x.byKey.remove(hash, id)
	x.post(id, &x.old, &x.row)
	x.collections.release(x.old.collection)
	x.rows.Give(x.at[id], n)
	x.at[id] = 0
	x.freed = append(x.freed, id)
}

// forgetRows is how many rows Forget looks at before it lets others at the index.
const forgetRows = 1024

// Forget drops what is remembered of removals with a clock up to upTo: that tags were removed or
// replaced, and that series left a collection. Older changes that come after that are as new. It
// takes about a second for a million series, in small parts.
func (x *Index) Forget(upTo uint64) {
	for from := 0; from >= 0; {
		from = x.forget(from, upTo)
	}
}

// forget looks at rows from an id on, and returns where to go on, or -1 at the end.
func (x *Index) forget(from int, upTo uint64) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.remembered == 0 || from >= len(x.at) {
		return -1
	}
	past := min(from+forgetRows, len(x.at))
	for id := from; id < past; id++ {
		if x.at[id] != 0 {
			x.forgetRow(uint32(id), upTo)
		}
	}
	return past
}

func (x *Index) forgetRow(id uint32, upTo uint64) {
	old, r := &x.old, &x.row
	block := x.rows.Get(x.at[id])
	n := x.codec.decode(old, block, x.nodes.ids)
	if old.remembers() == 0 {
		return
	}
	tags := r.tags[:0]
	*r = *old
	for _, g := range old.tags {
		if !g.removed || g.clock > upTo {
			tags = append(tags, g)
		}
	}
	r.tags = tags
	for _, s := range []*timestamp{&r.left, &r.cleared} {
		if s.clock <= upTo {
			*s = timestamp{}
		}
	}
	if !r.seen.some && !r.left.some {
		x.drop(id, seriesHash(x.buckets.ids[old.bucket], old.key))
		return
	}
	rewrite(x, id, n)
}

// recentRows is the rows that became visible in the present hour and in the one before, by the
// clocks of the changes that made them so: list 0 of each.
type recentRows struct {
	hour uint64
	of   [2]postings.Lists // in the hour, before it
	gone atomic.Uint64     // how often remove was called
}

const hourNS = 3600_000_000_000

func (r *recentRows) add(id uint32, clock uint64) {
	hour := clock / hourNS
	switch {
	case hour == r.hour+1:
		r.of = [2]postings.Lists{{}, r.of[0]}
	case hour > r.hour:
		r.of = [2]postings.Lists{}
	}
	r.hour = max(r.hour, hour)
	if age := r.hour - hour; age < 2 {
		r.of[age].Add(0, id)
	}
}

func (r *recentRows) remove(id uint32) {
	r.gone.Add(1)
	for age := range r.of {
		if r.of[age].Set(0).Contains(id) {
			r.of[age].Remove(0, id)
		}
	}
}

// rowsSince returns the rows of the last hour before a time, or of a little more: those of the hour
// that it lies in and of the one before.
func (r *recentRows) rowsSince(clock uint64) postings.Set {
	now, set := clock/hourNS, postings.Of()
	for age := range r.of {
		if hour := r.hour - uint64(age); hour+1 >= now && r.of[age].Len(0) > 0 {
			set = set.Or(r.of[age].Set(0))
		}
	}
	return set
}
