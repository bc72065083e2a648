package tags

import (
	"bytes"
	"dalmatiner/internal/tags/arena"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags/postings"
)

// Index holds the series of each collection with their metrics and tags. Its methods may be called
// concurrently; what reads waits for a change and the other way round. It starts no goroutine and
// reads and writes no file.
type Index struct {
	mu sync.RWMutex

	rows arena.Arena
	at   []arena.Ref // of each row's id; 0 = free
	freeIDs
	byKey table // of the series' hashes: a series has a row for each collection

	collections dict
	metrics     dict // names of metrics that changes said
	names       dict // namespaces and names of tags
	pairs       dict // tags: the number of a name and a value
	buckets     numbers
	nodes       numbers

	// Rows in a collection, by numbers.
	inCollection, inBucket, ofMetric, withName, withPair postings.Lists

	ofName     postings.Lists // pairs, by the numbers of names
	remembered int            // rows that remember what was removed
	recent     recentRows
	kept       *digests // nil: nobody wants them

	lookups  atomic.Int64 // that are under way
	codec    rowCodec     // of changes
	old, row row
	text     []byte
}

// freeIDs are ids of no rows.
type freeIDs struct {
	free  []uint32
	freed []uint32 // that a lookup may still mean
}

// New returns an empty index.
func New() *Index { return &Index{} }

// numbers gives ids of 64 bits small numbers, for good: there are few.
type numbers struct {
	ids []uint64
	of  map[uint64]uint32
}

func (n *numbers) get(id uint64) uint32 {
	number, ok := n.of[id]
	if !ok {
		if n.of == nil {
			n.of = make(map[uint64]uint32)
		}
		number = uint32(len(n.ids))
		n.ids = append(n.ids, id)
		n.of[id] = number
	}
	return number
}

// seriesHash returns the part of a series' id that the index knows it by.
func seriesHash(bucket uint64, key []byte) uint32 {
	return shortID(metric.Series(bucket, key))
}

func shortID(id metric.SeriesID) uint32 { return binary.BigEndian.Uint32(id[:]) }

// find returns the row of a series in a collection.
func (x *Index) find(hash, bucket, collection uint32, key []byte) (id uint32, ok bool) {
	s := x.byKey.search(hash)
	for {
		if id, ok = s.next(); !ok {
			return 0, false
		}
		b, c, k, _ := keyOf(x.rows.Get(x.at[id]))
		if b == bucket && c == collection && bytes.Equal(k, key) {
			return id, true
		}
	}
}

// rowOf returns the encoded row of a series of a bucket in a collection, while x is locked. The
// series may have left the collection.
func rowOf(x *Index, collection []byte, bucket uint64, key []byte) (encoded []byte, ok bool) {
	c, ok := x.collections.find(collection)
	b, known := x.buckets.of[bucket]
	if !ok || !known {
		return nil, false
	}
	id, ok := x.find(seriesHash(bucket, key), b, c, key)
	if !ok {
		return nil, false
	}
	return x.rows.Get(x.at[id]), true
}

// Fits returns an error that wraps ErrLimit where a series would have more than MaxTags tags
// with a change, removed ones included. Apply takes such a change as well: copies of the index
// must agree. Whoever takes changes from senders asks first.
func (x *Index) Fits(c *Change) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	encoded, ok := rowOf(x, c.Collection, c.Bucket, c.Key)
	if !ok || c.Replace {
		return nil
	}
	_, _, _, rest := keyOf(encoded)
	t, _, _ := openTags(rest)
	if n := int(t.left) + len(c.Set) + len(c.Removed); n > MaxTags {
		return invalid("series %s may have %d tags in collection %s with it, the limit is %d: replace "+
			"them",
			metric.Text(c.Key), n, metric.Quote(string(c.Collection)), MaxTags)
	}
	return nil
}

