package tags

import "encoding/binary"

const (
	// blockMark begins a block. No record of the log begins with it, as files have both.
	blockMark = 0xb1

	// blockBytes is how long a block is before it ends.
	blockBytes = 128 << 10

	// longRow is the row that is given as changes, because a block is to stay short.
	longRow = 256 << 10

	// blockLook is how many ids are looked at before others are let at the index.
	blockLook = 1 << 14
)

// Blocks gives the whole state, what is remembered of removals too, in the form that a Loader
// takes: in blocks of rows, each of which can be read without the others, and what is too long for
// one as changes. Both are valid during the call, and a block is given with the number of its rows.
// It ends with the first error, which it returns.
//
// What is applied or dropped meanwhile may be in it or not.
func (x *Index) Blocks(block func(b []byte, rows int) error, change func(*Change) error) error {
	w := blockWriter{}
	for id, more := 0, true; more; {
		id, more = w.fill(x, id)
		for rest := w.long; len(rest) > 0; {
			var err error
			if rest, err = ParseChange(&w.change, rest); err != nil {
				return err
			}
			if err = change(&w.change); err != nil {
				return err
			}
		}
		if len(w.out) > 0 {
			if err := block(w.out, w.n); err != nil {
				return err
			}
		}
	}
	return nil
}

// locals gives what a block mentions numbers of its own.
type locals struct {
	of   []uint32 // local number + 1 of each number of the index
	list []uint32 // numbers of the index
}

func (l *locals) get(number uint32) (local uint32, fresh bool) {
	if n := int(number) + 1; n > len(l.of) {
		l.of = append(l.of, make([]uint32, n-len(l.of))...)
	}
	if at := l.of[number]; at > 0 {
		return at - 1, false
	}
	l.list = append(l.list, number)
	l.of[number] = uint32(len(l.list))
	return uint32(len(l.list)) - 1, true
}

func (l *locals) reset() {
	for _, number := range l.list {
		l.of[number] = 0
	}
	l.list = l.list[:0]
}

// blockWriter is a block under construction.
type blockWriter struct {
	nodes, buckets, collections, metrics, names, pairs locals

	rows  []byte
	n     int    // rows
	texts int    // bytes of what they mention
	clock uint64 // the last one

	row   row
	codec rowCodec

	out    []byte // the block
	long   []byte // changes that make long rows
	change Change
}

// fill makes a block of rows from an id on, and returns where to go on.
func (w *blockWriter) fill(x *Index, id int) (next int, more bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, l := range []*locals{&w.nodes, &w.buckets, &w.collections, &w.metrics, &w.names, &w.pairs} {
		l.reset()
	}
	w.rows, w.n, w.texts, w.clock, w.out, w.long = w.rows[:0], 0, 0, 0, w.out[:0], w.long[:0]
	past := min(id+blockLook, len(x.at))
	for ; id < past && len(w.rows)+w.texts+len(w.long) < blockBytes; id++ {
		if x.at[id] == 0 {
			continue
		}
		w.codec.decode(&w.row, x.rows.Get(x.at[id]), x.nodes.ids)
		if textBytes(x, &w.row) > longRow {
			w.long = appendRow(w.long, &w.change, &w.row, w.codec.timestamps, indexTexts{x})
		} else {
			w.add(x)
		}
	}
	if w.n > 0 {
		w.end(x)
	}
	return id, id < len(x.at)
}

// textBytes returns the length of the tags of a row.
func textBytes(x *Index, r *row) (n int) {
	for i := range r.tags {
		g := &r.tags[i]
		if n += len(x.names.text(g.name)); !g.removed {
			n += len(x.value(g.pair))
		}
	}
	return n
}

// add adds the row that was decoded.
func (w *blockWriter) add(x *Index) {
	r, timestamps := &w.row, w.codec.timestamps
	b := appendText(w.rows, r.key)
	b = w.number(b, &w.buckets, r.bucket, nil)
	b = w.number(b, &w.collections, r.collection, &x.collections)
	var flags byte
	regs := [...]struct {
		flag byte
		timestamp
	}{{rowSeen, r.seen}, {rowLeft, r.left}, {rowCleared, r.cleared}, {rowNamed, r.named}}
	for _, g := range regs {
		if g.some {
			flags |= g.flag
		}
	}
	b = binary.AppendUvarint(append(b, flags), uint64(len(timestamps)))
	for _, s := range timestamps {
		b = binary.AppendVarint(b, int64(s.clock-w.clock))
		w.clock = s.clock
		b = w.number(b, &w.nodes, x.nodes.of[s.node], nil)
	}
	for _, g := range regs {
		if g.some {
			b = appendTimestamp(b, timestamps, g.timestamp)
		}
	}
	if r.named.some {
		b = w.number(b, &w.metrics, r.name, &x.metrics)
	}
	b = binary.AppendUvarint(b, uint64(len(r.tags)))
	for i := range r.tags {
		g := &r.tags[i]
		name, fresh := w.names.get(g.name)
		if fresh {
			w.texts += len(x.names.text(g.name)) + 4
		}
		if g.removed {
			b = binary.AppendUvarint(b, uint64(name)<<1|1)
		} else {
			pair, fresh := w.pairs.get(g.pair)
			if fresh {
				w.texts += len(x.value(g.pair)) + 4
			}
			b = binary.AppendUvarint(b, uint64(pair)<<1)
		}
		b = appendTimestamp(b, timestamps, g.timestamp)
	}
	w.rows = b
	w.n++
}

// number appends the local number of one of the index.
func (w *blockWriter) number(dst []byte, l *locals, number uint32, texts *dict) []byte {
	local, fresh := l.get(number)
	if fresh && texts != nil {
		w.texts += len(texts.text(number)) + 4
	}
	return binary.AppendUvarint(dst, uint64(local))
}

// appendTimestamp appends which of the timestamps of a row one is, where it has several.
func appendTimestamp(dst []byte, timestamps []timestamp, s timestamp) []byte {
	if len(timestamps) == 1 {
		return dst
	}
	at := 0
	for timestamps[at] != s {
		at++
	}
	return binary.AppendUvarint(dst, uint64(at))
}

// end puts what the rows mention in front of them.
func (w *blockWriter) end(x *Index) {
	b := append(w.out, blockMark)
	for _, ids := range []struct {
		l  *locals
		of []uint64
	}{{&w.nodes, x.nodes.ids}, {&w.buckets, x.buckets.ids}} {
		b = binary.AppendUvarint(b, uint64(len(ids.l.list)))
		for _, number := range ids.l.list {
			b = binary.LittleEndian.AppendUint64(b, ids.of[number])
		}
	}
	for _, texts := range []struct {
		l *locals
		d *dict
	}{{&w.collections, &x.collections}, {&w.metrics, &x.metrics}} {
		b = binary.AppendUvarint(b, uint64(len(texts.l.list)))
		for _, number := range texts.l.list {
			b = appendText(b, texts.d.text(number))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(w.names.list)))
	for _, number := range w.names.list {
		n := parseName(x.names.text(number))
		b = appendText(appendText(b, n.Namespace), n.Name)
	}
	b = binary.AppendUvarint(b, uint64(len(w.pairs.list)))
	for _, number := range w.pairs.list {
		of, value := splitPair(x.pairs.text(number))
		name, _ := w.names.get(of)
		b = appendText(binary.AppendUvarint(b, uint64(name)), value)
	}
	b = binary.AppendUvarint(b, uint64(w.n))
	w.out = append(b, w.rows...)
}
