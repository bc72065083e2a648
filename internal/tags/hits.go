package tags

import "dalmatiner/internal/postings"

// hitRows is how many hits are copied before others are let at the index.
const hitRows = 256

// hits calls fn for the rows that were found, without the lock.
func (l *lookup) hits(q *Query, found postings.Set, fn func(*Hit) bool) error {
	b := batch{x: l.x, want: make([]wanted, len(q.Want)), values: make([][]byte, len(q.Want))}
	for i, n := range q.Want {
		b.want[i].name = n
	}
	for id := range found.All() {
		if err := l.cancelled(); err != nil {
			return err
		}
		if b.ids = append(b.ids, id); len(b.ids) == hitRows && !b.call(fn) {
			return nil
		}
	}
	b.call(fn)
	return nil
}

// wanted is a tag whose values are wanted.
type wanted struct {
	name    TagName
	number  uint32
	known   bool // it is stored, by that number
	implied implied
	isPart  bool // it is not stored
}

// batch is hits that are copied together.
type batch struct {
	x      *Index
	want   []wanted
	ids    []uint32
	values [][]byte

	buckets []uint64 // of each hit
	buf     []byte   // keys and values
	ends    []int    // of each in buf; -1 for values that there are not
}

// call calls fn for the rows of the batch, and empties it. It returns false when fn did.
func (b *batch) call(fn func(*Hit) bool) bool {
	b.copy()
	b.ids = b.ids[:0]
	at, ends := 0, b.ends
	next := func() []byte {
		end := ends[0]
		if ends = ends[1:]; end < 0 {
			return nil
		}
		text := b.buf[at:end:end]
		at = end
		return text
	}
	for _, bucket := range b.buckets {
		h := Hit{Bucket: bucket, Key: next(), Values: b.values}
		for i := range h.Values {
			h.Values[i] = next()
		}
		if !fn(&h) {
			return false
		}
	}
	return true
}

func (b *batch) copy() {
	x := b.x
	x.mu.RLock()
	defer x.mu.RUnlock()
	stored := false
	for i := range b.want {
		w := &b.want[i]
		if w.implied, w.isPart = impliedTag(w.name); !w.isPart {
			w.number, w.known = x.names.find(appendName(nil, w.name))
			stored = stored || w.known
		}
	}
	b.buckets, b.buf, b.ends = b.buckets[:0], b.buf[:0], b.ends[:0]
	for _, id := range b.ids {
		if x.at[id] == 0 {
			continue // dropped
		}
		bucket, _, key, rest := keyOf(x.rows.get(x.at[id]))
		b.buckets = append(b.buckets, x.buckets.ids[bucket])
		b.text(key, true)
		var tags rowTags
		if stored {
			tags, _, _ = openTags(rest)
		}
		for i := range b.want {
			b.text(b.want[i].of(x, tags, key))
		}
	}
}

func (b *batch) text(text []byte, ok bool) {
	end := -1
	if ok {
		b.buf = append(b.buf, text...)
		end = len(b.buf)
	}
	b.ends = append(b.ends, end)
}

// of returns the value of a row.
func (w *wanted) of(x *Index, tags rowTags, key []byte) (value []byte, ok bool) {
	if w.isPart {
		return w.implied.valueOf(nil, key)
	}
	if !w.known {
		return nil, false
	}
	pair, ok := tags.pair(w.number)
	if !ok {
		return nil, false
	}
	return x.value(pair), true
}
