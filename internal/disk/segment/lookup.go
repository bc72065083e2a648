package segment

import (
	"bytes"
	"fmt"
	"math"
	"sync"

	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/zstd"
	"dalmatiner/internal/disk/blockcache"
	"dalmatiner/internal/disk/hole"
)

// maxRun is the most blocks one read takes; their states are bits of a word.
const maxRun = 64

// visit is what a scan calls for each chunk.
type visit func(bucket uint64, h Hash, chunk int64, data []byte) error

// walk is one call that visits chunks, with its memory.
type walk struct {
	d     *directory
	found damages
	fn    visit
	one   func(chunk int64, data []byte) error // instead of fn, for one series

	leaf  scratch // lent to directory.leaf by a scan
	buf   []byte  // the blocks read last
	first int     // block number of the first block in buf
	count int     // blocks in buf; 0 = none
	bad   uint64  // bit i: block first+i is damaged
	read  int64   // bytes

	tells    bool                    // visitors are called without data for chunks that are damaged
	lostLeaf func([]hole.Mark)       // called for damaged leaves of a scan, unless it is nil
	lostOf   func(first, past int64) // the same for the chunks of one series

	blocks *blockcache.Cache // nil: none are kept of what is read
	kept   []byte            // the content of block keptAt, from blocks; nil for none
	keptAt int

	unpacked   []byte // the content of block unpackedAt, if has is set
	unpackedAt int
	has        bool

	aside *asideCache // nil: none were read out of turn
}

// walks is shared by all readers because a node has many segments and few calls
// under way. What is put back holds nothing but memory, at most readSize and
// two blocks each.
var walks = sync.Pool{New: func() any { return new(walk) }}

// walk begins a walk. release must be called.
func (r *Reader) walk() (*walk, error) {
	d, err := r.directory()
	if err != nil {
		return nil, err
	}
	return d.walk(), nil
}

func (d *directory) walk() *walk {
	w := walks.Get().(*walk)
	w.d = d
	return w
}

func (w *walk) release() {
	w.aside.forget()
	*w = walk{leaf: w.leaf, buf: w.buf, unpacked: w.unpacked, aside: w.aside}
	walks.Put(w)
}

// Chunks calls fn for every chunk of a series with a number in [from, to), in ascending
// order. data is valid during the call, and must not be written to. An error of fn ends the
// walk and is returned as it is.
func (r *Reader) Chunks(bucket uint64, h Hash, from, to int64,
	fn func(chunk int64, data []byte) error) error {
	return r.chunks(bucket, h, from, to, fn, nil)
}

func (r *Reader) chunks(bucket uint64, h Hash, from, to int64,
	fn func(chunk int64, data []byte) error, lost func(first, past int64)) error {
	if !r.footer().info.reaches(from, to) {
		return nil
	}
	w, err := r.walk()
	if err != nil {
		return err
	}
	w.one, w.blocks, w.lostOf = fn, r.file.files.blocks, lost
	defer w.release()
	var a, b [fenceSize]byte
	low, high := appendFence(a[:0], bucket, &h, from), appendFence(b[:0], bucket, &h, to)
	d := w.d
	for i := d.search(low); i < len(d.leaves); i++ {
		l, err := d.leaf(i, nil)
		if err == nil {
			err = w.chunks(i, l, bucket, &h, from, to)
		} else if err = w.found.add(err); err == nil && lost != nil {
			lost(d.lostOf(i, &r.footer().info, bucket, &h))
		}
		if err != nil {
			return err
		}
		if i+1 < len(d.leaves) && bytes.Compare(d.fence(i+1), high) >= 0 {
			break
		}
	}
	return w.found.err()
}

// chunks visits the chunks of a series that leaf i holds.
func (w *walk) chunks(i int, l leaf, bucket uint64, h *Hash, from, to int64) error {
	row, ok := l.row(bucket, h)
	if !ok {
		return nil
	}
	first, past := l.rowFirst(row), l.rowPast(row)
	first = l.seek(first, past, from)
	past = l.seek(first, past, to)
	return w.deliver(i, l, row, first, past)
}

// Each calls fn for every chunk of the segment, in the order of bucket, hash and chunk
// number. data is valid during the call, and must not be written to. An error of fn ends the
// walk and is returned as it is. Of what it reads it leaves only the directory in memory.
func (r *Reader) Each(fn func(bucket uint64, h Hash, chunk int64, data []byte) error) error {
	w, err := r.walk()
	if err != nil {
		return err
	}
	w.fn = fn
	defer w.release()
	return w.leaves(0, math.MaxUint64, func(i int, l leaf) error {
		return w.deliver(i, l, 0, 0, l.entries())
	})
}

