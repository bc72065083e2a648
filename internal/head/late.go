package head

import (
	"slices"

	"dalmatiner/internal/account"
)

// lateRuns are points behind the open blocks, in the order of arrival: runs of
// consecutive slots of one column.
type lateRuns struct {
	firstLSN uint64
	runs     []lateRun
	words    []uint64
}

type lateRun struct {
	slot   int64
	off    uint32 // into words
	n      uint32
	column uint16
}

const lateRunBytes = 24

func (l *lateRuns) bytes() int64 { return int64(len(l.runs))*lateRunBytes + int64(len(l.words))*8 }

// add appends one point; explicit unset points never erase.
func (l *lateRuns) add(col int, slot int64, word uint64, c *account.Counts) {
	if word == 0 {
		c.Unset++
		return
	}
	c.Late++
	l.append(col, slot, word)
}

// append adds a set word behind the last run, or as a new one.
func (l *lateRuns) append(col int, slot int64, word uint64) {
	if n := len(l.runs); n > 0 {
		r := &l.runs[n-1]
		if int(r.column) == col && r.slot+int64(r.n) == slot {
			r.n++
			l.words = append(l.words, word)
			return
		}
	}
	l.runs = append(l.runs, lateRun{slot: slot, off: uint32(len(l.words)), n: 1, column: uint16(col)})
	l.words = append(l.words, word)
}

func (l *lateRuns) addRun(col int, slot int64, words []uint64, c *account.Counts) {
	for i, w := range words {
		l.add(col, slot+int64(i), w, c)
	}
}

// read lays the points of a column over dst, the slots from from on.
func (l *lateRuns) read(col int, from int64, dst []uint64) {
	for i := range l.runs {
		r := &l.runs[i]
		if int(r.column) == col {
			overlay(dst, from, l.words[r.off:r.off+r.n], r.slot)
		}
	}
}

// overlay copies src, the set words from slot on, over dst, which starts at
// from.
func overlay(dst []uint64, from int64, src []uint64, slot int64) {
	if d := from - slot; d > 0 {
		if d >= int64(len(src)) {
			return
		}
		src, slot = src[d:], from
	}
	if off := slot - from; off < int64(len(dst)) {
		copy(dst[off:], src)
	}
}

// ofColumn returns the runs of a column in the order of arrival.
func (l *lateRuns) ofColumn(col int) []lateRun {
	i, _ := slices.BinarySearchFunc(l.runs, col, func(r lateRun, c int) int { return int(r.column) - c })
	j := i
	for j < len(l.runs) && int(l.runs[j].column) == col {
		j++
	}
	return l.runs[i:j]
}

// sortByColumn orders the runs by column and keeps the order of arrival inside
// one.
func (l *lateRuns) sortByColumn() {
	slices.SortStableFunc(l.runs, func(a, b lateRun) int { return int(a.column) - int(b.column) })
}
