package tags

import (
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/tags/postings"
)

// Hits are copied before others are let at the index: hitRows of them, or as many as have hitBytes,
// since a key and a value may be long.
const (
	hitRows  = 1024
	hitBytes = 64 << 10
)

// hits calls fn for the rows that were found, without the lock.
func (l *lookup) hits(q *Query, found postings.Set, fn func(*Hit) bool) error {
	b := batch{x: l.x, want: make([]wantedTag, len(q.Want)), values: make([][]byte, len(q.Want))}
	for i, n := range q.Want {
		b.want[i].name = n
	}
	for id := range found.All() {
		if err := l.cancelError(); err != nil {
			return err
		}
		if b.ids = append(b.ids, id); len(b.ids) == hitRows && !b.callAll(fn) {
			return nil
		}
	}
	b.callAll(fn)
	return nil
}

// wantedTag is a tag whose values are wanted.
type wantedTag struct {
	name    TagName
	number  uint32
	known   bool // it is stored, by that number
	implied keyTag
	isPart  bool // it is not stored
}

// batch is hits that are copied together.
type batch struct {
	x      *Index
	want   []wantedTag
	ids    []uint32
	values [][]byte
	pairs  []uint32 // of the rows that are being copied, plus 1; 0 for those that there are not

	buckets []uint64 // of each hit
	buf     []byte   // keys and values
	ends    []int    // of each in buf; -1 for values that there are not
}

// callAll calls fn for the rows of the batch, and empties it. It returns false when fn did.
func (b *batch) callAll(fn func(*Hit) bool) bool {
	for ids := b.ids; len(ids) > 0; {
		ids = ids[b.copy(ids):]
		if !b.call(fn) {
			return false
		}
	}
	b.ids = b.ids[:0]
	return true
}

// call calls fn for the rows that were copied. It returns false when fn did.
func (b *batch) call(fn func(*Hit) bool) bool {
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

// copy copies the first of some rows, and returns how many these are.
func (b *batch) copy(ids []uint32) (copied int) {
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
	for copied < len(ids) && len(b.buf) < hitBytes {
		copied += b.copyRows(ids[copied:min(len(ids), copied+rowsAhead)], stored)
	}
	return copied
}

// rowsAhead is how many rows are asked for before the first is read: they, and the values, lie all
// over the memory.
const rowsAhead = 64

// rowLines are the lines of the cache of most rows.
const rowLines = 2

// copyRows copies rows until there are hitBytes, and returns how many; stored says that a tag is
// wanted that keys do not imply.
func (b *batch) copyRows(ids []uint32, stored bool) (copied int) {
	x := b.x
	var rows [rowsAhead][]byte
	for i, id := range ids {
		if at := x.at[id]; at != 0 { // else it was dropped
			rows[i] = x.rows.Get(at)
			kernel.FetchAll(rows[i][:min(len(rows[i]), rowLines*64)])
		}
	}
	b.pairs = b.pairs[:0]
	for _, row := range rows[:len(ids)] {
		if stored && row != nil {
			b.pairsOf(row)
		}
	}
	pairs := b.pairs
	var length [8]byte
	for i, row := range rows[:len(ids)] {
		if len(b.buf) >= hitBytes {
			return i
		}
		if row == nil {
			continue
		}
		bucket, _, key, _ := keyOf(row)
		b.buckets = append(b.buckets, x.buckets.ids[bucket])
		b.text(key, true)
		for i := range b.want {
			switch w := &b.want[i]; {
			case w.isPart:
				b.text(w.implied.valueOf(length[:], key))
			case !w.known || pairs[i] == 0:
				b.text(nil, false)
			default:
				b.text(x.value(pairs[i]-1), true)
			}
		}
		if stored {
			pairs = pairs[len(b.want):]
		}
	}
	return len(ids)
}

// pairsOf notes for each tag that is wanted the number of the row's, plus 1, and asks for its
// value.
func (b *batch) pairsOf(row []byte) {
	x := b.x
	_, _, _, rest := keyOf(row)
	tags, _, _ := openTags(rest)
	for i := range b.want {
		w, found := &b.want[i], uint32(0)
		if w.known && !w.isPart {
			if pair, ok := tags.pair(w.number); ok {
				found = pair + 1
				kernel.FetchOf(&x.pairs.texts.Get(x.pairs.at[pair])[0])
			}
		}
		b.pairs = append(b.pairs, found)
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
