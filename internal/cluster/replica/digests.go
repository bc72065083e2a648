package replica

import (
	"cmp"
	"context"
	"slices"
	"time"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/metric"
)

// sheetAge is for how long the digest of a window is believed: what hides points without a write,
// such as a deletion that is no longer remembered, is found behind it.
const sheetAge = 6 * time.Hour

// digests are those of the windows of a share. They are additive: a write takes that of its
// series out, and it is added again when it is asked for.
type digests struct {
	scanned bool // there is a sheet for every window with points
	since   time.Time
	sheets  map[int64]*sheet
}

// sheet is the digest of a window of a share.
type sheet struct {
	valid   bool
	sum     uint64                     // of all series but those that have changed
	each    map[metric.SeriesID]uint64 // of each that has one; nil in a window that rests: only the sum is known
	changed []*series                  // some may stand there twice
	written bool                       // a sheet that is not valid became so by a write: there will be more
}

// change takes a series out of the digest of a window: it is being written to.
func (d *digests) change(x *index, s *series, window int64) {
	if !d.scanned || s.dirty == window+1 {
		return
	}
	t := d.sheets[window]
	switch {
	case t == nil:
		d.sheets[window] = &sheet{written: true}
	case !t.valid:
		t.written = true
	case t.each == nil:
		*t = sheet{written: true}
	default:
		if old, ok := t.each[s.id]; ok {
			t.sum -= old
			delete(t.each, s.id)
			x.digests--
		}
		t.changed = append(t.changed, s)
		s.dirty = window + 1
	}
}

// drop lets the digests of the windows [first, last] go.
func (d *digests) drop(x *index, first, last int64) {
	for window, t := range d.sheets {
		if window >= first && window <= last {
			x.digests -= len(t.each)
			*t = sheet{written: t.written}
		}
	}
}

// dropSeries lets the digests of the windows go that may have points of a series.
func (d *digests) dropSeries(x *index, s *series) {
	switch {
	case !s.known:
		d.scanned = false
	case s.from < s.past:
		d.drop(x, s.from/windowSlots, (s.past-1)/windowSlots)
	}
}

// rest lets the digests of single series go where nothing has changed: the sums stay.
func (x *index) rest() {
	for _, sh := range x.shares {
		for _, t := range sh.digests.sheets {
			if len(t.changed) == 0 {
				x.digests -= len(t.each)
				t.each = nil
			}
		}
	}
}

// digest returns the digest of a series in the chunks [first, past). What cannot be read counts as
// not there: then others give it.
func (x *index) digest(s *series, first, past int64) uint64 {
	first = max(first, s.bucket.edge)
	from, end, err := x.bounds(s)
	if err != nil || first >= past || from >= end || end <= first*chunk.Slots || from >= past*chunk.Slots {
		return 0
	}
	d, err := x.o.Local.Series(s.bucket.info, s.key).Digest(context.Background(), first, past)
	if err != nil {
		return 0
	}
	return d
}

// update brings the digests of all windows of a share up to date.
func (x *index) update(sh *share) {
	d := &sh.digests
	if !d.scanned || x.o.Now().Sub(d.since) > sheetAge {
		x.scan(sh)
	}
	for window, t := range d.sheets {
		if !t.valid {
			x.compute(sh, window, t)
		}
		for _, s := range t.changed {
			if s.dirty == window+1 {
				s.dirty = 0
			}
			if _, again := t.each[s.id]; again || x.series[s.id] != s {
				continue
			}
			if sum := x.digest(s, window*chunksPerWindow, (window+1)*chunksPerWindow); sum != 0 {
				t.sum += sum
				t.each[s.id] = sum
				x.digests++
			}
		}
		if t.changed = t.changed[:0]; t.sum == 0 && len(t.each) == 0 {
			delete(d.sheets, window)
		}
	}
	if x.digests > x.o.MaxDigests {
		x.rest()
	}
}

// scan makes the sheets of a share anew, of all windows that may have points.
func (x *index) scan(sh *share) {
	d := &sh.digests
	for _, t := range d.sheets {
		x.digests -= len(t.each)
	}
	*d = digests{scanned: true, since: x.o.Now(), sheets: make(map[int64]*sheet)}
	for _, s := range sh.list {
		s.dirty = 0
		from, past, err := x.bounds(s)
		for err == nil && from < past {
			window := from / windowSlots
			if sum := x.digest(s, window*chunksPerWindow, (window+1)*chunksPerWindow); sum != 0 {
				t := d.sheets[window]
				if t == nil {
					t = &sheet{valid: true}
					d.sheets[window] = t
				}
				t.sum += sum
			}
			// The next window with points may be far away.
			from = (window + 1) * windowSlots
			if from < past {
				from, past, err = x.o.Local.Series(s.bucket.info, s.key).Extent(context.Background(), from, buckets.MaxSlot-from)
			}
		}
	}
}

// compute makes a sheet anew. One that is written to keeps the digests of its series.
func (x *index) compute(sh *share, window int64, t *sheet) {
	*t = sheet{valid: true, written: t.written}
	if t.written {
		t.each = make(map[metric.SeriesID]uint64)
	}
	for _, s := range sh.list {
		if s.dirty == window+1 {
			s.dirty = 0
		}
		sum := x.digest(s, window*chunksPerWindow, (window+1)*chunksPerWindow)
		if t.sum += sum; sum != 0 && t.written {
			t.each[s.id] = sum
			x.digests++
		}
	}
	t.written = false
}

// Windows returns the digests of the windows of a share that have points, in ascending order.
func (r *Replica) Windows(of replication.Share) (list []replication.WindowDigest) {
	r.adopted()
	r.index.refresh()
	sh := r.index.share(of)
	r.index.update(sh)
	for window, t := range sh.digests.sheets {
		if t.sum != 0 {
			list = append(list, replication.WindowDigest{Number: uint64(window), Digest: t.sum})
		}
	}
	slices.SortFunc(list, func(a, b replication.WindowDigest) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// Chunks returns the digests of the chunks of a window of a share that have points, in ascending
// order: of the series behind one, and of whole series only, about as many as the limit says.
func (r *Replica) Chunks(of replication.Share, window uint64, after metric.SeriesID, limit int) (list []replication.ChunkDigest, more bool) {
	x := &r.index
	r.adopted()
	x.refresh()
	all := x.share(of).sorted()
	at, found := slices.BinarySearchFunc(all, after, func(s *series, id metric.SeriesID) int { return compareIDs(s.id, id) })
	if found {
		at++
	} else if after == (metric.SeriesID{}) {
		at = 0
	}
	for _, s := range all[at:] {
		before := len(list)
		list = x.chunks(list, s, int64(window))
		if len(list) > limit && before > 0 {
			return list[:before], true
		}
	}
	return list, false
}

// chunks appends the digests of the chunks of a series in a window.
func (x *index) chunks(list []replication.ChunkDigest, s *series, window int64) []replication.ChunkDigest {
	from, past, err := x.bounds(s)
	if err != nil || from >= past {
		return list
	}
	first := max(window*chunksPerWindow, from/chunk.Slots)
	end := min((window+1)*chunksPerWindow, (past-1)/chunk.Slots+1)
	for n := first; n < end; n++ {
		if sum := x.digest(s, n, n+1); sum != 0 {
			list = append(list, replication.ChunkDigest{ID: replication.ChunkID{Series: s.id, Number: uint64(n)}, Digest: sum})
		}
	}
	return list
}
