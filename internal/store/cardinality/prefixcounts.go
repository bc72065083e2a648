package cardinality

import (
	"encoding/binary"

	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/series"
)

// maxPrefixes is how many different prefixes a count takes at most. They take 56 MiB then.
const maxPrefixes = 1_500_000

// prefixCounts counts series by the hashes of their prefixes: open addressing, without a pointer
// for each. Series are counted many together: one after the other would wait for memory each time.
type prefixCounts struct {
	memory Memory
	slots  []slot
	n      int // slots in use
	isNew  series.RecentSeries

	series, recent int // that were counted

	last    prefix // of what was added last
	pending int
	ids     [block]metric.SeriesID // of prefixes
	// the prefix is that of the one before: a sender's series often have one
	as     [block]bool
	deeper [block]bool
	keys   [block]metric.SeriesID // of series, where any is new
	fresh  [block]bool
	lookup series.Lookup
}

// slot is a prefix.
type slot struct {
	id             metric.SeriesID // of the prefix, as if it were a metric
	series, recent uint32          // 0 series: the slot is free
	deeper         bool
}

const (
	slotBytes = 28
	minSlots  = 1 << 11
	block     = 512 // series that are counted together
)

func newPrefixCounts(m Memory, isNew series.RecentSeries) *prefixCounts {
	return &prefixCounts{memory: m, isNew: isNew}
}

// add counts a metric with a prefix.
func (t *prefixCounts) add(b *buckets.Info, key []byte, p prefix) error {
	i := t.pending
	t.deeper[i] = p.deeper
	if t.as[i] = i > 0 && p.same(b.ID, &t.last); !t.as[i] {
		t.ids[i] = metric.Series(b.ID, p.key)
		t.last.set(b.ID, p)
	}
	if !t.isNew.Empty() {
		if t.keys[i] = t.ids[i]; t.as[i] || len(p.key) < len(key) {
			t.keys[i] = metric.Series(b.ID, key)
		}
		if b.HPTS {
			t.keys[i] = t.keys[i].Value()
		}
	}
	if t.pending++; t.pending == block {
		return t.flush()
	}
	return nil
}

// flush counts what was added.
func (t *prefixCounts) flush() error {
	n := t.pending
	t.pending = 0
	if err := t.room(n); err != nil {
		return err
	}
	for i := range n {
		if !t.as[i] {
			kernel.FetchOf(&t.slots[t.home(&t.ids[i])])
		}
	}
	t.isNew.HasAll(t.keys[:n], t.fresh[:n], &t.lookup)
	var s *slot
	for i := range n {
		if !t.as[i] {
			if s = t.find(&t.ids[i]); s.series == 0 {
				s.id = t.ids[i]
				t.n++
			}
		}
		s.series++
		s.deeper = s.deeper || t.deeper[i]
		if t.fresh[i] {
			s.recent++
			t.recent++
		}
	}
	if t.series += n; t.n > maxPrefixes {
		return &Excess{maxPrefixes}
	}
	return nil
}

func (t *prefixCounts) home(id *metric.SeriesID) int {
	return int(binary.LittleEndian.Uint64(id[:8])) & (len(t.slots) - 1)
}

// find returns the slot of a prefix, or the free one for it.
func (t *prefixCounts) find(id *metric.SeriesID) *slot {
	for at := t.home(id); ; at = (at + 1) & (len(t.slots) - 1) {
		if s := &t.slots[at]; s.series == 0 || s.id == *id {
			return s
		}
	}
}

// of returns what was counted of a prefix.
func (t *prefixCounts) of(id metric.SeriesID) slot {
	if len(t.slots) == 0 {
		return slot{}
	}
	return *t.find(&id)
}

// room makes room for so many more prefixes.
func (t *prefixCounts) room(n int) error {
	if (t.n+n)*4 <= len(t.slots)*3 {
		return nil
	}
	size := max(minSlots, 2*len(t.slots))
	if err := t.memory.Grow(int64(size) * slotBytes); err != nil {
		return err
	}
	old := t.slots
	t.slots = make([]slot, size)
	for i := range old {
		if old[i].series != 0 {
			*t.find(&old[i].id) = old[i]
		}
	}
	return nil
}
