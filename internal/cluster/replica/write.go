package replica

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/write"
)

// changeWriter is a change on its way into the store.
type changeWriter struct {
	token  write.Token
	counts replication.Counts
	left   Stats // what is left out of it
	copies bool  // the rows are copies of other nodes, not first hand
	larger bool  // of two values the larger one stays, else the last
	absent error // the store lacks buckets of some rows, which are not taken
	held   []heldRow
	slots  slots
	used   []*stream // with points that are not committed
	into   *stream   // of the last point, one of these
	now    time.Time
}

// skipStale leaves points of a deleted bucket out. Points that come first hand are refused, so that
// nobody counts them as accepted. Copies come from nodes that have not heard of the deletion yet:
// these nodes will drop theirs.
func (w *changeWriter) skipStale(points int) error {
	w.left.Gone += int64(points)
	if w.copies {
		return nil
	}
	return replication.ErrStaleBucket
}

// heldRow is a row of a slot that may hold something.
type heldRow struct {
	s     *series
	slot  int64
	value replication.Value
	order int
}

// Write stores rows of a batch that came first hand, and notes the key: see replication.Store. The
// error wraps replication.ErrFull where there is no room; then some of the rows may be stored, and
// none is counted. It wraps replication.ErrStaleBucket where their bucket was deleted.
func (r *Replica) Write(key replication.Key, c replication.Change) (replication.Counts,
	replication.Position, error) {
	err := r.change(&c, false, cmp.Or(c.Copies, r.o.Copies()) > 1)
	if err = errors.Join(err, r.writing.absent); err != nil {
		return replication.Counts{}, 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftOut()
	e := r.note(key, r.writing.counts)
	e.at = r.next(r.writing.token, e)
	return e.counts, e.at, nil
}

// Merge stores copies from other nodes: see replication.Store. Errors are those of Write. Where one
// wraps replication.ErrAbsent, the rows of all buckets that are here are stored.
func (r *Replica) Merge(c replication.Change) (replication.Position, error) {
	if err := r.change(&c, true, true); err != nil {
		r.copied.clear() // some of it may not be stored
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftOut()
	if r.writing.token == (write.Token{}) {
		return r.last, r.writing.absent // what is here already may not be on disk yet
	}
	return r.next(r.writing.token, nil), r.writing.absent
}

// leftOut counts what the last change has left out. mu is held.
func (r *Replica) leftOut() {
	r.stats.Expired += r.writing.left.Expired
	r.stats.Gone += r.writing.left.Gone
	r.stats.Refused += r.writing.left.Refused
	r.stats.Homeless += r.writing.left.Homeless
}

// change stores a change: deletions first, since rows are of the life behind them.
func (r *Replica) change(c *replication.Change, copies, larger bool) error {
	w := &r.writing
	*w = changeWriter{
		copies: copies,
		larger: larger,
		held:   w.held[:0],
		slots:  w.slots,
		used:   w.used[:0],
		now:    r.o.Now(),
	}
	if err := r.checkRoom(); err != nil {
		return err
	}
	if err := r.delete(c.Deletions); err != nil {
		return wrapDiskFull(err)
	}
	r.showAdopted()
	if err := r.define(c.Chunks); err != nil {
		return err
	}
	order := 0
	r.behind = replication.ChunkID{}
	for i := range c.Chunks {
		if err := r.chunk(&c.Chunks[i], order); err != nil {
			return errors.Join(err, r.commit())
		}
		order += chunk.Slots
	}
	for i := range c.Columns {
		if err := r.column(&c.Columns[i], order); err != nil {
			return errors.Join(err, r.commit())
		}
		order += len(c.Columns[i].Words)
	}
	for i := range c.Rows {
		if err := r.row(&c.Rows[i], order+i); err != nil {
			return errors.Join(err, r.commit())
		}
	}
	if len(w.held) == 0 {
		return r.commit()
	}
	// What is read below must see what was written above.
	if err := r.commit(); err != nil {
		return err
	}
	return errors.Join(r.overwrite(), r.commit())
}

// wrapDiskFull makes an error say that there is no room, where it does.
func wrapDiskFull(err error) error {
	if errors.Is(err, write.ErrDiskFull) || errors.Is(err, deletion.ErrTooMany) {
		return fmt.Errorf("%w: %w", replication.ErrFull, err)
	}
	return err
}

// delete deletes series whose incarnation is news.
func (r *Replica) delete(list []replication.Deletion) error {
	x := &r.index
	of := make(map[uint64][]deletion.At)
	for _, d := range list {
		if d.Incarnation <= r.Incarnation(d.Series) {
			continue
		}
		id, ok := uint64(0), false
		if s := x.series[d.Series]; s != nil {
			id, ok = s.bucket.info.ID, true
		} else {
			id, ok = r.o.Names.Bucket(d.Series)
		}
		if !ok {
			return fmt.Errorf("%w: the deleted series %x", ErrUnnamed, d.Series)
		}
		of[id] = append(of[id], deletion.At{ID: d.Series, Incarnation: d.Incarnation})
	}
	for id, list := range of {
		t, err := r.o.Local.DeleteSeriesAt(context.Background(), id, list)
		if errors.Is(err, buckets.ErrUnknown) {
			continue // it was deleted with all its series
		} else if err != nil {
			return err
		}
		r.writing.token = laterToken(r.writing.token, t)
		for _, d := range list {
			x.raise(d.ID, id, d.Incarnation)
			if s := x.series[d.ID]; s != nil {
				x.remove(s.share, func(o *series) bool { return o == s })
			}
		}
	}
	return nil
}

// row takes a row. One of a slot that may hold something waits, to be compared.
func (r *Replica) row(row *replication.Row, order int) error {
	w := &r.writing
	s, err := r.find(row)
	if errors.Is(err, replication.ErrAbsent) {
		w.left.Homeless++
		w.absent = err
		return nil
	}
	if err != nil {
		return err
	}
	value, ok := replication.Value{}, false
	switch {
	case s == nil:
		if err := w.skipStale(1); err != nil {
			return err
		}
	case row.Incarnation < r.Incarnation(row.Series): // of an earlier incarnation of the series
		w.left.Gone++
	case int64(row.Slot) < oldest(&s.bucket.info, w.now):
		w.left.Expired++
	default:
		if value, ok = normal(&s.bucket.info, row); !ok {
			w.left.Refused++
		}
	}
	if !ok { // it is over with these before they are here
		w.counts.Accepted++
		return nil
	}
	slot := int64(row.Slot)
	from, past, err := r.index.bounds(s)
	if err != nil {
		return err
	}
	if from < past && slot >= from && slot < past {
		if err := r.settle(s, slot); err != nil {
			return err
		}
		w.held = append(w.held, heldRow{s, slot, value, order})
		return nil
	}
	w.counts.Accepted++
	if w.copies {
		of, at := r.placeOf(s, slot)
		r.copied.add(of, at, w.now)
	}
	return r.put(s, slot, value)
}

// find returns the series of a row, nil if its bucket is gone.
func (r *Replica) find(row *replication.Row) (*series, error) {
	x := &r.index
	if s := x.find(row.Series); s != nil {
		return s, nil
	}
	id, key, ok := r.o.Names.Lookup(row.Series)
	if !ok {
		return nil, fmt.Errorf("%w: %x", ErrUnnamed, row.Series)
	}
	b := x.bucket(id)
	if b == nil && r.o.Known != nil && r.o.Known(id) {
		return nil, fmt.Errorf("%w: %016x", replication.ErrAbsent, id)
	}
	if b == nil {
		return nil, nil
	}
	s := x.add(row.Series, b, bytes.Clone(key))
	s.known = true // it has nothing
	return s, nil
}

// normal returns a value as the store gives it back; ok is false for one that it does not take.
func normal(info *buckets.Info, row *replication.Row) (v replication.Value, ok bool) {
	v = row.Value
	if w, ok := point.NormalizeMarked(v.Word); !ok || w != v.Word || w == point.Unset ||
		row.Slot >= buckets.MaxSlot {
		return v, false
	}
	switch {
	case !info.HPTS, v.Word == point.Stale:
		v.Time = 0
	case v.Time == point.Unset:
		v.Time = point.FromInt(0)
	case point.KindOf(v.Time) != point.KindInt:
		return v, false
	}
	return v, true
}

// overwrite stores the rows that are larger than what their slots hold.
func (r *Replica) overwrite() error {
	w := &r.writing
	slices.SortFunc(w.held, func(a, b heldRow) int {
		return cmp.Or(compareIDs(a.s.id, b.s.id), cmp.Compare(a.slot, b.slot),
			cmp.Compare(a.order, b.order))
	})
	for rows := w.held; len(rows) > 0; {
		n := 1
		for n < len(rows) && rows[n].s == rows[0].s && rows[n].slot-rows[0].slot < reader.MaxRead &&
			rows[n].slot-rows[n-1].slot < readGap {
			n++
		}
		if err := r.overwriteSome(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// readGap is how many slots are read rather than begin another read behind them.
const readGap = 512

// overwriteSome is overwrite for rows of a series that lie near each other.
func (r *Replica) overwriteSome(rows []heldRow) error {
	w, s, from := &r.writing, rows[0].s, rows[0].slot
	n := rows[len(rows)-1].slot - from + 1
	if err := r.index.read(&w.slots, s, from, n); err != nil {
		// Other copies have what is larger, and give it again.
		r.noteReadFailure(s, err)
		w.slots = slots{words: make([]uint64, n)}
		if s.bucket.info.HPTS {
			w.slots.times = make([]uint64, n)
		}
	}
	for len(rows) > 0 {
		before := w.slots.value(int(rows[0].slot - from))
		held, same := before, 0
		of, at := r.placeOf(s, rows[0].slot)
		for same < len(rows) && rows[same].slot == rows[0].slot {
			value := rows[same].value
			switch held {
			case replication.Value{}:
				w.counts.Accepted++
			case value:
				if !w.copies && r.copied.take(of, at, w.now) {
					w.counts.Accepted++ // it is received first by now
				} else {
					w.counts.Duplicate++
				}
			default:
				w.counts.Conflicting++
			}
			if held.Compare(value) < 0 || !w.larger && value.Word != point.Stale {
				held = value
			}
			same++
		}
		if w.copies && before == (replication.Value{}) {
			r.copied.add(of, at, w.now)
		}
		if held != before {
			if err := r.put(s, rows[0].slot, held); err != nil {
				return err
			}
		}
		rows = rows[same:]
	}
	return nil
}

func (r *Replica) placeOf(s *series, slot int64) (of uint64, at int) {
	return placeOf(s.id, r.Incarnation(s.id), slot)
}
