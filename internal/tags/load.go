package tags

import (
	"cmp"
	"math"
	"slices"

	"dalmatiner/internal/tags/postings"
)

// Loader fills an index from the blocks that Blocks made. It is for one goroutine, and nobody else
// changes the index until Finish.
type Loader struct {
	x    *Index
	keep func(bucket uint64, key []byte) (after uint64, ok bool)

	bulk     bool     // the index was empty: its lists are made in the end
	hashes   []uint32 // of the rows, by ids
	inBucket []uint32 // how many rows each bucket has
	later    []byte   // changes that meet other rows
	clock    uint64

	row    row
	change Change

	// The numbers in the index of what the block mentions.
	nodes, buckets, collections, metrics, names, pairs []uint32
}

// NewLoader returns a Loader of an index. keep is asked about every series: what it says at clocks
// up to after is left out, and all of one that is not ok.
func NewLoader(x *Index, keep func(bucket uint64, key []byte) (after uint64, ok bool)) *Loader {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return &Loader{x: x, keep: keep, bulk: len(x.at) == 0}
}

// Clock returns the highest clock of what was added.
func (l *Loader) Clock() uint64 { return l.clock }

// Add adds the rows of a block that was parsed. After an error, which is ErrBlock, those before the
// one that is malformed are added.
func (l *Loader) Add(b *Block) error {
	if !l.bulk {
		return l.addChanges(b)
	}
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	l.mention(b)
	for b.rows > 0 {
		if err := b.next(&l.row); err != nil {
			return err
		}
		if err := l.add(b); err != nil {
			return err
		}
	}
	return nil
}

// Change adds a change.
func (l *Loader) Change(c *Change) {
	if after, ok := l.keep(c.Bucket, c.Key); ok && c.Clock > after {
		l.clock = max(l.clock, c.Clock)
		l.later = AppendChange(l.later, c)
	}
}

// addChanges applies rows to an index that has others.
func (l *Loader) addChanges(b *Block) error {
	for b.rows > 0 {
		if err := b.next(&l.row); err != nil {
			return err
		}
		if after, ok := l.keep(b.bucketOf(l.row.bucket), l.row.key); ok {
			if err := l.postpone(b, b.timestamps, after); err != nil {
				return err
			}
		}
		if err := l.apply(); err != nil {
			return err
		}
	}
	return nil
}

// postpone notes what a row says after a clock as changes.
func (l *Loader) postpone(of texts, timestamps []timestamp, after uint64) error {
	at := len(l.later)
	all := appendRow(l.later, &l.change, &l.row, timestamps, of)
	l.later = all[:at]
	for rest := all[at:]; len(rest) > 0; {
		behind, err := ParseChange(&l.change, rest)
		if err != nil {
			return err
		}
		if l.clock = max(l.clock, l.change.Clock); l.change.Clock > after {
			l.later = append(l.later, rest[:len(rest)-len(behind)]...)
		}
		rest = behind
	}
	return nil
}

// apply applies what was postponed.
func (l *Loader) apply() (err error) {
	for rest := l.later; len(rest) > 0; {
		if rest, err = ParseChange(&l.change, rest); err != nil {
			return err
		}
		l.x.Apply(&l.change)
	}
	l.later = l.later[:0]
	return nil
}

// mention gives what a block mentions numbers in the index.
func (l *Loader) mention(b *Block) {
	x := l.x
	number := func(dst []uint32, n *numbers, ids []uint64) []uint32 {
		dst = dst[:0]
		for _, id := range ids {
			dst = append(dst, n.get(id))
		}
		return dst
	}
	l.nodes, l.buckets = number(l.nodes, &x.nodes, b.nodes), number(l.buckets, &x.buckets, b.buckets)
	l.collections, l.metrics, l.names, l.pairs = l.collections[:0], l.metrics[:0], l.names[:0],
		l.pairs[:0]
	for _, text := range b.collections {
		l.collections = append(l.collections, x.collections.intern(text))
	}
	for _, text := range b.metrics {
		l.metrics = append(l.metrics, x.metrics.intern(text))
	}
	for i := range b.names {
		x.text = appendName(x.text[:0], b.names[i])
		l.names = append(l.names, x.names.intern(x.text))
	}
	for i := range b.pairs {
		p := &b.pairs[i]
		x.text = appendPair(x.text[:0], l.names[p.name], p.value)
		l.pairs = append(l.pairs, x.pairs.intern(x.text))
	}
}

