package replication

import (
	"slices"
	"sort"

	"dalmatiner/internal/model/metric"
)

// Group is series in the order in which somebody sends them again and again. Nobody changes it:
// what was found out of a group is known by its address.
type Group struct{ Series []metric.SeriesID }

// Column is a point of each of some series that follow each other in a group, all in one slot. The
// sender knows of no deletion of these series.
type Column struct {
	Group *Group
	From  int // place of the first series in the group
	Slot  uint64
	Words []uint64
	Times []uint64 // of Words; nil: all are 0
}

// Batch is what a client gives at once: points of one bucket, those of Columns first, behind the
// deletions.
type Batch struct {
	Bucket    uint64
	Columns   []Column
	Rows      []Row
	Deletions []metric.SeriesID
}

// Series returns the series of the column.
func (c *Column) Series() []metric.SeriesID { return c.Group.Series[c.From : c.From+len(c.Words)] }

// Row returns a point of the column, of which it is the i-th.
func (c *Column) Row(i int) Row {
	r := Row{Series: c.Group.Series[c.From+i], Slot: c.Slot, Value: Value{Word: c.Words[i]}}
	if c.Times != nil {
		r.Value.Time = c.Times[i]
	}
	return r
}

// rows appends the points to dst.
func (c *Column) rows(dst []Row) []Row {
	for i := range c.Words {
		dst = append(dst, c.Row(i))
	}
	return dst
}

// Points returns the number of points in columns and rows.
func Points(columns []Column, rows []Row) int {
	n := len(rows)
	for i := range columns {
		n += len(columns[i].Words)
	}
	return n
}

// Points returns how many points the change has.
func (c *Change) Points() int { return Points(c.Columns, c.Rows) }

// InRows returns the change with each point as a row: those of the columns first.
func (c Change) InRows() Change {
	if len(c.Columns) == 0 {
		return c
	}
	rows := make([]Row, 0, c.Points())
	for i := range c.Columns {
		rows = c.Columns[i].rows(rows)
	}
	c.Columns, c.Rows = nil, append(rows, c.Rows...)
	return c
}

// groupSeries bounds the series of the groups that something is known of. Beyond it that is found
// out again.
const groupSeries = 1 << 20

// undeletedGroups are groups of whose series no deletion is known.
type undeletedGroups struct {
	at     map[*Group]uint64 // Store.Lives, when that was found
	series int
}

// has reports whether no deletion is known of any series of a group.
func (u *undeletedGroups) has(g *Group, s Store) bool {
	lives := s.Lives()
	at, ok := u.at[g]
	if ok && at == lives {
		return true
	}
	if slices.ContainsFunc(g.Series, func(id metric.SeriesID) bool { return s.Incarnation(id) > 0 }) {
		return false
	}
	if u.at == nil || u.series+len(g.Series) > groupSeries {
		u.at, u.series = make(map[*Group]uint64), 0
	}
	if !ok {
		u.series += len(g.Series)
	}
	u.at[g] = lives
	return true
}

// lanes are groups by who owns their series, until somebody comes or goes.
type lanes struct {
	of     map[laneKey]*groupLanes
	series int
}

// laneKey is a group of series of a bucket of n copies.
type laneKey struct {
	group  *Group
	copies int
}

// groupLanes is the lanes of a group.
type groupLanes struct {
	list  []lane
	lives uint64 // Store.Lives, when touched was right
}

// lane is the series of a group that have the same owners: those of which no deletion is known
// here, or the others.
type lane struct {
	home       int     // see homesOf
	touched    bool    // deletions are known
	partitions []int   // of the series
	places     []int32 // of the series in the whole group, ascending
	group      *Group
}

