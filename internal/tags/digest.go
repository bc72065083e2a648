package tags

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/model/metric"
)

// Ranges is how many parts of equal width the hashes of series are divided into.
const Ranges = 1024

// RangeOf returns the range that a hash lies in.
func RangeOf(hash uint32) int { return int(hash >> 22) }

// Digests are sums of digests of series, one for each range: two indexes that know the same have
// equal ones.
type Digests [Ranges]uint64

// Copies compares an index with those of other nodes, which are to know the same.
type Copies struct{ Of *Index }

// Digest is that of what is known of a series in all collections, removals included.
type Digest struct {
	ID  uint64 // the first half of that of the series; its upper half is the hash
	Sum uint64
}

// Hash returns the part of the id by which series have their order.
func (d *Digest) Hash() uint32 { return uint32(d.ID >> 32) }

// digests are kept as rows change, once they are wanted.
type digests struct {
	of     Digests
	buf    []byte
	change Change
	times  []timestamp
}

// KeepDigests makes the index keep digests of its series. It is called once, and takes about a
// second for a million series.
func (c Copies) KeepDigests() {
	x := c.Of
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kept = &digests{}
	for _, at := range x.at {
		if at != 0 {
			x.codec.decode(&x.row, x.rows.Get(at), x.nodes.ids)
			x.kept.add(x, &x.row, 1)
		}
	}
}

// Digests returns the present digests, which KeepDigests has begun.
func (c Copies) Digests() Digests {
	x := c.Of
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.kept.of
}

// replaceRow takes the digest from what a row was to what it is; one that has no registers is none.
func (k *digests) replaceRow(x *Index, old, r *row) {
	if k != nil {
		k.add(x, old, ^uint64(0))
		k.add(x, r, 1)
	}
}

// add adds a row's digest as often as it is told, modulo 2^64.
func (k *digests) add(x *Index, r *row, times uint64) {
	if r.isKnown() {
		k.of[RangeOf(seriesHash(x.buckets.ids[r.bucket], r.key))] += times * k.digest(x, r)
	}
}

// digest returns the digest of a row. It is the digest of the changes that make the row, and these
// are the same in each index.
func (k *digests) digest(x *Index, r *row) uint64 {
	k.times = r.timestamps(k.times[:0])
	k.buf = appendRow(k.buf[:0], &k.change, r, k.times, indexTexts{x})
	return xxh3.Hash(k.buf)
}

// isKnown reports whether anything is known of a row.
func (r *row) isKnown() bool {
	return r.seen.some || r.left.some || r.cleared.some || r.named.some || len(r.tags) > 0
}

// timestamps appends the different timestamps of a row to dst.
func (r *row) timestamps(dst []timestamp) []timestamp {
	note := func(s timestamp) {
		if s.some && !slices.Contains(dst, s) {
			dst = append(dst, s)
		}
	}
	for _, s := range []timestamp{r.seen, r.left, r.cleared, r.named} {
		note(s)
	}
	for i := range r.tags {
		note(r.tags[i].timestamp)
	}
	return dst
}

// digestRows is how many rows SeriesDigests looks at before it lets others at the index.
const digestRows = 256

// SeriesDigests returns the digests of the series whose hashes lie from one to another one, by
// their ids: of about most at a time, and then those up to a lower hash, which it returns as well.
func (c Copies) SeriesDigests(from, through uint32, most int) (list []Digest, reached uint32) {
	x := c.Of
	ids := sortedFrom(x, from, through)
	if len(ids) > most {
		last := ids[most] >> 32
		n := most
		for n > 0 && ids[n-1]>>32 == last {
			n--
		}
		if n == 0 { // all of them have one hash
			for n = most; n < len(ids) && ids[n]>>32 == last; n++ {
			}
		}
		if n < len(ids) {
			through, ids = uint32(ids[n]>>32)-1, ids[:n]
		}
	}
	var k digests
	var codec rowCodec
	var r row
	for part := range slices.Chunk(ids, digestRows) {
		x.mu.RLock()
		for _, id := range part {
			if x.hasHash(id) {
				codec.decode(&r, x.rows.Get(x.at[uint32(id)]), x.nodes.ids)
				list = append(list, Digest{idOf(x.buckets.ids[r.bucket], r.key), k.digest(x, &r)})
			}
		}
		x.mu.RUnlock()
	}
	return addUp(list), through
}

// addUp sorts digests of rows and adds those of a series up.
func addUp(list []Digest) []Digest {
	slices.SortFunc(list, func(a, b Digest) int {
		if a.ID < b.ID {
			return -1
		}
		return int(min(a.ID-b.ID, 1))
	})
	out := list[:0]
	for _, d := range list {
		if n := len(out); n > 0 && out[n-1].ID == d.ID {
			out[n-1].Sum += d.Sum
		} else {
			out = append(out, d)
		}
	}
	return out
}

// sortedFrom is sorted for the rows whose hashes lie from one to another one.
func sortedFrom(x *Index, from, through uint32) (ids []uint64) {
	x.mu.RLock()
	for _, s := range x.byKey.slots {
		if s != 0 {
			if hash := uint32((s - 1) >> 32); from <= hash && hash <= through {
				ids = append(ids, s-1)
			}
		}
	}
	x.mu.RUnlock()
	slices.Sort(ids)
	return ids
}

// idOf returns the first half of the id of a series.
func idOf(bucket uint64, key []byte) uint64 {
	id := metric.Series(bucket, key)
	return binary.BigEndian.Uint64(id[:])
}

// WalkID is Walk for the series with that first half of their ids.
func (c Copies) WalkID(id uint64, fn func(*Change) error) error {
	x := c.Of
	var w walker
	hash := uint32(id >> 32)
	x.mu.RLock()
	var ids []uint64
	s := x.byKey.search(hash)
	for row, ok := s.next(); ok; row, ok = s.next() {
		b, _, k, _ := keyOf(x.rows.Get(x.at[row]))
		if idOf(x.buckets.ids[b], k) == id {
			ids = append(ids, uint64(hash)<<32|uint64(row))
		}
	}
	x.mu.RUnlock()
	return x.walk(&w, ids, fn)
}

// EachCollection calls fn with the key of a series and each collection that it is in. Both are
// valid during the call, and fn must not call the index.
func (c Copies) EachCollection(bucket uint64, series metric.SeriesID,
	fn func(key, collection []byte)) {
	x := c.Of
	x.mu.RLock()
	defer x.mu.RUnlock()
	number, ok := x.buckets.of[bucket]
	if !ok {
		return
	}
	s := x.byKey.search(shortID(series))
	for id, ok := s.next(); ok; id, ok = s.next() {
		b, c, key, _ := keyOf(x.rows.Get(x.at[id]))
		if b == number && metric.Series(bucket, key).Value() == series.Value() &&
			x.inCollection.Set(c).Contains(id) {
			fn(key, x.collections.text(c))
		}
	}
}