// Apply applies a change, which must be valid (Check), and reports whether it said anything new.
// Changes may come in any order and repeatedly. The tags ddb:key_length and ddb:part_N are
// passed over: every series has them (IsImplied). Nothing of c is kept.
func (x *Index) Apply(c *Change) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	hash, bucket := seriesHash(c.Bucket, c.Key), x.buckets.get(c.Bucket)
	collection, fresh := x.collections.hold(c.Collection)
	old, r := &x.old, &x.row
	var was []byte // the row
	id, known := uint32(0), false
	if !fresh {
		id, known = x.find(hash, bucket, collection, c.Key)
	}
	if known {
		x.collections.release(collection) // the row holds it
		was = x.rows.Get(x.at[id])
		was = was[:x.codec.decode(old, was, x.nodes.ids)]
		tags := append(r.tags[:0], old.tags...)
		*r = *old
		r.tags = tags
	} else {
		*old = row{bucket: bucket, tags: old.tags[:0]}
		*r = row{bucket: bucket, collection: collection, key: c.Key, tags: r.tags[:0]}
	}
	x.merge(r, c)
	sweep(x, r)
	b := x.codec.encode(r, x.nodes.get)
	if known && bytes.Equal(b, was) {
		return false
	}
	if !known {
		id = x.newID()
		x.byKey.add(hash, id)
	}
	x.kept.replaceRow(x, old, r)
	x.post(id, old, r)
	switch {
	case !known:
		at, block := x.rows.Take(len(b))
		copy(block, b)
		x.at[id] = at
	case arena.Fits(len(was), len(b)):
		copy(x.rows.Get(x.at[id]), b)
	default:
		n := len(was)
		at, block := x.rows.Take(len(b))
		copy(block, b)
		x.rows.Give(x.at[id], n)
		x.at[id] = at
	}
	if !old.isVisible() && r.isVisible() {
		x.recent.add(id, c.Clock)
	}
	return true
}

func (x *Index) newID() uint32 {
	if len(x.freed) > 0 && x.lookups.Load() == 0 {
		x.free, x.freed = append(x.free, x.freed...), x.freed[:0]
	}
	if n := len(x.free); n > 0 {
		id := x.free[n-1]
		x.free = x.free[:n-1]
		return id
	}
	x.at = append(x.at, 0)
	return uint32(len(x.at) - 1)
}

// merge raises the registers of a row to what a change says.
func (x *Index) merge(r *row, c *Change) {
	s := timestamp{c.Clock, c.Node, true}
	if c.Leave {
		r.left.raise(s)
		return
	}
	r.seen.raise(s)
	if c.Replace {
		r.cleared.raise(s)
	}
	if len(c.Name) > 0 {
		order := r.named.compare(s)
		if order < 0 || order == 0 && bytes.Compare(x.metrics.text(r.name), c.Name) < 0 {
			r.name, _ = x.metrics.hold(c.Name)
			r.named = s
		}
	}
	for i := range c.Set {
		t := &c.Set[i]
		if IsImplied(t.Namespace, t.Name) {
			continue
		}
		g := register{name: x.holdName(t.TagName), fresh: true, timestamp: s}
		g.pair = x.holdPair(g.name, t.Value)
		x.put(r, g)
	}
	for i := range c.Removed {
		if n := c.Removed[i]; !IsImplied(n.Namespace, n.Name) {
			x.put(r, register{name: x.holdName(n), removed: true, fresh: true, timestamp: s})
		}
	}
}

func appendName(dst []byte, n TagName) []byte {
	return append(appendText(dst, n.Namespace), n.Name...)
}

func parseName(text []byte) TagName {
	f := fields{rest: text}
	return TagName{Namespace: f.text(MaxNamespace), Name: f.rest}
}

func appendPair(dst []byte, name uint32, value []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, name), value...)
}

func splitPair(text []byte) (name uint32, value []byte) {
	return binary.LittleEndian.Uint32(text), text[4:]
}

func (x *Index) holdName(n TagName) uint32 {
	x.text = appendName(x.text[:0], n)
	number, _ := x.names.hold(x.text)
	return number
}

func (x *Index) holdPair(name uint32, value []byte) uint32 {
	x.text = appendPair(x.text[:0], name, value)
	number, fresh := x.pairs.hold(x.text)
	if fresh {
		x.ofName.Add(name, number)
	}
	return number
}

// pairName returns the number of the name of a tag.
func pairName(pair []byte) uint32 { return binary.LittleEndian.Uint32(pair) }

// value returns the value of a tag.
func (x *Index) value(pair uint32) []byte {
	_, value := splitPair(x.pairs.text(pair))
	return value
}

func (x *Index) release(g register) {
	if !g.removed && x.pairs.release(g.pair) {
		x.ofName.Remove(g.name, g.pair)
	}
	x.names.release(g.name)
}

