package store

import (
	"fmt"

	"dalmatiner/internal/head"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/recovery"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/series"
)

// bindings are what a start knows of which series has which column since which
// record of the log.
type bindings struct {
	s    *Store
	from uint64 // the replay begins here

	// series has since when a series has its column, or had its last one, by the
	// catalogue, where that is no older than the replay. What the log says then is
	// behind all that it said before, and needs no place here.
	series  map[metric.SeriesID]uint64
	columns map[uint32]*ages // by group: since when each has its series
	claim   segment.Series   // that was restored last and has its column only when settled
	claimed bool
	highest uint64
	rebuilt bool // the catalogue was: it may not know every series
}

// ages are the positions in the log since which the columns of a group have their
// series.
type ages struct {
	since [head.Width]uint64
	last  uint64 // none is higher
}

func newBindings(s *Store, state *manifest.State) *bindings {
	return &bindings{
		s: s, from: recovery.ReplayFrom(state),
		series:  make(map[metric.SeriesID]uint64),
		columns: make(map[uint32]*ages),
	}
}

// restore enters a series of the catalogue or of a segment into memory, or one
// without a key, which was taken from a column. Of those that name the same column
// the last one counts; they usually come one after the other. settle must follow
// the last one.
func (r *bindings) restore(e segment.Series) error {
	s := r.s
	b := s.buckets.ID(e.Bucket)
	if b == nil {
		return nil // its bucket was deleted
	}
	if int(e.Column)+b.width() > head.Width || e.Group >= series.MaxGroups {
		s.reportDamage("catalogue", fmt.Errorf("group %d, column %d of a series: there are %d and %d", e.Group, e.Column, series.MaxGroups, head.Width))
		return nil
	}
	r.highest = max(r.highest, e.Since)
	id, ref := metric.SeriesID(e.Hash), series.At(e.Group, int(e.Column))
	if len(e.Key) == 0 {
		s.nameless[formerPlace{e.Bucket, ref, id}] = e.Since
	} else {
		id = b.seriesID(e.Key)
		if _, ok := s.index.Lookup(id); ok {
			return nil
		}
		b.incarnations.Raise(id, e.Incarnation)
		s.sawIncarnation(e.Incarnation)
		if e.Since >= r.from {
			r.series[id] = e.Since
		}
		b.series++
		s.index.Define(id, ref)
	}
	c := &r.claim
	switch same := r.claimed && c.Bucket == e.Bucket && c.Group == e.Group && c.Column == e.Column; {
	case same && e.Since <= c.Since:
		r.park(b, ref, e.Key)
		return nil
	case same:
		r.park(b, ref, c.Key)
	default:
		r.settle()
	}
	key := append(c.Key[:0], e.Key...)
	*c = e
	c.Key, r.claimed = key, true
	return nil
}

// park makes a series one without a column, if there is a name.
func (r *bindings) park(b *bucket, ref series.Ref, key []byte) {
	if len(key) > 0 {
		r.s.deactivate(b, ref, key, b.seriesID(key))
	}
}

// settle gives the series that was restored last its column.
func (r *bindings) settle() {
	s, e := r.s, r.claim
	b := s.buckets.ID(e.Bucket)
	if !r.claimed || b == nil {
		return
	}
	r.claimed = false
	ref := series.At(e.Group, int(e.Column))
	g, err := s.restoreGroup(b, e.Group)
	if err != nil {
		s.reportDamage("catalogue", err)
		r.park(b, ref, e.Key)
		return
	}
	if r.since(ref) > e.Since || g.Columns().Has(ref.Column()) && r.since(ref) == e.Since {
		r.park(b, ref, e.Key)
		return
	}
	if g.Columns().Has(ref.Column()) {
		r.evict(b, g, ref.Column())
	}
	if len(e.Key) > 0 {
		b.bind(g, ref.Column(), e.Key, b.seriesID(e.Key), e.Since, s.clock.Steady())
	}
	r.note(b, ref, e.Since)
}

// note remembers since when a series has its columns.
func (r *bindings) note(b *bucket, ref series.Ref, since uint64) {
	t := r.columns[ref.Group()]
	if t == nil {
		t = new(ages)
		r.columns[ref.Group()] = t
		r.s.replayBytes.Add(agesSize)
	}
	for i := range b.width() {
		t.since[ref.Column()+i] = since
	}
	t.last = max(t.last, since)
}

// since returns the position in the log since which a column has its series, or
// had it when it is free; 0 when it never had one.
func (r *bindings) since(ref series.Ref) uint64 {
	if t := r.columns[ref.Group()]; t != nil {
		return t.since[ref.Column()]
	}
	return 0
}

// evict parks the series that has a column.
func (r *bindings) evict(b *bucket, g *head.Group, col int) {
	cols := g.Columns()
	g.Release(col, b.width())
	r.s.deactivate(b, series.At(g.ID, col), cols.Key(col), cols.ID(col))
}

// restoreGroup returns the group of a series, which it makes where there is none.
func (s *Store) restoreGroup(b *bucket, group uint32) (*head.Group, error) {
	g := s.groups.Get(group)
	if g == nil {
		g = head.NewGroup(group, b.info.ID, b.height, b.arena)
		s.groups.Put(g)
		b.groups = append(b.groups, g)
	}
	if g.Bucket != b.info.ID {
		return nil, fmt.Errorf("group %d is of bucket %d; a series of bucket %d wants a column in it", group, g.Bucket, b.info.ID)
	}
	return g, nil
}
