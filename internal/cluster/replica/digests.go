package replica

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
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
	work    *work // under way; nil: none
}

// sheet is the digest of a window of a share.
type sheet struct {
	valid bool
	sum   uint64 // of all series but those that have changed
	// of each that has one; nil in a window that rests: only the sum is known
	each    map[metric.SeriesID]uint64
	changed []*series // some may stand there twice
	// a sheet that is not valid became so by a write: there will be more
	written bool
}

// work is a scan of all windows of a share, or of one whose sheet is made anew, that goes on a part
// at a time. Points come in between: those of a scan make the sheets of their windows invalid,
// those of a sheet are on its list.
type work struct {
	t      *sheet // nil: all windows are scanned
	window int64
	list   []*series // as they were at its begin, those from at on are left
	at     int
}

// forget lets all digests go.
func (d *digests) forget() { d.scanned, d.work = false, nil }

// change takes a series out of the digest of a window: it is being written to.
func (d *digests) change(x *index, s *series, window int64) {
	if !d.scanned && d.work == nil || s.dirty == window+1 {
		return
	}
	t := d.sheets[window]
	switch {
	case t == nil:
		d.sheets[window] = &sheet{written: true}
	case t.each == nil && !t.valid:
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
		d.forget()
	case s.from < s.past:
		d.drop(x, s.from/windowSlots, (s.past-1)/windowSlots)
	}
}