// Range is Each for the chunks of one bucket with a number in [first, past).
func (r *Reader) Range(bucket uint64, first, past int64,
	fn func(bucket uint64, h Hash, chunk int64, data []byte) error) error {
	if !r.footer().info.reaches(first, past) {
		return nil
	}
	w, err := r.walk()
	if err != nil {
		return err
	}
	return w.scan(bucket, first, past, fn)
}

// Entries calls fn with the number and the length in bytes of every chunk of the bucket, in
// the order of hash and number. It does not read the chunks.
func (r *Reader) Entries(bucket uint64, fn func(chunk int64, bytes int)) error {
	w, err := r.walk()
	if err != nil {
		return err
	}
	defer w.release()
	return w.leaves(bucket, bucket, func(_ int, l leaf) error {
		for i := range l.entries() {
			e := l.entry(i)
			fn(e.chunk, int(e.length))
		}
		return nil
	})
}

func lastHash() (h Hash) {
	for i := range h {
		h[i] = 0xff
	}
	return h
}

// scan visits the chunks of a bucket numbered [first, past), and ends the walk.
func (w *walk) scan(bucket uint64, first, past int64, fn visit) error {
	w.fn = fn
	defer w.release()
	return w.leaves(bucket, bucket, func(i int, l leaf) error {
		for row := range l.rows() {
			lo := l.seek(l.rowFirst(row), l.rowPast(row), first)
			if err := w.deliver(i, l, row, lo, l.seek(lo, l.rowPast(row), past)); err != nil {
				return err
			}
		}
		return nil
	})
}

// leaves calls fn for every intact leaf of the buckets [from, to]. What fn
// finds damaged it adds to w.found.
func (w *walk) leaves(from, to uint64, fn func(i int, l leaf) error) error {
	low := appendFence(nil, from, new(Hash), math.MinInt64)
	last := lastHash()
	high := appendFence(nil, to, &last, math.MaxInt64)
	for i := w.d.search(low); i < len(w.d.leaves) && bytes.Compare(w.d.fence(i), high) <= 0; i++ {
		l, err := w.d.leaf(i, &w.leaf)
		switch {
		case err != nil:
			if err = w.found.add(err); err == nil && w.lostLeaf != nil {
				w.lostLeaf(w.d.lostIn(i, &w.d.foot.info))
			}
		case l.bucket() >= from && l.bucket() <= to:
			err = fn(i, l)
		}
		if err != nil {
			return err
		}
	}
	return w.found.err()
}

