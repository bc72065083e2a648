package tags

import (
	"encoding/binary"
	"errors"

	"dalmatiner/internal/model/metric"
)

// ErrBlock is returned for bytes that are no block of rows.
var ErrBlock = errors.New("malformed block of tags")

// IsBlock reports whether bytes begin as a block of rows does.
func IsBlock(src []byte) bool { return len(src) > 0 && src[0] == blockMark }

// Block is a block of rows that was parsed. Its texts share the memory of the bytes.
type Block struct {
	nodes, buckets       []uint64
	collections, metrics [][]byte
	names                []TagName
	pairs                []blockPair

	rows  int // not read yet
	rest  fields
	clock uint64 // the last one

	timestamps []timestamp // of the row that was read last
	named      []int       // rows left when a tag of each name was read last
}

type blockPair struct {
	name  uint32
	value []byte
}

const maxBlock = 1 << 20 // of anything in a block

// Parse reads what the rows of a block mention, and not the rows. The error is ErrBlock.
func (b *Block) Parse(src []byte) error {
	if !IsBlock(src) {
		return ErrBlock
	}
	f := fields{rest: src[1:]}
	b.nodes, b.buckets = f.ids(b.nodes[:0]), f.ids(b.buckets[:0])
	b.collections = f.texts(b.collections[:0], 1, MaxCollection)
	b.metrics = f.texts(b.metrics[:0], 1, metric.MaxKey)
	b.names, b.pairs = b.names[:0], b.pairs[:0]
	for n := f.number(maxBlock); n > 0 && !f.bad; n-- {
		name := TagName{Namespace: f.text(MaxNamespace), Name: f.text(MaxTagName)}
		f.check(len(name.Name) > 0 && !IsImplied(name.Namespace, name.Name))
		b.names = append(b.names, name)
	}
	for n := f.number(maxBlock); n > 0 && !f.bad; n-- {
		b.pairs = append(b.pairs, blockPair{name: f.numberBelow(len(b.names)), value: f.text(MaxValue)})
	}
	b.rows, b.clock = int(f.number(maxBlock)), 0
	b.rest, b.named = f, append(b.named[:0], make([]int, len(b.names))...)
	if f.bad || b.rows == 0 {
		return ErrBlock
	}
	return nil
}

// Check reads all rows, and returns ErrBlock where one is malformed.
func (b *Block) Check() error {
	var r row
	for b.rows > 0 {
		if err := b.next(&r); err != nil {
			return err
		}
	}
	return nil
}

// next sets r to the next row, whose numbers are those of the block. Its tags have the order in
// which they were written.
func (b *Block) next(r *row) error {
	f := &b.rest
	*r = row{
		key:        f.text(metric.MaxKey),
		bucket:     f.numberBelow(len(b.buckets)),
		collection: f.numberBelow(len(b.collections)),
		tags:       r.tags[:0],
	}
	flags := f.byte()
	b.timestamps = b.timestamps[:0]
	for n := f.number(maxBlock); n > 0 && !f.bad; n-- {
		b.clock += f.varint()
		if node := f.numberBelow(len(b.nodes)); !f.bad {
			b.timestamps = append(b.timestamps, timestamp{b.clock, b.nodes[node], true})
		}
	}
	for i, g := range []*timestamp{&r.seen, &r.left, &r.cleared, &r.named} {
		if flags&(1<<i) != 0 {
			*g = b.timestamp(f)
		}
	}
	if r.named.some {
		r.name = f.numberBelow(len(b.metrics))
	}
	tags := int(f.number(maxBlock))
	for range tags {
		var g register
		if ref := f.number(2*maxBlock + 1); ref&1 != 0 {
			g.removed, g.name = true, f.checked(ref>>1, len(b.names))
		} else if g.pair = f.checked(ref>>1, len(b.pairs)); !f.bad {
			g.name = b.pairs[g.pair].name
		}
		g.timestamp = b.timestamp(f)
		if f.bad || b.named[g.name] == b.rows {
			break
		}
		b.named[g.name] = b.rows
		r.tags = append(r.tags, g)
	}
	b.rows--
	f.check(len(r.tags) == tags && len(r.key) > 0 && flags < rowOneTimestamp &&
		len(b.timestamps) > 0 && r.isSwept() && (b.rows > 0 || len(f.rest) == 0))
	if f.bad {
		b.rows = 0
		return ErrBlock
	}
	return nil
}

// timestamp reads which of the timestamps of the row is meant.
func (b *Block) timestamp(f *fields) timestamp {
	at := uint32(0)
	if len(b.timestamps) != 1 {
		at = f.numberBelow(len(b.timestamps))
	}
	if f.bad {
		return timestamp{}
	}
	return b.timestamps[at]
}

// isSwept reports whether a row has nothing that other registers hide.
func (r *row) isSwept() bool {
	if r.left.some && (r.seen.some && r.seen.compare(r.left) <= 0 || r.cleared.some &&
		r.cleared.compare(r.left) <= 0 || r.named.some && r.named.compare(r.left) <= 0) {
		return false
	}
	if !r.seen.some {
		return r.left.some && !r.cleared.some && !r.named.some && len(r.tags) == 0
	}
	for i := range r.tags {
		g := &r.tags[i]
		order := g.compare(r.cleared)
		if g.compare(r.left) <= 0 || order < 0 || order == 0 && g.removed {
			return false
		}
	}
	return true
}

// The texts that the numbers of a row mean.
func (b *Block) bucketOf(n uint32) uint64      { return b.buckets[n] }
func (b *Block) collectionOf(n uint32) []byte  { return b.collections[n] }
func (b *Block) metricOf(n uint32) []byte      { return b.metrics[n] }
func (b *Block) tagNameOf(n uint32) TagName    { return b.names[n] }
func (b *Block) tagValueOf(pair uint32) []byte { return b.pairs[pair].value }

func (f *fields) check(ok bool) {
	if !ok {
		f.bad, f.rest = true, nil
	}
}

func (f *fields) byte() (v byte) {
	if f.check(len(f.rest) > 0); !f.bad {
		v, f.rest = f.rest[0], f.rest[1:]
	}
	return v
}

// varint reads a number with a sign, in its shortest form.
func (f *fields) varint() uint64 {
	v, n := binary.Varint(f.rest)
	if f.check(n > 0 && (n == 1 || f.rest[n-1] != 0)); f.bad {
		return 0
	}
	f.rest = f.rest[n:]
	return uint64(v)
}

// numberBelow reads a number below n.
func (f *fields) numberBelow(n int) uint32 { return f.checked(f.number(maxBlock), n) }

func (f *fields) checked(v uint64, n int) uint32 {
	if f.check(v < uint64(n)); f.bad {
		return 0
	}
	return uint32(v)
}

func (f *fields) ids(dst []uint64) []uint64 {
	n := f.number(maxBlock)
	if f.check(n <= uint64(len(f.rest))/8); f.bad {
		return dst
	}
	for range n {
		dst = append(dst, binary.LittleEndian.Uint64(f.rest))
		f.rest = f.rest[8:]
	}
	return dst
}

// texts reads a list of texts that have between least and most bytes.
func (f *fields) texts(dst [][]byte, least, most uint64) [][]byte {
	for n := f.number(maxBlock); n > 0 && !f.bad; n-- {
		text := f.text(most)
		f.check(uint64(len(text)) >= least)
		dst = append(dst, text)
	}
	return dst
}
