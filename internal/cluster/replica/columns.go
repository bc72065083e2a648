package replica

import (
	"cmp"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/intake"
)

// Columns of first-hand writes come again and again with the same series. What was looked up for a
// group is kept, so a point costs its own series, and a column goes to the store without its names.

// preparedSeries bounds the series of the groups that are prepared, or as many series as are here.
// Beyond it they are looked up anew.
const preparedSeries = 1 << 18

// preparedGroups are the groups whose series were looked up.
type preparedGroups struct {
	of     map[*replication.Group]*group
	series int
}

// group is what is known of a group.
type group struct {
	series []*series             // nil: not looked up yet
	placed *intake.SeriesColumns // nil: none is
}

func (p *preparedGroups) group(of *replication.Group, here int) *group {
	g := p.of[of]
	if g == nil {
		if p.of == nil || p.series+len(of.Series) > max(preparedSeries, here) {
			*p = preparedGroups{of: make(map[*replication.Group]*group)}
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
	if !r.lookUp(g, list, c) || !isPlain(&list[0].bucket.info, c) {
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
	t, err := r.streamFor(b)
	if t == nil {
		return cmp.Or(err, r.writing.skipStale(len(list)))
	}
	w.counts.Accepted += len(list)
	for _, s := range list {
		r.notePoint(s, slot)
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
			list[i] = nil
			found, err := r.find(&replication.Row{Series: c.Group.Series[c.From+i]})
			if err != nil || found == nil {
				return false
			}
			list[i] = found
		}
		if list[i].bucket != list[0].bucket {
			return false
		}
	}
	return true
}

// send gives a column to the store: where the series have places in it, without their names.
func (g *group) send(t *stream, c *replication.Column) {
	if g.sendRow(t, c) {
		return
	}
	if g.place(t); g.sendRow(t, c) {
		return
	}
	for i, word := range c.Words {
		t.Point(g.series[c.From+i].key, c.Slot, word)
	}
}

// sendRow is send for series with places, and reports whether they have them.
func (g *group) sendRow(t *stream, c *replication.Column) bool {
	return g.placed != nil && t.rows.Row(g.placed, c.From, c.Slot, c.Words)
}

// place finds the places of the series that were looked up and are here.
func (g *group) place(t *stream) {
	if t.rows == nil {
		return
	}
	keys := make([][]byte, len(g.series))
	for i, s := range g.series {
		if s != nil && !s.gone {
			keys[i] = s.key
		}
	}
	g.placed = t.rows.Place(keys)
}

// isPlain reports whether the store gives back the words of a column as they are, and a batch can
// have them.
func isPlain(info *buckets.Info, c *replication.Column) bool {
	if info.HPTS || c.Slot >= buckets.MaxSlot {
		return false
	}
	for _, word := range c.Words {
		if w, ok := point.NormalizeMarked(word); !ok || w != word || w == point.Unset {
			return false
		}
	}
	return true
}
