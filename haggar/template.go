package haggar

import (
	"encoding/binary"
	"math/rand/v2"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

// Sizes of what is written at once.
const (
	// writeSize is the least bytes of a write inside a flush, chosen so that a
	// piece is still in the second-level cache when the kernel copies it.
	writeSize = 128 << 10
	// flushSize is what the rows of one flush of a fast agent have together.
	flushSize = 64 << 10
	// tailSize is the room for the flush message behind the rows.
	tailSize = 16
)

// template is the encoded form of some rows of an agent's metrics. Only the
// slots and values are missing, so that a row costs one store per point.
type template struct {
	buf     []byte // rows × rowLen bytes, and the tail
	rows    int
	rowLen  int
	slotAt  []int32 // in a row: one slot of a batch, or one per entry
	valueAt []int32 // in a row, one per metric
	ends    []int32 // in a row: the end of each metric's bytes
	pieces  []piece

	shuffle *rand.Rand // nil where every row has the metrics in their order
	entries [][]byte   // of the metrics, where they are shuffled
	order   []int32
	first   int32 // where the entries of a row begin
}

// piece is a part of a row that is filled in and perhaps written at once.
type piece struct {
	row         int
	first, last int // metrics of the row
	write       bool
	to          int // end of its bytes in buf
}

func newTemplate(c *Config, agent, rows int) *template {
	t := &template{}
	var row, key []byte
	if c.Batch {
		row = wire.AppendBatchStart(row, 0)
		t.slotAt = append(t.slotAt, 1)
	}
	for i := range c.Metrics {
		key = c.AppendKey(key[:0], agent, i)
		if c.Batch {
			row = wire.AppendBatchPoint(row, key, 0)
		} else {
			t.slotAt = append(t.slotAt, int32(len(row)+1))
			row = wire.AppendEntry(row, key, 0, 0)
		}
		t.valueAt = append(t.valueAt, int32(len(row)-point.Size))
		t.ends = append(t.ends, int32(len(row)))
	}
	if c.Batch {
		row = wire.AppendBatchEnd(row)
		t.ends[len(t.ends)-1] = int32(len(row))
	}
	if c.Shuffle {
		rows = 1 // places differ from row to row
		t.shuffleWith(rand.New(rand.NewPCG(c.Seed, uint64(agent))), row)
	}
	if rows == 0 {
		rows = max(1, flushSize/len(row))
	}
	t.rows, t.rowLen = rows, len(row)
	t.buf = make([]byte, 0, rows*len(row)+tailSize)
	for range rows {
		t.buf = append(t.buf, row...)
	}
	t.cut()
	return t
}

// shuffleWith makes every row an order of its own of the entries in row, which it keeps.
func (t *template) shuffleWith(r *rand.Rand, row []byte) {
	t.shuffle = r
	t.order = make([]int32, len(t.valueAt))
	if !t.slotEach() {
		t.first = t.slotAt[0] + point.Size
	}
	from := t.first
	for i, at := range t.valueAt {
		to := at + point.Size
		t.entries = append(t.entries, row[from:to])
		t.order[i] = int32(i)
		from = to
	}
}

// slotEach reports whether every metric of a row has a slot of its own.
func (t *template) slotEach() bool { return len(t.slotAt) == len(t.valueAt) }

// reorder puts the entries of the row into another order.
func (t *template) reorder() {
	t.shuffle.Shuffle(len(t.order), func(i, j int) { t.order[i], t.order[j] = t.order[j], t.order[i] })
	at := t.first
	for _, i := range t.order {
		if t.slotEach() {
			t.slotAt[i] = at + 1
		}
		at += int32(copy(t.buf[at:], t.entries[i]))
		t.valueAt[i] = at - point.Size
	}
}

// cut divides the rows into pieces. A row whose places change is one.
func (t *template) cut() {
	if t.shuffle != nil {
		t.pieces = []piece{{last: len(t.ends), to: t.rowLen}}
		return
	}
	for r := range t.rows {
		for first := 0; first < len(t.ends); {
			from := 0
			if first > 0 {
				from = int(t.ends[first-1])
			}
			last := first + 1
			for last < len(t.ends) && int(t.ends[last-1])-from < writeSize {
				last++
			}
			end := int(t.ends[last-1])
			t.pieces = append(t.pieces, piece{
				row:   r,
				first: first,
				last:  last,
				write: end-from >= writeSize,
				to:    r*t.rowLen + end,
			})
			first = last
		}
	}
}

// send fills in rows rows, the first of them at slot and the others step
// apart, and hands them to write, with tail behind the last.
func (t *template) send(src *source, slot, step int64, rows int, tail []byte,
	write func([]byte) error) error {
	if t.shuffle != nil {
		t.reorder()
	}
	written := 0
	for _, p := range t.pieces {
		if p.row >= rows {
			break
		}
		row := t.buf[p.row*t.rowLen : (p.row+1)*t.rowLen]
		at := slot + int64(p.row)*step
		switch {
		case t.slotEach():
			for _, o := range t.slotAt[p.first:p.last] {
				binary.BigEndian.PutUint64(row[o:], uint64(at))
			}
		case p.first == 0:
			binary.BigEndian.PutUint64(row[t.slotAt[0]:], uint64(at))
		}
		src.fill(row, t.valueAt[p.first:p.last], p.first, at)
		last := p.row == rows-1 && p.last == len(t.ends)
		if p.write && !last {
			if err := write(t.buf[written:p.to]); err != nil {
				return err
			}
			written = p.to
		}
	}
	// The tail takes the place of what may be the start of another row.
	end := rows * t.rowLen
	var kept [tailSize]byte
	copy(kept[:], t.buf[end:end+len(tail):cap(t.buf)])
	err := write(append(t.buf[:end], tail...)[written:])
	copy(t.buf[end:end+len(tail):cap(t.buf)], kept[:])
	return err
}

// sendTiny sends one row as the original does: the start of the entry, the
// metric, the point, and at last the flush are a write each.
func (t *template) sendTiny(src *source, slot int64, tail []byte, write func([]byte) error) error {
	src.fill(t.buf[:t.rowLen], t.valueAt, 0, slot)
	for i, o := range t.slotAt {
		binary.BigEndian.PutUint64(t.buf[o:], uint64(slot))
		key := int(o) + 10 // behind the slot and the key's length
		value := int(t.valueAt[i])
		for _, part := range [][]byte{t.buf[o-1 : key], t.buf[key : value-4],
			t.buf[value-4 : value+point.Size]} {
			if err := write(part); err != nil {
				return err
			}
		}
	}
	return write(tail)
}

// source makes the values of an agent's metrics.
type source struct {
	key   uint64 // of the agent, for uniform values
	iters []Iter // of all metrics, or nil where all are uniform
}

func newSource(d Data, agent, metrics int) *source {
	s := &source{key: agentKey(d.Seed, agent)}
	if !d.Walk && d.Preset == "" {
		return s
	}
	s.iters = make([]Iter, metrics)
	for i := range s.iters {
		s.iters[i] = d.Series(agent, i)
	}
	return s
}

// fill writes the points of the metrics from first on at slot to the places at
// of a row.
func (s *source) fill(row []byte, at []int32, first int, slot int64) {
	if s.iters != nil {
		iters := s.iters[first : first+len(at)]
		for i, o := range at {
			binary.BigEndian.PutUint64(row[o:], point.FromInt(iters[i].At(slot)))
		}
		return
	}
	x := rowKey(s.key, slot) + uint64(first)*golden
	for _, o := range at {
		binary.BigEndian.PutUint64(row[o:], point.FromInt(uniform(x)))
		x += golden
	}
}
