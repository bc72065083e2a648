package segment

import (
	"encoding/binary"
	"math"

	"dalmatiner/internal/codec/zstd"
	"dalmatiner/internal/disk/dedup"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// groupSize is where a group of chunks ends: what compresses is stored in one block, and
	// what does not in blocks of blockSize, as a look-up then reads less.
	groupSize = 32 << 10

	// packedShare is how many percent of a group may be left of it where it is stored
	// compressed: for less it does not pay to decompress it at every read.
	packedShare = 98
)

// compressor makes the chunks of a segment smaller that stays: equal ones are stored once, and
// others compressed as a group.
type compressor struct {
	equal *dedup.Table
	enc   *zstd.Encoder

	group   []byte   // bytes of the chunks in the open group
	owners  []uint32 // their entries
	packed  []byte   // scratch memory
	doubt   bool     // the group before was not worth compressing
	again   vfs.File // the file, to read what was written
	scratch scratch
}

// openBlock stands for the number of a block that is not known yet.
const openBlock = math.MaxUint32

// addCompressed adds a chunk to the group, or lets it share the bytes of another one, and
// returns its entry. An entry that shares has no length, and the number of the other one
// instead of a block.
func (w *Writer) addCompressed(of dedup.Series, chunk int64, data []byte) (entry, error) {
	c := w.compress
	own := uint32(len(w.entries))
	if owner, ok := c.equal.Find(of, data, own, w.readBack); ok {
		return entry{chunk: chunk, block: owner}, nil
	}
	if len(c.group) > 0 && len(c.group)+len(data) > groupSize {
		if err := w.endGroup(); err != nil {
			return entry{}, err
		}
	}
	e := entry{chunk: chunk, block: openBlock, off: uint16(len(c.group)), length: uint16(len(data))}
	c.group = append(c.group, data...)
	c.owners = append(c.owners, own)
	return e, nil
}

// endGroup writes the open group and says where its chunks are.
func (w *Writer) endGroup() error {
	c := w.compress
	defer func() { c.group, c.owners = c.group[:0], c.owners[:0] }()
	if len(c.group) == 0 {
		return nil
	}
	if c.pack() {
		for _, i := range c.owners {
			w.entries[i].block = uint32(len(w.offsets))
		}
		w.buf = append(w.buf, c.packed...)
		return w.endBlock(kindData)
	}
	for _, i := range c.owners {
		e := &w.entries[i]
		data := c.group[e.off:][:e.length]
		if err := w.addPlain(e, data); err != nil {
			return err
		}
	}
	return w.endBlock(kindData)
}

// pack compresses the group, and reports whether that pays. Behind a group for which it did not
// it looks quickly first, as groups are alike.
func (c *compressor) pack() (pays bool) {
	if c.doubt && !c.enc.Shrinks(c.group) {
		return false
	}
	defer func() { c.doubt = !pays }()
	c.packed = append(c.packed[:0], zstd.Packed, 0) // nothing is plain
	c.packed = binary.AppendUvarint(c.packed, uint64(len(c.group)))
	c.packed = c.enc.Append(c.packed, c.group)
	return len(c.packed) <= len(c.group)*packedShare/100
}

// addPlain adds a chunk to the open data block and sets where it is.
func (w *Writer) addPlain(e *entry, data []byte) error {
	if open := len(w.buf) - w.start; open > 0 && open+len(data) > blockSize-crcSize {
		if err := w.endBlock(kindData); err != nil {
			return err
		}
	}
	if len(w.buf) == w.start {
		w.buf = append(w.buf, zstd.Plain)
	}
	e.block, e.off, e.length = uint32(len(w.offsets)), uint16(len(w.buf)-w.start-1), uint16(len(data))
	w.buf = append(w.buf, data...)
	return nil
}

// endData ends the open group and the open data block.
func (w *Writer) endData() error {
	if w.compress != nil && len(w.compress.group) > 0 {
		return w.endGroup()
	}
	if len(w.buf) > w.start {
		return w.endBlock(kindData)
	}
	return nil
}

// readBack returns the bytes of an entry that was added before if they are of that length, nil
// where they are not or cannot be read.
func (w *Writer) readBack(owner uint32, length int) []byte {
	c, e := w.compress, w.entries[owner]
	switch {
	case int(e.length) != length:
		return nil
	case e.block == openBlock:
		return c.group[e.off:][:e.length]
	}
	at := w.offsets[e.block]
	end := w.off + int64(w.start)
	if int(e.block)+1 < len(w.offsets) {
		end = w.offsets[e.block+1]
	}
	block, err := w.writtenBytes(at, int(end-at))
	if err != nil || len(block) < crcSize {
		return nil
	}
	data, buf, err := zstd.Content(c.scratch.content, block[:len(block)-crcSize], maxBlock)
	c.scratch.content = buf
	if err != nil || int(e.off)+length > len(data) {
		return nil
	}
	return data[e.off:][:length]
}

// writtenBytes returns bytes of the file that may not be written yet.
func (w *Writer) writtenBytes(at int64, n int) ([]byte, error) {
	if at >= w.off {
		return w.buf[at-w.off:][:n], nil
	}
	c := w.compress
	if c.again == nil {
		f, err := w.fs.Open(w.path)
		if err != nil {
			return nil, err
		}
		c.again = f
	}
	if cap(c.scratch.stored) < n {
		c.scratch.stored = make([]byte, n)
	}
	c.scratch.stored = c.scratch.stored[:n]
	_, err := c.again.ReadAt(c.scratch.stored, at)
	return c.scratch.stored, err
}

// settle sets the places of the entries that share those of others, and frees what is needed
// no more.
func (w *Writer) settle() error {
	if w.compress == nil {
		return nil
	}
	for i := range w.entries {
		if e := &w.entries[i]; e.length == 0 {
			owner := w.entries[e.block]
			e.block, e.off, e.length = owner.block, owner.off, owner.length
		}
	}
	return w.compress.close()
}

// release lets another file have the encoder.
func (c *compressor) release() { c.enc.Release() }

func (c *compressor) close() error {
	c.equal, c.group, c.owners = nil, nil, nil
	if c.again == nil {
		return nil
	}
	f := c.again
	c.again = nil
	return f.Close()
}
