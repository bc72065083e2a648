package events

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"dalmatiner/internal/disk/eventfile"

	"github.com/zeebo/xxh3"
)

// DigestStep is the length of the cells whose digests are kept for files, in nanoseconds: an hour.
const DigestStep = 3600 * 1_000_000_000

// Digest stands for the events of a cell of time: equal ones have the same events, as far as a hash
// can tell.
type Digest struct {
	Start  int64 // of the cell
	Events uint64
	Sum    uint64 // of hashes of (time, id)
}

// Cells are parts that time is cut into: each Step, counted from First, and with Hours at the hours
// as well.
type Cells struct {
	First, Step int64
	Hours       bool
}

// Of returns the cell that has a time, which is not before First. end is no part of it, and may be
// past the end of time.
func (c Cells) Of(t int64) (start int64, end uint64) {
	start = c.First + int64(uint64(t-c.First)/uint64(c.Step)*uint64(c.Step))
	end = uint64(start) + uint64(c.Step)
	if hour := t / DigestStep * DigestStep; c.Hours {
		start, end = max(start, hour), min(end, uint64(hour)+DigestStep)
	}
	return start, end
}

// digests adds up the digests of events in any order.
type digests struct {
	cells Cells
	of    map[int64]Digest
	last  Digest // not in of yet
	end   uint64 // of its cell
}

func newDigests(cells Cells) *digests { return &digests{cells: cells, of: make(map[int64]Digest)} }

func hashOf(e *Event) uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], uint64(e.Time))
	copy(b[8:], e.ID[:])
	return xxh3.Hash(b[:])
}

// add adds events of one cell, which has a time.
func (d *digests) add(t int64, n, sum uint64) {
	if t < d.last.Start || uint64(t) >= d.end {
		d.settle()
		d.last.Start, d.end = d.cells.Of(t)
	}
	d.last.Events += n
	d.last.Sum += sum
}

func (d *digests) settle() {
	if d.last.Events > 0 {
		sum := d.of[d.last.Start]
		d.of[d.last.Start] = Digest{d.last.Start, sum.Events + d.last.Events, sum.Sum + d.last.Sum}
	}
	d.last = Digest{}
}

func (d *digests) list() []Digest {
	d.settle()
	out := make([]Digest, 0, len(d.of))
	for _, n := range d.of {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b Digest) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// kept is what is known of the digests of a file, once somebody has asked.
type kept struct {
	mu     sync.Mutex
	hours  map[uint64][]Digest // by bucket
	blocks map[int]uint64      // sums
}

// Digests returns the digests of the cells of a range of a bucket, as far as they have events that
// can be read, in the order of time, and where damage took events. Those of hours are kept for
// files, and those of blocks that are in one cell.
func (s Copies) Digests(ctx context.Context, bucket uint64, start, end int64,
	cells Cells) ([]Digest, []Gap, error) {
	v, err := s.pin(bucket, start, end)
	if err != nil {
		return nil, nil, err
	}
	defer s.unpin(v)
	start = max(start, 1)
	d, gaps := newDigests(cells), v.gaps(bucket, start, end)
	for _, t := range v.tables {
		s.digestTable(t, bucket, start, end, d)
	}
	hours := cells == Cells{Step: DigestStep}
	for _, f := range v.files {
		if !hours {
			if gaps, err = s.digestFile(ctx, f, bucket, start, end, d, gaps); err != nil {
				return nil, nil, err
			}
			continue
		}
		list, err := s.keptHours(ctx, f, bucket)
		if err != nil {
			return nil, nil, err
		}
		for _, n := range list {
			if n.Start >= start/DigestStep*DigestStep && n.Start < end {
				d.add(n.Start, n.Events, n.Sum)
			}
		}
	}
	return d.list(), ordered(gaps), nil
}

// digestTable adds up what a table has of a range.
func (s Copies) digestTable(t *table, bucket uint64, start, end int64, d *digests) {
	next := key{time: start}
	var list []Event
	for more := true; more; {
		s.mu.RLock()
		list = t.from(list[:0], bucket, next, recordEvents)
		s.mu.RUnlock()
		more = len(list) == recordEvents
		for i := range list {
			if e := &list[i]; e.Time < end {
				d.add(e.Time, 1, hashOf(e))
			} else {
				more = false
			}
		}
		if n := len(list); n > 0 {
			next = keyOf(&list[n-1]).following()
		}
	}
}

// digestFile adds up what a file has of a range. Damage is reported, and hides a block, which is a
// gap.
func (s Copies) digestFile(ctx context.Context, f *file, bucket uint64, start, end int64,
	d *digests, gaps []Gap) ([]Gap, error) {
	var buf eventfile.Buffer
	for i, past := f.reader.BlockRange(bucket, start, end); i < past; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := &f.reader.Blocks[i]
		whole := false // it is in one cell
		if b.First >= start && b.Last < end {
			_, past := d.cells.Of(b.First)
			whole = uint64(b.Last) < past
		}
		if whole {
			f.kept.mu.Lock()
			sum, ok := f.kept.blocks[i]
			f.kept.mu.Unlock()
			if ok {
				d.add(b.First, uint64(b.Events), sum)
				continue
			}
		}
		list, err := s.keys(f, i, &buf)
		if err != nil {
			gaps = append(gaps, gapOf(b))
			continue
		}
		sum := uint64(0)
		for j := range list {
			if e := &list[j]; e.Time >= start && e.Time < end {
				h := hashOf(e)
				sum += h
				d.add(e.Time, 1, h)
			}
		}
		if whole {
			f.kept.note(i, sum)
		}
	}
	return gaps, nil
}

func (k *kept) note(block int, sum uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.blocks == nil {
		k.blocks = make(map[int]uint64)
	}
	k.blocks[block] = sum
}

// keptHours returns the digests of the hours of a file.
func (s Copies) keptHours(ctx context.Context, f *file, bucket uint64) ([]Digest, error) {
	f.kept.mu.Lock()
	list, ok := f.kept.hours[bucket]
	f.kept.mu.Unlock()
	if ok {
		return list, nil
	}
	d := newDigests(Cells{Step: DigestStep})
	if _, err := s.digestFile(ctx, f, bucket, 1, lastKey.time, d, nil); err != nil {
		return nil, err
	}
	list = d.list()
	f.kept.mu.Lock()
	defer f.kept.mu.Unlock()
	if f.kept.hours == nil {
		f.kept.hours = make(map[uint64][]Digest)
	}
	f.kept.hours[bucket] = list
	return list, nil
}
