package head

import (
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

// pairs stores points of two words, which lie in adjacent columns: a value and
// what belongs to it. They are written together or not at all, and are counted
// as one point. A value that is unset takes the other word along. Nothing belongs to a stale
// marker: its other word is unset, and leaves that of a value as it is.
func (w *writeState) pairs(run Write) {
	words, slot, c := run.Words, run.Slot, w.counts
	for len(words) > 0 {
		n := len(words)
		if run.Down {
			n = min(n, 2*w.blocks.rowsFrom(slot))
		}
		if b := w.blocks.blockAt(slot); b == nil {
			if run.Down {
				n = min(n, 2*w.blocks.lateSlots(slot))
			}
			w.reachLate(slot + int64(n/2) - 1)
			w.late.addPairs(Write{Column: run.Column, Slot: slot, Words: words[:n], Down: run.Down}, c)
		} else {
			w.reach(b)
			before := c.Accepted
			w.blocks.inTable(b, n) // or it turns into rows
			b.putPairs(Write{Column: run.Column, Slot: slot, Words: words[:n], Down: run.Down}, c)
			b.set += 2 * int(c.Accepted-before)
		}
		words, slot = words[n:], slot+int64(n/2)
	}
}

// putPairs stores pairs that all lie in the block.
func (b *block) putPairs(w Write, c *account.Counts) {
	next, last := 2, w.Slot // cells to the next point
	if w.Down {
		next, last = Width, w.Slot+int64(len(w.Words)/2)-1
	}
	b.markWritten(w.Slot, last)
	row := int(w.Slot - b.start)
	if b.table != nil {
		b.table.putPairs(row*Width+w.Column, next, w.Words, c)
		return
	}
	for words := w.Words; len(words) > 0; {
		part, n := b.grow(row), len(words)
		if w.Down {
			n = min(n, 2*(len(part)/Width))
		}
		putPairs(part[w.Column:], next, words[:n], c)
		words, row = words[n:], row+n/2
	}
}

// putPairs stores pairs over cells, next apart.
func putPairs(cells []uint64, next int, words []uint64, c *account.Counts) {
	for i, off := 0, 0; i < len(words); i, off = i+2, off+next {
		if words[i] == 0 {
			c.Unset++
		} else {
			putPair(&cells[off], &cells[off+1], words[i], words[i+1], c)
		}
	}
}

// putPair stores a value that is set, and what belongs to it, over two cells.
func putPair(a, b *uint64, value, other uint64, c *account.Counts) {
	switch {
	case *a == 0:
		c.Accepted++
	case *a == value && *b == other:
		c.Duplicate++
	default:
		c.Conflicting++
	}
	if point.Overwrite(value, *a) == value {
		*a, *b = value, other
	}
}

// putPairs is putPairs for places, step apart, and those behind them.
func (t *cellTable) putPairs(place, step int, words []uint64, c *account.Counts) {
	for ; len(words) > 0; words, place = words[2:], place+step {
		value, other := words[0], words[1]
		if value == 0 {
			c.Unset++
			continue
		}
		oldValue, oldOther := t.get(place), t.get(place+1)
		putPair(&oldValue, &oldOther, value, other, c)
		*t.cell(place) = oldValue
		*t.cell(place + 1) = oldOther
	}
}

// addPairs appends pairs: down a column first all values, so that the runs are
// long.
func (l *lateRuns) addPairs(w Write, c *account.Counts) {
	words := w.Words
	for i := 0; i < len(words); i += 2 {
		if words[i] == 0 {
			c.Unset++
			continue
		}
		c.Late++
		if !w.Down {
			l.append(w.Column+i, w.Slot, words[i])
			if words[i] != point.Stale {
				l.append(w.Column+i+1, w.Slot, words[i+1])
			}
		}
	}
	if !w.Down {
		return
	}
	for side := range 2 {
		for i := 0; i < len(words); i += 2 {
			if words[i] > point.Stale || words[i] == point.Stale && side == 0 {
				l.append(w.Column+side, w.Slot+int64(i/2), words[i+side])
			}
		}
	}
}
