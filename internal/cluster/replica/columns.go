package replica

import (
	"encoding/binary"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/point"
)

// Columns of first-hand writes come again and again with the same series. What was looked up for a group is kept, so
// a point costs its own series, and a column goes to the store as a batch of a sender does.

// preparedSeries bounds the series of the groups that are prepared, or as many series as are here. Beyond it they are
// looked up anew.
const preparedSeries = 1 << 18

// prepared are the groups whose series were looked up.
type prepared struct {
	of     map[*replication.Group]*group
	series int
}

// group is what is known of a group.
type group struct {
	series []*series // nil: not looked up yet
	found  int       // of them
	// batch is the group as a batch of the wire: the length of the key, the key and the value of each series. ends are
	// where these end. They are made when all series have been found.
	batch []byte
	ends  []int32
}

func (p *prepared) group(of *replication.Group, here int) *group {
	g := p.of[of]
	if g == nil {
		if p.of == nil || p.series+len(of.Series) > max(preparedSeries, here) {
			*p = prepared{of: make(map[*replication.Group]*group)}
		}
		g = &group{series: make([]*series, len(of.Series))}
		p.of[of] = g
		p.series += len(of.Series)
	}
	return g
}

// column takes a column, whose first point has a place among those of the change.
func (r *Replica) column(c *replication.Column, order int) error {
	g := r.prepared.group(c.Group, len(r.index.series))
	list := g.series[c.From : c.From+len(c.Words)]
	if !r.lookUp(g, list, c) || !plain(&list[0].bucket.info, c) {
		return r.columnInRows(c, order)
	}
	w, b, slot := &r.writing, list[0].bucket, int64(c.Slot)
	if slot < oldest(&b.info, w.now) {
		w.left.Expired += int64(len(list))
		w.counts.Accepted += len(list) // it is over with these before they are here
		return nil
	}
	for _, s := range list {
		if from, past, err := r.index.bounds(s); err != nil || slot >= from && slot < past {
			return r.columnInRows(c, order)
		}
	}
	t, err := r.into(b)
	if t == nil {
		if err == nil {
			w.left.Gone += int64(len(list))
			w.counts.Accepted += len(list)
		}
		return err
	}
	w.counts.Accepted += len(list)
	for _, s := range list {
		r.wrote(s, slot)
	}
	g.send(t, c)
	return nil
}

// columnInRows is column point by point.
func (r *Replica) columnInRows(c *replication.Column, order int) error {
	for i := range c.Words {
		row := c.Row(i)
		if err := r.row(&row, order+i); err != nil {
			return err
		}
	}
	return nil
}

// lookUp finds the series of a column, and reports whether all are here, in one bucket.
func (r *Replica) lookUp(g *group, list []*series, c *replication.Column) bool {
	for i, s := range list {
		if s == nil || s.gone {
			if g.batch = nil; s != nil {
				list[i] = nil
				g.found--
			}
			found, err := r.find(&replication.Row{Series: c.Group.Series[c.From+i]})
			if err != nil || found == nil {
				return false
			}
			list[i] = found
			g.found++
		}
		if list[i].bucket != list[0].bucket {
			return false
		}
	}
	if g.batch == nil && g.found == len(g.series) {
		g.makeBatch()
	}
	return g.batch != nil
}

// makeBatch makes the batch, with room for the values.
func (g *group) makeBatch() {
	g.ends = make([]int32, len(g.series))
	for i, s := range g.series {
		g.batch = binary.BigEndian.AppendUint16(g.batch, uint16(len(s.key)))
		g.batch = append(g.batch, s.key...)
		g.batch = append(g.batch, make([]byte, point.Size)...)
		g.ends[i] = int32(len(g.batch))
	}
}

// send gives a column to the store.
func (g *group) send(t *stream, c *replication.Column) {
	for i, word := range c.Words {
		end := g.ends[c.From+i]
		binary.BigEndian.PutUint64(g.batch[end-point.Size:end], word)
	}
	start := int32(0)
	if c.From > 0 {
		start = g.ends[c.From-1]
	}
	for rest := g.batch[start:g.ends[c.From+len(c.Words)-1]]; len(rest) > 0; {
		if n := t.Batch(c.Slot, rest); n > 0 {
			rest = rest[n:]
			continue
		}
		end := 2 + int(binary.BigEndian.Uint16(rest))
		t.Point(rest[2:end:end], c.Slot, binary.BigEndian.Uint64(rest[end:]))
		rest = rest[end+point.Size:]
	}
}

// plain reports whether the store gives back the words of a column as they are, and a batch can have them.
func plain(info *buckets.Info, c *replication.Column) bool {
	if info.HPTS || c.Slot >= buckets.MaxSlot {
		return false
	}
	for _, word := range c.Words {
		if w, ok := point.Normalize(word); !ok || w != word || w == point.Unset {
			return false
		}
	}
	return true
}
