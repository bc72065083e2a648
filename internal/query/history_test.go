package query_test

import (
	"math"

	"dalmatiner/internal/query/source"
)

// historied is a memory that adds up slots, is written to between queries, and knows what was.
type historied struct {
	adder
	changes map[uint64][]change // of each bucket, by its ID
	fixed   int64               // slots from here on may change at any time
	blurred int                 // bytes of the end of a key that are not known when it came or went
}

// change is a write: of which slots, and of a series that came or went by it, its key.
type change struct {
	slot int64
	past int64
	name []string
}

func newHistoried(m *memory) *historied {
	return &historied{adder: adder{m}, changes: make(map[uint64][]change), fixed: math.MaxInt64}
}

func (h *historied) Mark(b source.Info) source.Mark {
	return source.Mark{b.ID, uint64(len(h.changes[b.ID])), uint64(h.fixed)}
}

func (h *historied) Since(b source.Info, m source.Mark, from int64) source.Unchanged {
	u := source.Unchanged{Below: int64(m[2]), Live: int64(m[2])}
	if m[0] != b.ID {
		return source.Forgotten()
	}
	for _, c := range h.changes[b.ID][m[1]:] {
		if u.Names = append(u.Names, c.name...); c.past > from {
			u.Below = min(u.Below, max(c.slot, from))
		}
	}
	return u
}

// write puts words at a slot of a series, which may be a new one.
func (h *historied) write(bucket, key string, from int64, words []uint64) {
	b := h.buckets[bucket]
	r, known := h.series[b.ID][key]
	if !known || len(r.words) == 0 {
		r = run{from: from}
	}
	first, past := min(r.from, from), max(r.from+int64(len(r.words)), from+int64(len(words)))
	all := make([]uint64, past-first)
	copy(all[r.from-first:], r.words)
	copy(all[from-first:], words)
	h.series[b.ID][key] = run{from: first, words: all}
	c := change{slot: from, past: from + int64(len(words))}
	if !known {
		c.name = []string{key[:len(key)-h.blurred]}
	}
	h.changes[b.ID] = append(h.changes[b.ID], c)
}

// remove deletes a series.
func (h *historied) remove(bucket, key string) {
	b := h.buckets[bucket]
	delete(h.series[b.ID], key)
	h.changes[b.ID] = append(h.changes[b.ID],
		change{0, math.MaxInt64, []string{key[:len(key)-h.blurred]}})
}