// put puts a register of the change that is applied into a row, unless that has a higher one.
func (x *Index) put(r *row, g register) {
	at, ok := r.find(g.name)
	if !ok {
		r.tags = append(r.tags, register{})
		copy(r.tags[at+1:], r.tags[at:])
		r.tags[at] = g
		return
	}
	old := &r.tags[at]
	if !isAbove(x, g, *old) {
		x.release(g)
		return
	}
	if old.fresh {
		x.release(*old)
	}
	*old = g
}

func isAbove(x *Index, g, o register) bool {
	switch order := g.compare(o.timestamp); {
	case order != 0:
		return order > 0
	case g.removed || o.removed:
		return o.removed && !g.removed
	}
	return bytes.Compare(x.value(g.pair), x.value(o.pair)) > 0
}

// sweep drops from a row what other registers hide for ever.
func sweep(x *Index, r *row) {
	for _, s := range []*timestamp{&r.seen, &r.cleared} {
		if s.compare(r.left) <= 0 {
			*s = timestamp{}
		}
	}
	if r.named.some && r.named.compare(r.left) <= 0 {
		if r.named != x.old.named || r.name != x.old.name { // it is of the change
			x.metrics.release(r.name)
		}
		r.named, r.name = timestamp{}, 0
	}
	kept := r.tags[:0]
	for _, g := range r.tags {
		order := g.compare(r.cleared)
		if g.compare(r.left) > 0 && (order > 0 || order == 0 && !g.removed) {
			kept = append(kept, g)
		} else if g.fresh {
			x.release(g)
		}
	}
	r.tags = kept
}

// post takes the lists from what a row was to what it is, and gives back what it does not hold
// any more. A row that is not visible has no tags.
func (x *Index) post(id uint32, old, r *row) {
	before, after := old.isVisible(), r.isVisible()
	x.remembered += r.remembers() - old.remembers()
	if before != after {
		post := (*postings.Lists).Add
		if before {
			post = (*postings.Lists).Remove
			x.recent.remove(id)
		}
		post(&x.inCollection, r.collection, id)
		post(&x.inBucket, r.bucket, id)
	}
	if old.named != r.named || old.name != r.name {
		if r.named.some {
			x.ofMetricChange(old, r, id)
		} else {
			x.ofMetric.Remove(old.name, id)
			x.metrics.release(old.name)
		}
	}
	i, j := 0, 0
	for i < len(old.tags) || j < len(r.tags) {
		switch {
		case j == len(r.tags) || i < len(old.tags) && old.tags[i].name < r.tags[j].name:
			x.unpost(id, old.tags[i], true)
			i++
		case i == len(old.tags) || r.tags[j].name < old.tags[i].name:
			if g := r.tags[j]; !g.removed {
				x.withPair.Add(g.pair, id)
				x.withName.Add(g.name, id)
			}
			j++
		default:
			x.repost(id, old.tags[i], r.tags[j])
			i, j = i+1, j+1
		}
	}
}

func (x *Index) ofMetricChange(old, r *row, id uint32) {
	same := old.named.some && old.name == r.name
	if !same {
		x.ofMetric.Add(r.name, id)
		if old.named.some {
			x.ofMetric.Remove(old.name, id)
		}
	}
	if old.named.some {
		x.metrics.release(old.name)
	}
}

// unpost takes a row out of the lists of a register that it has no more.
func (x *Index) unpost(id uint32, g register, name bool) {
	if !g.removed {
		x.withPair.Remove(g.pair, id)
		if name {
			x.withName.Remove(g.name, id)
		}
	}
	x.release(g)
}

// repost replaces a register by one of the same name.
func (x *Index) repost(id uint32, old, now register) {
	if !now.fresh {
		return
	}
	same := !old.removed && !now.removed && old.pair == now.pair
	if !now.removed && !same {
		x.withPair.Add(now.pair, id)
		if old.removed {
			x.withName.Add(now.name, id)
		}
	}
	if same {
		x.release(old)
	} else {
		x.unpost(id, old, now.removed)
	}
}

// remembers returns 1 if something of the row was removed, else 0.
func (r *row) remembers() int {
	if r.left.some || r.cleared.some {
		return 1
	}
	for i := range r.tags {
		if r.tags[i].removed {
			return 1
		}
	}
	return 0
}