// deliver visits entries [first, past) of leaf n, which start in row. Damaged
// chunks are left out and noted; an error is one of the visitor or of the disk.
func (w *walk) deliver(n int, l leaf, row, first, past int) error {
	bucket, rowPast := l.bucket(), l.rowPast(row)
	hash := Hash(l.rowHash(row))
	for i := first; i < past; i++ {
		if i == rowPast {
			row++
			hash, rowPast = Hash(l.rowHash(row)), l.rowPast(row)
		}
		e := l.entry(i)
		data, err := w.chunk(n, l, e, i, past)
		switch {
		case err != nil:
		case data == nil && w.lostOf != nil:
			w.lostOf(e.chunk, e.chunk+1)
		case data == nil && !w.tells:
			continue
		case w.one != nil:
			err = w.one(e.chunk, data)
		default:
			err = w.fn(bucket, hash, e.chunk, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chunk returns the data of entry i of leaf n, which is e, or nil where it is
// damaged. What it has to read it reads together with what the entries up to
// past want.
func (w *walk) chunk(n int, l leaf, e entry, i, past int) ([]byte, error) {
	b, limit := int(e.block), int(w.d.foot.blocks[kindData])
	if b >= limit {
		return nil, w.badEntry(n, e)
	}
	if !w.holds(b) {
		var err error
		switch {
		case w.keeps(b):
			w.fetch(l, i, past)
		case w.outOfTurn(b):
			err = w.loadAside(b)
		default:
			err = w.load(b, w.runEnd(l, i, past, limit))
		}
		if err != nil {
			return nil, err
		}
	}
	block := w.payload(b)
	if block == nil {
		return nil, nil
	}
	if int(e.off)+int(e.length) > len(block) {
		return nil, w.badEntry(n, e)
	}
	return block[e.off:][:e.length:e.length], nil
}

// mostFetched is how many bytes of a block in memory are asked for at once: about what the
// processor has under way at a time.
const mostFetched = 2 << 10

// fetch asks for the chunks of the entries from i on that lie in the kept block, before the
// first of them is read: one after the other they would wait for memory each time.
func (w *walk) fetch(l leaf, i, past int) {
	for left := mostFetched; i < past && left > 0; i++ {
		e := l.entry(i)
		end := int(e.off) + int(e.length)
		if int(e.block) != w.keptAt || end > len(w.kept) {
			return
		}
		kernel.FetchAll(w.kept[e.off:end])
		left -= int(e.length)
	}
}

// holds reports whether a block is at hand: among those read last, the one that was found in
// memory last, or one that was read out of turn.
func (w *walk) holds(block int) bool {
	if block >= w.first && block < w.first+w.count || w.kept != nil && w.keptAt == block {
		return true
	}
	_, ok := w.aside.find(block)
	return ok
}

// keeps reports whether a block is in memory, and takes it.
func (w *walk) keeps(block int) bool {
	if w.blocks == nil {
		return false
	}
	payload := w.blocks.Get(w.d.file.block(block))
	if payload == nil {
		return false
	}
	w.kept, w.keptAt = payload, block
	return true
}

// payload returns the content of a block that is at hand, nil where it is damaged.
func (w *walk) payload(block int) []byte {
	if w.kept != nil && w.keptAt == block {
		return w.kept
	}
	if block < w.first || block >= w.first+w.count {
		data, _ := w.aside.find(block)
		return data
	}
	if w.bad>>(block-w.first)&1 != 0 {
		return nil
	}
	if w.has && w.unpackedAt == block {
		return w.unpacked
	}
	at := w.d.offset(block) - w.d.offset(w.first)
	stored := w.buf[at : at+w.d.size(block)-crcSize]
	if stored[0] == zstd.Plain {
		return stored[1:]
	}
	data, buf, err := zstd.Content(w.unpacked, stored, maxBlock)
	w.unpacked, w.unpackedAt, w.has = buf, block, err == nil
	if err != nil {
		w.bad |= 1 << (block - w.first)
		w.found.note(w.d.malformed(block, kindData, err.Error()))
		return nil
	}
	if w.blocks != nil {
		w.blocks.Offer(w.d.file.block(block), data)
	}
	return data
}

// badEntry notes that an entry of leaf n points to where no data is.
func (w *walk) badEntry(n int, e entry) error {
	return w.found.add(w.d.malformed(w.d.foot.first(kindLeaf)+n, kindLeaf,
		fmt.Sprintf("an entry points to %d bytes at %d of data block %d, which does not hold them",
			e.length, e.off, e.block)))
}

// runEnd returns the block behind those that entries i… of a leaf want one
// after the other, within the limits of one read. It passes by entries that share
// a chunk from before. The first is below limit.
func (w *walk) runEnd(l leaf, i, past, limit int) int {
	first := int(l.entry(i).block)
	end := first + 1
	for i++; i < past; i++ {
		b := int(l.entry(i).block)
		if b < end { // read already, or out of turn
			continue
		}
		if b != end || b >= limit || end-first == maxRun ||
			w.d.offset(end+1)-w.d.offset(first) > readSize {
			break
		}
		end++
	}
	return end
}

// load reads data blocks [first, end) in one read and verifies each of them.
func (w *walk) load(first, end int) error {
	d := w.d
	w.count, w.has = 0, false
	n := int(d.offset(end) - d.offset(first))
	if cap(w.buf) < n {
		w.buf = make([]byte, n)
	}
	w.buf = w.buf[:n]
	w.read += int64(n)
	if err := w.d.file.readAt(w.buf, d.offset(first), kindData.String()); err != nil {
		if end > first+1 && ReadFailed(err) {
			return w.load(first, first+1) // it may be another of the blocks
		}
		if err := w.found.add(err); err != nil {
			return err
		}
		w.first, w.count, w.bad = first, end-first, math.MaxUint64
		return nil
	}
	w.first, w.count, w.bad = first, end-first, 0
	for i := first; i < end; i++ {
		src := w.buf[d.offset(i)-d.offset(first) : d.offset(i+1)-d.offset(first)]
		payload, err := w.d.check(i, kindData, src)
		switch {
		case err != nil:
			w.bad |= 1 << (i - first)
			if err := w.found.add(err); err != nil {
				return err
			}
		case w.blocks != nil && payload[0] == zstd.Plain:
			w.blocks.Offer(w.d.file.block(i), payload[1:])
		}
	}
	return nil
}
