package head

import (
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

// lateRuns are points behind the open blocks: of every column runs of
// consecutive slots, in the order of arrival. Rows that fill in the past are one
// run of each column.
type lateRuns struct {
	last    activity
	columns []*lateColumn // by column, up to the last that has any; nil where there are none
	size    int64         // see bytes
	highest int64         // slot, at least; 0 where there is none
}

type lateColumn struct {
	runs  []lateRun
	words []uint64
}

type lateRun struct {
	slot int64
	off  uint32 // into words
	n    uint32
}

const (
	lateRunBytes    = 16
	lateColumnBytes = 48
)

// bytes is the memory in use, but for what slices have in reserve.
func (l *lateRuns) bytes() int64 { return l.size }

func (l *lateRuns) empty() bool { return l.size == 0 }

// column returns what a column has, or nil.
func (l *lateRuns) column(col int) *lateColumn {
	if col >= len(l.columns) {
		return nil
	}
	return l.columns[col]
}

// addHeld adds the columns that have points.
func (l *lateRuns) addHeld(held *Mask) {
	for col, c := range l.columns {
		if c != nil {
			held.Set(col)
		}
	}
}

// forColumn is column, and makes it.
func (l *lateRuns) forColumn(col int) *lateColumn {
	if n := col + 1 - len(l.columns); n > 0 {
		l.columns = append(l.columns, make([]*lateColumn, n)...)
		l.size += 8 * int64(n)
	}
	c := l.columns[col]
	if c == nil {
		c = new(lateColumn)
		l.columns[col] = c
		l.size += lateColumnBytes
	}
	return c
}

// add appends one point; explicit unset points never erase.
func (l *lateRuns) add(col int, slot int64, word uint64, c *account.Counts) {
	if word == 0 {
		c.Unset++
		return
	}
	c.Late++
	l.append(col, slot, word)
}

// append adds a set word behind the column's last run, or as a new one.
func (l *lateRuns) append(col int, slot int64, word uint64) {
	c := l.forColumn(col)
	c.words = append(c.words, word)
	l.size += 8
	if n := len(c.runs); n > 0 {
		if r := &c.runs[n-1]; r.slot+int64(r.n) == slot {
			r.n++
			return
		}
	}
	c.runs = append(c.runs, lateRun{slot: slot, off: uint32(len(c.words) - 1), n: 1})
	l.size += lateRunBytes
}

func (l *lateRuns) addRun(col int, slot int64, words []uint64, c *account.Counts) {
	for i, w := range words {
		l.add(col, slot+int64(i), w, c)
	}
}

// chunks returns how many chunks the runs lie in; a column that goes back and
// forth between two counts each time.
func (l *lateRuns) chunks() (n int64) {
	for _, c := range l.columns {
		if c == nil {
			continue
		}
		last := int64(-1)
		for i := range c.runs {
			r := &c.runs[i]
			past := (r.slot + int64(r.n) - 1) / chunk.Slots
			if n += past - r.slot/chunk.Slots + 1; r.slot/chunk.Slots == last {
				n--
			}
			last = past
		}
	}
	return n
}

// read lays the points of a column over dst, the slots from from on.
func (l *lateRuns) read(col int, from int64, dst []uint64) {
	c := l.column(col)
	if c == nil {
		return
	}
	for i := range c.runs {
		overlay(dst, from, c.wordsOf(&c.runs[i]), c.runs[i].slot)
	}
}

// wordsOf returns the words of a run.
func (c *lateColumn) wordsOf(r *lateRun) []uint64 { return c.words[r.off:][:r.n] }

// addAll appends the newer points of another one, which is not used again.
func (l *lateRuns) addAll(newer *lateRuns) {
	for col, from := range newer.columns {
		if from == nil {
			continue
		}
		to := l.forColumn(col)
		for _, r := range from.runs {
			r.off += uint32(len(to.words))
			to.runs = append(to.runs, r)
		}
		to.words = append(to.words, from.words...)
		l.size += 8*int64(len(from.words)) + lateRunBytes*int64(len(from.runs))
	}
	l.last = l.last.union(newer.last)
	l.highest = max(l.highest, newer.highest)
}

// overlay lays src, the set words from slot on, over dst, which starts at
// from.
func overlay(dst []uint64, from int64, src []uint64, slot int64) {
	if d := from - slot; d > 0 {
		if d >= int64(len(src)) {
			return
		}
		src, slot = src[d:], from
	}
	if off := slot - from; off < int64(len(dst)) {
		dst = dst[off:]
		for i, w := range src[:min(len(src), len(dst))] {
			dst[i] = point.Overwrite(w, dst[i])
		}
	}
}