// add adds the row that was read, without the lists of the index.
func (l *Loader) add(b *Block) error {
	x, r := l.x, &l.row
	bucket := b.bucketOf(r.bucket)
	after, ok := l.keep(bucket, r.key)
	if !ok {
		return nil
	}
	first, since := uint64(math.MaxUint64), timestamp{} // the first one since when it is visible
	for _, s := range b.timestamps {
		first, l.clock = min(first, s.clock), max(l.clock, s.clock)
		if s.compare(r.left) > 0 && (!since.some || s.compare(since) < 0) {
			since = s
		}
	}
	if first <= after {
		return l.postpone(b, b.timestamps, after)
	}
	r.bucket, r.collection = l.buckets[r.bucket], l.collections[r.collection]
	for len(l.inBucket) < len(x.buckets.ids) {
		l.inBucket = append(l.inBucket, 0)
	}
	l.inBucket[r.bucket]++
	x.collections.holds[r.collection]++
	if r.named.some {
		r.name = l.metrics[r.name]
		x.metrics.holds[r.name]++
	}
	for i := range r.tags {
		g := &r.tags[i]
		if g.name = l.names[g.name]; !g.removed {
			g.pair = l.pairs[g.pair]
		}
	}
	ascending := func(a, b register) int { return cmp.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(r.tags, ascending) {
		slices.SortFunc(r.tags, ascending)
	}
	for i := range r.tags {
		g := &r.tags[i]
		if x.names.holds[g.name]++; !g.removed {
			x.pairs.holds[g.pair]++
		}
	}
	row := x.codec.encode(r, x.nodes.get)
	at, to := x.rows.Take(len(row))
	copy(to, row)
	id := uint32(len(x.at))
	x.at, l.hashes = append(x.at, at), append(l.hashes, seriesHash(bucket, r.key))
	x.remembered += r.remembers()
	if r.isVisible() {
		x.recent.add(id, since.clock)
	}
	return nil
}

// Finish makes the lists of the index, and the index complete. The error is one of rows that met
// others.
func (l *Loader) Finish() error {
	if l.bulk {
		if err := l.lists(); err != nil {
			return err
		}
	}
	return l.apply()
}

func (l *Loader) lists() error {
	x := l.x
	x.mu.Lock()
	defer x.mu.Unlock()
	x.byKey.grow(len(l.hashes))
	for id, hash := range l.hashes {
		if err := l.enter(uint32(id), hash); err != nil {
			return err
		}
	}
	for _, d := range []*dict{&x.collections, &x.metrics, &x.names, &x.pairs} {
		d.sweep()
	}
	pairs := postings.NewBuilder(x.pairs.holds)
	names, metrics := postings.NewBuilder(x.names.holds), postings.NewBuilder(x.metrics.holds)
	collections := postings.NewBuilder(x.collections.holds)
	buckets := postings.NewBuilder(l.inBucket)
	for id, at := range x.at {
		if at == 0 {
			continue
		}
		bucket, collection, _, rest := keyOf(x.rows.Get(at))
		if rest[0]&rowSeen != 0 {
			collections.Add(collection, uint32(id))
			buckets.Add(bucket, uint32(id))
		}
		tags, name, named := openTags(rest)
		if named {
			metrics.Add(name, uint32(id))
		}
		for name, pair, ok := tags.next(); ok; name, pair, ok = tags.next() {
			names.Add(name, uint32(id))
			pairs.Add(pair, uint32(id))
		}
	}
	x.inCollection, x.inBucket, x.ofMetric = collections.Lists(), buckets.Lists(), metrics.Lists()
	x.withName, x.withPair = names.Lists(), pairs.Lists()
	x.ofName = l.pairsOfNames()
	l.bulk, l.hashes = false, nil
	return nil
}

// enter lets a row be found by its series. One that is there twice is applied as changes.
func (l *Loader) enter(id, hash uint32) error {
	x := l.x
	bucket, collection, key, _ := keyOf(x.rows.Get(x.at[id]))
	if _, again := x.find(hash, bucket, collection, key); !again {
		x.byKey.add(hash, id)
		return nil
	}
	n := x.codec.decode(&l.row, x.rows.Get(x.at[id]), x.nodes.ids)
	err := l.postpone(indexTexts{x}, x.codec.timestamps, 0)
	x.collections.holds[collection]--
	if l.row.named.some {
		x.metrics.holds[l.row.name]--
	}
	for _, g := range l.row.tags {
		if x.names.holds[g.name]--; !g.removed {
			x.pairs.holds[g.pair]--
		}
	}
	x.remembered -= l.row.remembers()
	x.recent.remove(id)
	x.rows.Give(x.at[id], n)
	x.at[id] = 0
	x.free = append(x.free, id)
	return err
}

// pairsOfNames returns the lists of the tags of each name.
func (l *Loader) pairsOfNames() postings.Lists {
	x := l.x
	most := make([]uint32, len(x.names.holds))
	each := func(fn func(name, pair uint32)) {
		for pair := range x.pairs.all() {
			name, _ := splitPair(x.pairs.text(pair))
			fn(name, pair)
		}
	}
	each(func(name, _ uint32) { most[name]++ })
	b := postings.NewBuilder(most)
	each(b.Add)
	return b.Lists()
}
