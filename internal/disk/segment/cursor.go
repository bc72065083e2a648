package segment

import (
	"bytes"
	"errors"

	"dalmatiner/internal/codec/kernel"
)

// Cursor walks the chunks of one series in a segment, in ascending order, and reads only
// those that it is asked for. Open begins a walk and Close ends it. The zero value is ready
// for Open, and so is a closed Cursor. It must not be used by two goroutines at once.
type Cursor struct {
	w      *walk
	bucket uint64
	hash   Hash
	to     int64

	next    int // leaf
	l       leaf
	i, past int // entries of the leaf
	entry   entry
	ok      bool

	lost []Gap
}

// Gap is a range of chunk numbers [First, Past) of a series. Some or all of these chunks may
// have been in a segment, and are damaged.
type Gap struct{ First, Past int64 }

// Open moves the cursor to the first chunk of a series with a number in [from, to). Damage
// in the index below the directory is no error here: Close returns it. After an error the
// cursor is closed.
func (c *Cursor) Open(r *Reader, bucket uint64, h Hash, from, to int64) error {
	if err := c.Find(r, bucket, h, from, to); err != nil {
		return err
	}
	return c.Stand(from)
}

// Find is the first half of Open, Stand the second: who finds many before one waits for memory
// once.
func (c *Cursor) Find(r *Reader, bucket uint64, h Hash, from, to int64) error {
	*c = Cursor{bucket: bucket, hash: h, to: to}
	if !r.footer().info.reaches(from, to) {
		return nil
	}
	d, err := r.directory()
	if err != nil || !d.holds(bucket, &h) {
		return err
	}
	c.w = d.walk()
	c.w.blocks = r.file.files.blocks
	var buf [fenceSize]byte
	c.next = d.search(appendFence(buf[:0], bucket, &h, from))
	if l := d.leaves[c.next].Load(); l != nil {
		kernel.FetchAll((*l)[:min(len(*l), 4*64)]) // the head and some rows
	}
	return nil
}

// Stand moves the cursor to the first chunk numbered from or above, not below that of Find.
func (c *Cursor) Stand(from int64) error {
	if c.ok = false; c.w == nil {
		return nil
	}
	d := c.w.d
	var buf [fenceSize]byte
	for ; c.next < len(d.leaves); c.next++ {
		if bytes.Compare(d.fence(c.next), appendFence(buf[:0], c.bucket, &c.hash, c.to)) >= 0 {
			return nil
		}
		if d.leaves[c.next].Load() == nil {
			n := d.foot.first(kindLeaf) + c.next
			c.w.read += d.offset(n+1) - d.offset(n)
		}
		l, err := d.leaf(c.next, nil)
		if err != nil {
			if err := c.w.found.add(err); err != nil {
				_, damage := c.Close()
				return errors.Join(err, damage)
			}
			c.lose(d.lostOf(c.next, &d.foot.info, c.bucket, &c.hash))
			continue
		}
		row, ok := l.row(c.bucket, &c.hash)
		if !ok {
			continue
		}
		c.l = l
		c.past = l.seek(l.rowFirst(row), l.rowPast(row), c.to)
		if c.i = l.seek(l.rowFirst(row), c.past, from); c.i < c.past {
			c.entry, c.ok = l.entry(c.i), true
			return nil
		}
	}
	return nil
}

// lose notes chunks of a leaf that is damaged.
func (c *Cursor) lose(first, past int64) {
	if past = min(past, c.to); first < past {
		c.lost = append(c.lost, Gap{first, past})
	}
}

// LostGaps returns the ranges that the cursor has skipped because a part of the index is
// damaged: nobody knows whether chunks were there. The slice is the caller's. After Close it
// is empty.
func (c *Cursor) LostGaps() []Gap { return c.lost }

// Chunk returns the number of the chunk that the cursor stands at. ok is false behind the
// last chunk.
func (c *Cursor) Chunk() (number int64, ok bool) { return c.entry.chunk, c.ok }

// Length returns how many bytes the chunk has that the cursor stands at.
func (c *Cursor) Length() int { return int(c.entry.length) }

// Advance moves the cursor to the first chunk numbered from or above. It never goes back.
func (c *Cursor) Advance(from int64) error {
	if !c.ok || c.entry.chunk >= from {
		return nil
	}
	if c.i = c.l.seek(c.i, c.past, from); c.i < c.past {
		c.entry = c.l.entry(c.i)
		return nil
	}
	c.next++
	return c.Stand(from)
}

// Data returns the bytes of the chunk that the cursor stands at, nil if they are damaged.
// They are valid until the next Data or Close, and must not be written to. There must be a
// chunk (see Chunk). until is a hint: the caller will ask for the chunks of the series below
// that number as well. The error is no damage: Close returns that.
func (c *Cursor) Data(until int64) ([]byte, error) {
	past := c.i + 1
	if !c.w.holds(int(c.entry.block)) {
		past = c.l.seek(past, c.past, until)
	}
	return c.w.chunk(c.next, c.l, c.entry, c.i, past)
}

// Fetch asks for what Data will return for the chunks below until, where that is in memory.
func (c *Cursor) Fetch(until int64) {
	if c.ok && c.w.keeps(int(c.entry.block)) {
		c.w.fetch(c.l, c.i, c.l.seek(c.i+1, c.past, until))
	}
}

// Close ends the walk and gives its memory back. It returns how many bytes came from the
// file, and the damage that was met since Open, as the methods of a Reader do.
func (c *Cursor) Close() (read int64, err error) {
	if c.w == nil {
		return 0, nil
	}
	read, err = c.w.read, c.w.found.err()
	c.w.release()
	*c = Cursor{}
	return read, err
}
