package sim

import (
	"encoding/binary"
	"slices"

	"dalmatiner/internal/cluster/replication"
)

// adoptedChunk is a chunk that a disk has taken and that does not show yet: a crash takes it.
type adoptedChunk struct {
	number uint64
	id     replication.ChunkID
	rows   []replication.Row
}

const rowBytes = 3 * 8

// Chunk returns a chunk with its rows as words.
func (d *disk) Chunk(id replication.ChunkID) replication.Chunk {
	rows := d.rowsOf(id)
	c := replication.Chunk{ID: id, Incarnation: d.Incarnation(id.Series), Points: len(rows)}
	for _, r := range rows {
		for _, n := range []uint64{r.Slot, r.Value.Word, r.Value.Time} {
			c.Words = binary.BigEndian.AppendUint64(c.Words, n)
		}
	}
	return c
}

func rowsIn(c replication.Chunk) (rows []replication.Row) {
	for b := c.Words; len(b) >= rowBytes; b = b[rowBytes:] {
		rows = append(rows, replication.Row{Series: c.ID.Series, Incarnation: c.Incarnation,
			Slot: binary.BigEndian.Uint64(b),
			Value: replication.Value{Word: binary.BigEndian.Uint64(b[8:]),
				Time: binary.BigEndian.Uint64(b[16:])}})
	}
	return rows
}

// take keeps the chunks of which nothing is here for a file, and returns the rows of the others.
func (d *disk) take(chunks []replication.Chunk) (rows []replication.Row) {
	for _, c := range chunks {
		if len(d.rowsOf(c.ID)) > 0 || d.isHidden(c.ID) {
			rows = append(rows, rowsIn(c)...)
			continue
		}
		d.taken++
		d.adopting = append(d.adopting, adoptedChunk{d.taken, c.ID, rowsIn(c)})
	}
	return rows
}

func (d *disk) isHidden(id replication.ChunkID) bool {
	return slices.ContainsFunc(d.adopting, func(a adoptedChunk) bool { return a.id == id })
}

// settle lets chunks show into which rows are written.
func (d *disk) settle(rows []replication.Row) {
	for _, r := range rows {
		if d.isHidden(replication.ChunkID{Series: r.Series, Number: r.Slot / chunkSlots}) {
			d.adopt(d.taken)
		}
	}
}

// adopt puts chunks up to one into a file. What is in the log by then is on disk as well.
func (d *disk) adopt(upTo uint64) bool {
	if d.full {
		return false
	}
	for len(d.adopting) > 0 && d.adopting[0].number <= upTo {
		a := d.adopting[0]
		d.adopting = d.adopting[1:]
		if a.rows[0].Incarnation == d.Incarnation(a.id.Series) { // else it was deleted meanwhile
			d.log = append(d.log, op{merge: &replication.Change{Rows: a.rows}})
			d.apply(d.log[len(d.log)-1], 0)
		}
	}
	d.durable = len(d.log)
	return true
}

// AdoptProgress returns how far chunks are: see replication.Store.
func (d *disk) AdoptProgress() (last uint64, waiting int64) {
	for _, a := range d.adopting {
		waiting += int64(rowBytes * len(a.rows))
	}
	return d.taken, waiting
}
