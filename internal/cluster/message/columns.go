package message

import (
	"encoding/binary"
	"slices"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/metric"
)

// A column begins with a byte that says what is not as the column before leads to expect; 0 ends
// the list.
const (
	anotherColumn = 1 << iota
	otherFirst    // the number of its first series follows, which is else that of the column before
	otherWords    // how many words, else as many
	// the difference of its slot to the one expected, which is behind that of the column before
	otherColumnAt
	timedColumn // timestamps follow behind the words
	columnBits  = iota
)

// column is what the next column is compared with.
type column struct {
	first uint32
	count uint64
	slot  uint64
}

// firstColumn stands before the first column, so that slot 0 is expected.
var firstColumn = column{slot: ^uint64(0)}

// cachedSeries bounds the series of the groups that an encoder or a decoder keeps something of.
const cachedSeries = 1 << 18

// numberedGroups are the numbers of the series of groups, as far as they were asked for.
type numberedGroups struct {
	of     map[*replication.Group][]uint32
	series int
}

const noNumber = ^uint32(0)

// numbers returns those of a group; noNumber stands for those that were not asked for.
func (g *numberedGroups) numbers(of *replication.Group) []uint32 {
	list, ok := g.of[of]
	if !ok {
		if g.of == nil || g.series+len(of.Series) > cachedSeries {
			*g = numberedGroups{of: make(map[*replication.Group][]uint32)}
		}
		list = slices.Repeat([]uint32{noNumber}, len(of.Series))
		g.of[of] = list
		g.series += len(of.Series)
	}
	return list
}

// columns appends columns in the order in which they are. Those of series whose numbers do not
// follow each other are cut.
func (w *writer) columns(list []replication.Column) {
	before := firstColumn
	for i := range list {
		c := &list[i]
		numbers := w.table.groups.numbers(c.Group)[c.From : c.From+len(c.Words)]
		for from := 0; from < len(numbers) && w.err == nil; {
			past := from
			for ; past < len(numbers); past++ {
				if numbers[past] == noNumber {
					var err error
					if numbers[past], err = w.table.number(c.Group.Series[c.From+past]); err != nil {
						numbers[past] = noNumber
						w.fail(err)
						return
					}
				}
				if past > from && numbers[past] != numbers[past-1]+1 {
					break
				}
			}
			before = w.column(c, numbers[from], from, past, before)
			from = past
		}
	}
	w.u8(0)
}

// column appends some of the words of a column.
func (w *writer) column(c *replication.Column, first uint32, from, past int, before column) column {
	next := column{first: first, count: uint64(past - from), slot: c.Slot}
	var times []uint64
	if c.Times != nil && slices.ContainsFunc(c.Times[from:past], func(t uint64) bool {
		return t != 0
	}) {
		times = c.Times[from:past]
	}
	w.dst = slices.Grow(w.dst, 32+8*(past-from)+8*len(times))
	at := len(w.dst)
	head := byte(anotherColumn)
	w.u8(0)
	if next.first != before.first {
		head |= otherFirst
		w.uvarint(uint64(next.first))
	}
	if next.count != before.count {
		head |= otherWords
		w.uvarint(next.count)
	}
	if d := next.slot - (before.slot + 1); d != 0 {
		head |= otherColumnAt
		w.uvarint(zigzag(d))
	}
	if times != nil {
		head |= timedColumn
	}
	w.dst[at] = head
	dst := w.dst
	for _, word := range c.Words[from:past] {
		dst = binary.BigEndian.AppendUint64(dst, word)
	}
	for _, t := range times {
		dst = binary.BigEndian.AppendUint64(dst, t)
	}
	w.dst = dst
	return next
}

// columns reads what writer.columns appends.
func (r *reader) columns() (list []replication.Column) {
	before := firstColumn
	for {
		head := r.U8()
		if head == 0 || r.Bad {
			return list
		}
		r.Check(head&anotherColumn != 0 && head < 1<<columnBits)
		next := column{first: before.first, count: before.count, slot: before.slot + 1}
		if head&otherFirst != 0 {
			next.first = uint32(r.upTo(MaxNames - 1))
			r.Check(next.first != before.first)
		}
		if head&otherWords != 0 {
			next.count = r.uvarint()
			r.Check(next.count != before.count)
		}
		if head&otherColumnAt != 0 {
			d := zagzig(r.uvarint())
			r.Check(d != 0)
			next.slot += d
		}
		r.Check(next.count > 0 && next.count <= uint64(len(r.Src)/8) &&
			uint64(next.first)+next.count <= MaxNames)
		if r.Bad {
			return nil
		}
		c := replication.Column{
			Group: r.group(next.first, int(next.count)),
			Slot:  next.slot,
			Words: r.words(int(next.count)),
		}
		if head&timedColumn != 0 {
			c.Times = r.words(int(next.count))
			r.Check(slices.ContainsFunc(c.Times, func(t uint64) bool { return t != 0 }))
		}
		if r.Bad {
			return nil
		}
		list = append(list, c)
		before = next
	}
}

func (r *reader) words(n int) []uint64 {
	b := r.Take(8 * n)
	if b == nil {
		return nil
	}
	words := make([]uint64, n)
	for i := range words {
		words[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return words
}

// stretch is series of consecutive numbers.
type stretch struct {
	first uint32
	count int
}

// groups are the groups that a decoder has made, so that one has the same address again.
type groups struct {
	of     map[stretch]*cachedGroup
	series int
}

// cachedGroup is a group whose names were known in a period.
type cachedGroup struct {
	*replication.Group
	period uint32
}

// group returns the series of consecutive numbers.
func (r *reader) group(first uint32, count int) *replication.Group {
	var old *cachedGroup
	if r.groups != nil && len(r.fresh) == 0 {
		if old = r.groups.of[stretch{first, count}]; old != nil && old.period == r.period {
			return old.Group
		}
	}
	g := &replication.Group{Series: make([]metric.SeriesID, count)}
	for i := range g.Series {
		g.Series[i] = r.resolve(first + uint32(i))
	}
	// names of this frame are not known before it was read
	if r.Bad || r.groups == nil || len(r.fresh) > 0 {
		return g
	}
	if old != nil {
		old.period = r.period
		return old.Group // a number stands for one series
	}
	if r.groups.of == nil || r.groups.series+count > cachedSeries {
		*r.groups = groups{of: make(map[stretch]*cachedGroup)}
	}
	r.groups.of[stretch{first, count}] = &cachedGroup{g, r.period}
	r.groups.series += count
	return g
}