// lanesOf returns the lanes of a group.
func (c *coordinator) lanesOf(of laneKey) []lane {
	if d := c.lanes.of[of]; d != nil && c.hold(d) {
		return d.list
	}
	d := &groupLanes{list: c.makeLanes(of), lives: c.store.Lives()}
	if c.lanes.of == nil || c.lanes.series+len(of.group.Series) > groupSeries {
		c.lanes = lanes{of: make(map[laneKey]*groupLanes)}
	}
	if c.lanes.of[of] == nil {
		c.lanes.series += len(of.group.Series)
	}
	c.lanes.of[of] = d
	return d.list
}

// hold reports whether still no deletion is known of a series for which that was so.
func (c *coordinator) hold(d *groupLanes) bool {
	lives := c.store.Lives()
	if d.lives == lives {
		return true
	}
	for i := range d.list {
		if l := &d.list[i]; !l.touched && !c.untouched.has(l.group, c.store) {
			return false
		}
	}
	d.lives = lives
	return true
}

func (c *coordinator) makeLanes(of laneKey) (list []lane) {
	type kind struct {
		home    int
		touched bool
	}
	homes := c.homesOf(of.copies)
	at := make(map[kind]int) // in list
	for i, id := range of.group.Series {
		p := c.view.Partition(id)
		k := kind{homes[p], c.store.Incarnation(id) > 0}
		n, ok := at[k]
		if !ok {
			n = len(list)
			at[k] = n
			list = append(list, lane{home: k.home, touched: k.touched, group: &Group{}})
		}
		l := &list[n]
		l.places, l.group.Series = append(l.places, int32(i)), append(l.group.Series, id)
		if !slices.Contains(l.partitions, p) {
			l.partitions = append(l.partitions, p)
		}
	}
	return list
}

// cut returns what of a column is in the lane. Its words are appended to words, and belong to the
// column.
func (l *lane) cut(c *Column, words *[]uint64) Column {
	from, past := 0, len(l.places)
	if c.From > 0 || len(c.Words) < len(c.Group.Series) {
		from = sort.Search(past, func(i int) bool { return int(l.places[i]) >= c.From })
		past = sort.Search(past, func(i int) bool { return int(l.places[i]) >= c.From+len(c.Words) })
	}
	places := l.places[from:past]
	gather := func(of []uint64) []uint64 {
		start := len(*words)
		list := *words
		for _, at := range places {
			list = append(list, of[int(at)-c.From])
		}
		*words = list
		return list[start:len(list):len(list)]
	}
	out := Column{Group: l.group, From: from, Slot: c.Slot, Words: gather(c.Words)}
	if c.Times != nil {
		out.Times = gather(c.Times)
	}
	return out
}

// divideColumns gives each part what is its own of the columns. Series of which a deletion is known
// here go as rows behind it.
func (c *coordinator) divideColumns(parts []part, copies int, columns []Column) {
	room := 0
	for i := range columns {
		room += len(columns[i].Words) + len(columns[i].Times)
	}
	words := make([]uint64, 0, room)
	for i := range columns {
		for j, list := 0, c.lanesOf(laneKey{columns[i].Group, copies}); j < len(list); j++ {
			column := list[j].cut(&columns[i], &words)
			if len(column.Words) == 0 {
				continue
			}
			into := &parts[c.places[list[j].home]].whole.change
			if !list[j].touched {
				into.Columns = append(into.Columns, column)
				continue
			}
			start := len(into.Rows)
			into.Rows = column.rows(into.Rows)
			for k := start; k < len(into.Rows); k++ {
				into.Rows[k].Incarnation = c.store.Incarnation(into.Rows[k].Series)
			}
		}
	}
}

// countColumns counts the partitions that columns have something in.
func (c *coordinator) countColumns(copies int, columns []Column) {
	var whole *Group // the last that was counted
	for i := range columns {
		switch column := &columns[i]; {
		case len(column.Words) < len(column.Group.Series):
			for _, id := range column.Series() {
				c.places[c.view.Partition(id)]++
			}
		case column.Group != whole:
			whole = column.Group
			for _, l := range c.lanesOf(laneKey{whole, copies}) {
				for _, p := range l.partitions {
					c.places[p]++
				}
			}
		}
	}
}