// rest lets the digests of single series go where nothing has changed: the sums stay.
func (x *index) rest() {
	for _, sh := range x.shares {
		for _, t := range sh.digests.sheets {
			if t.valid && len(t.changed) == 0 {
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
	if err != nil || first >= past || from >= end || end <= first*chunk.Slots ||
		from >= past*chunk.Slots {
		return 0
	}
	d, err := x.o.Local.Series(s.bucket.info, s.key).Digest(context.Background(), first, past)
	if err != nil {
		return 0
	}
	return d
}

// update brings the digests of all windows of a share up to date, with so many digests of series at
// most, and reports whether they are.
func (x *index) update(sh *share, most int) bool {
	d := &sh.digests
	if d.work == nil && (!d.scanned || x.o.Now().Sub(d.since) > sheetAge) {
		x.begin(sh)
	}
	if d.work != nil && !x.goOn(sh, &most) {
		return false
	}
	for window, t := range d.sheets {
		if !t.valid {
			d.work = x.rebuildSheet(sh, window, t)
			if !x.goOn(sh, &most) {
				return false
			}
		}
		for ; len(t.changed) > 0; t.changed = t.changed[:len(t.changed)-1] {
			if most <= 0 {
				return false
			}
			x.addChanged(t, window, t.changed[len(t.changed)-1], &most)
		}
		if t.sum == 0 && len(t.each) == 0 {
			delete(d.sheets, window)
		}
	}
	if x.digests > x.o.MaxDigests {
		x.rest()
	}
	return true
}

// addChanged adds the digest of a series that has changed.
func (x *index) addChanged(t *sheet, window int64, s *series, most *int) {
	if s.dirty == window+1 {
		s.dirty = 0
	}
	if _, again := t.each[s.id]; again || x.series[s.id] != s {
		return
	}
	*most--
	if sum := x.digest(s, window*chunksPerWindow, (window+1)*chunksPerWindow); sum != 0 {
		t.sum += sum
		t.each[s.id] = sum
		x.digests++
	}
}

// goOn goes on with the work on a share, and reports whether it is done.
func (x *index) goOn(sh *share, most *int) bool {
	d, w := &sh.digests, sh.digests.work
	for ; w.at < len(w.list); w.at++ {
		if *most <= 0 {
			return false
		}
		if s := w.list[w.at]; x.series[s.id] != s {
			continue
		} else if w.t == nil {
			x.scan(d, s, most)
		} else if w.t.each == nil { // something has let it go: it is begun anew
			break
		} else if s.dirty != w.window+1 {
			x.addChanged(w.t, w.window, s, most)
		}
	}
	d.work = nil
	switch t := w.t; {
	case t == nil:
		d.scanned = true
	case t.each != nil:
		if t.valid = true; !t.written && len(t.changed) == 0 {
			x.digests -= len(t.each)
			t.each = nil
		}
		t.written = false
	}
	return w.t == nil || w.t.valid
}

// begin begins to make the sheets of a share anew, of all windows that may have points.
func (x *index) begin(sh *share) {
	d := &sh.digests
	for _, t := range d.sheets {
		x.digests -= len(t.each)
	}
	*d = digests{
		since:  x.o.Now(),
		sheets: make(map[int64]*sheet),
		work:   &work{list: slices.Clone(sh.list)},
	}
}

// scan adds a series to the sheets of its windows.
func (x *index) scan(d *digests, s *series, most *int) {
	s.dirty = 0
	from, past, err := x.bounds(s)
	for err == nil && from < past {
		window := from / windowSlots
		*most--
		if sum := x.digest(s, window*chunksPerWindow, (window+1)*chunksPerWindow); sum != 0 {
			t := d.sheets[window]
			if t == nil {
				t = &sheet{valid: true}
				d.sheets[window] = t
			}
			t.sum += sum // of one that is not valid it does not matter
		}
		// The next window with points may be far away.
		from = (window + 1) * windowSlots
		if from < past {
			from, past, err = x.o.Local.Series(s.bucket.info, s.key).Extent(context.Background(), from,
				buckets.MaxSlot-from)
		}
	}
}

// rebuildSheet begins to make a sheet anew. One that is written to keeps the digests of its series.
func (x *index) rebuildSheet(sh *share, window int64, t *sheet) *work {
	x.digests -= len(t.each)
	*t = sheet{written: t.written, each: make(map[metric.SeriesID]uint64)}
	for _, s := range sh.list {
		if s.dirty == window+1 {
			s.dirty = 0
		}
	}
	return &work{t: t, window: window, list: slices.Clone(sh.list)}
}

// preparedDigests is how many digests of series Prepare makes at a time: less than a millisecond,
// mostly.
const preparedDigests = 64

// Prepare makes some digests of a share, and reports whether Windows has all: see
// replication.Store.
func (r *Replica) Prepare(of replication.Share) bool {
	r.showAdopted()
	sh := r.index.share(of)
	if sh.digests.work == nil { // else that was done when it began, and Windows does it again
		r.index.refresh()
	}
	return r.index.update(sh, preparedDigests)
}

// Windows returns the digests of the windows of a share that have points, in ascending order.
func (r *Replica) Windows(of replication.Share) (list []replication.WindowDigest) {
	r.showAdopted()
	r.index.refresh()
	sh := r.index.share(of)
	for !r.index.update(sh, math.MaxInt) {
		// What was under way was in vain, and is begun anew.
	}
	for window, t := range sh.digests.sheets {
		if t.sum != 0 {
			list = append(list, replication.WindowDigest{Number: uint64(window), Digest: t.sum})
		}
	}
	slices.SortFunc(list, func(a, b replication.WindowDigest) int {
		return cmp.Compare(a.Number, b.Number)
	})
	return list
}

// Chunks returns the digests of the chunks of a window of a share that have points, in ascending
// order: of the series behind one, and of whole series only, about as many as the limit says.
func (r *Replica) Chunks(of replication.Share, window uint64, after metric.SeriesID,
	limit int) (list []replication.ChunkDigest, more bool) {
	x := &r.index
	r.showAdopted()
	x.refresh()
	all := x.share(of).sorted()
	at, found := slices.BinarySearchFunc(all, after, func(s *series, id metric.SeriesID) int {
		return compareIDs(s.id, id)
	})
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
func (x *index) chunks(list []replication.ChunkDigest, s *series,
	window int64) []replication.ChunkDigest {
	from, past, err := x.bounds(s)
	if err != nil || from >= past {
		return list
	}
	first := max(window*chunksPerWindow, from/chunk.Slots)
	end := min((window+1)*chunksPerWindow, (past-1)/chunk.Slots+1)
	for n := first; n < end; n++ {
		if sum := x.digest(s, n, n+1); sum != 0 {
			list = append(list,
				replication.ChunkDigest{ID: replication.ChunkID{Series: s.id, Number: uint64(n)}, Digest: sum})
		}
	}
	return list
}
