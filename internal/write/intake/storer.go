package intake

import (
	"context"
	"errors"
	"math"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/ledger"
)

var errDiskFull = errors.New("the disk is nearly full")

// errOverload is for senders that cannot be made to wait.
var errOverload = errors.New("new series wait until the log is in memory, and there is room")

// storer stores the points of a session: it finds the columns of series, gives new ones a
// column, writes to the groups, and counts what it refuses.
type storer struct {
	o     *Options // of the intake
	b     *columns.Bucket
	width int // columns of a metric: 1, or 2 with timestamps

	neverWait bool           // points that would have to wait are refused
	copies    bool           // the points were judged elsewhere
	stale     bool           // stale markers are taken
	filler    columns.Filler // gives columns to new series
	writer    ledger.Writer

	refused account.Counts // since the last commit
	totals  Totals
	err     error // of the log, or of the replay: nothing can be stored any more
}

// points returns how many points the words are.
func (k *storer) points(words []uint64) uint64 { return uint64(len(words) / k.width) }

// slots returns the slots [lo, hi) that are taken now.
func (k *storer) slots() (lo, hi uint64) {
	if k.copies {
		return 0, buckets.MaxSlot
	}
	return k.o.Columns.AdmittedSlots(k.b)
}

func (k *storer) normalize(raw uint64) (w uint64, ok bool) { return normalize(raw, k.stale) }

// normalize returns the word under which a point is kept, or false if it has none. stale takes
// stale markers.
func normalize(raw uint64, stale bool) (w uint64, ok bool) {
	if raw == point.Stale && stale {
		return raw, true
	}
	return point.Normalize(raw)
}

func (k *storer) refuse(r account.Reason, n uint64) {
	k.refused.Refused[r] += n
	k.totals.Received += n
	k.totals.Refused += n
}

// commit enters the refusals since the last one, and returns the last record of all that
// was stored and refused.
func (k *storer) commit() (wal.LSN, error) {
	if k.err == nil && k.refused.RefusedTotal() > 0 {
		if k.err = k.writer.Refuse(k.b.ID, &k.refused); k.err == nil {
			k.refused = account.Counts{}
		}
	}
	return k.writer.LastLSN(), k.err
}

// points are n points of a series in consecutive slots, as they came.
type points struct {
	slot, n uint64
	at      func(i uint64) (raw, timestamp uint64) // nil for those that are admitted
}

// refuseAll refuses points if none of them can be stored: else it is false, and refuses none.
func (k *storer) refuseAll(key []byte, p points) bool {
	if p.at == nil {
		return false
	}
	var refused [account.NumReasons]uint64
	if p.slot > math.MaxUint64-p.n {
		refused[account.Future] = p.n // its last slots would begin at 0 again
		p.n = 0
	}
	a := Admission{k.o, k.b, k.stale}
	lo, hi := k.slots()
	for i := range p.n {
		raw, timestamp := p.at(i)
		_, _, why, ok := a.Point(key, p.slot+i, raw, timestamp, lo, hi)
		if ok {
			return false
		}
		refused[why]++
	}
	for why, n := range refused {
		k.refuse(account.Reason(why), n)
	}
	return true
}

// locate returns the column of a series, which it creates where there is none. It is false
// where there is no column for it: then its points are refused. A series of which every point is
// refused is not created.
func (k *storer) locate(key []byte, points points) (p columns.Position, ok bool) {
	id, n := k.b.SeriesID(key), points.n
	if p, ok := k.o.Columns.Locate(id, key); ok {
		return p, true
	}
	if k.refuseAll(key, points) {
		return columns.Position{}, false
	}
	p, err := k.define(id, key)
	switch {
	case err != nil:
		k.notAssigned(err, n)
	case p.Group == nil:
		k.refuse(account.BucketDeleted, n)
	default:
		return p, true
	}
	return columns.Position{}, false
}

// define creates a series and gives it a column. The error says why it has none.
func (k *storer) define(id metric.SeriesID, key []byte) (columns.Position, error) {
	o := k.o
	if k.neverWait && o.Pressure.IsFull() {
		return columns.Position{}, errOverload
	}
	o.Pressure.Wait()
	if o.Pressure.DiskFull() {
		return columns.Position{}, errDiskFull
	}
	if k.neverWait && o.Replay.HasPending() {
		return columns.Position{}, errOverload
	}
	if err := o.Replay.All(context.Background()); err != nil {
		return columns.Position{}, err
	}
	p, lsn, err := k.filler.Define(id, key)
	k.writer.NoteDefinition(lsn)
	return p, err
}

func (k *storer) notAssigned(err error, n uint64) {
	switch {
	case errors.Is(err, buckets.ErrUnknown):
		k.refuse(account.BucketDeleted, n)
	case errors.Is(err, columns.ErrSeriesLimit):
		k.refuse(account.SeriesLimit, n)
	case errors.Is(err, columns.ErrNoMemory):
		k.refuse(account.Memory, n)
	case errors.Is(err, errDiskFull):
		k.refuse(account.DiskFull, n)
	case errors.Is(err, columns.ErrSameHash):
		k.refuse(account.SameHash, n)
	case errors.Is(err, errOverload):
		k.refuse(account.Overload, n)
	default:
		k.err = err
	}
}

// storeColumn stores the part of consecutive points of a series that is admitted.
func (k *storer) storeColumn(p columns.Position, slot uint64, words []uint64) {
	lo, hi := k.slots()
	width := uint64(k.width)
	if slot < lo {
		n := min(k.points(words), lo-slot)
		k.refuse(account.Expired, n)
		words, slot = words[n*width:], slot+n
	}
	if over := slot + k.points(words); over > hi || over < slot {
		n := k.points(words)
		if slot < hi {
			n = over - hi
		}
		k.refuse(account.Future, n)
		words = words[:uint64(len(words))-n*width]
	}
	if len(words) > 0 {
		k.storeAt(p, head.Write{Slot: int64(slot), Words: words, Down: true})
	}
}

// storeRuns stores runs of columns of a group: all at once, or name by name those whose
// columns have lost their names since they were found.
func (k *storer) storeRuns(g *head.Group, cols *head.Columns, runs []head.Run, words []uint64) {
	w := rows(runs, words)
	w.Epoch = cols.Epoch()
	if k.apply(g, w) {
		return
	}
	for _, r := range runs {
		for i := 0; i < r.Points; i += k.width {
			k.storeAt(columns.Position{
				Group:   g,
				Columns: cols,
				Column:  r.Column + i,
			}, head.Write{Slot: r.Slot, Words: words[i : i+k.width]})
		}
		words = words[r.Points:]
	}
}

// storeOne stores a point of a series that has no column or another one than it had a
// moment ago.
func (k *storer) storeOne(key []byte, slot int64, word uint64) {
	if p, ok := k.locate(key, points{n: 1}); ok {
		k.storeAt(p, head.Write{Slot: slot, Words: []uint64{word}})
	}
}

// storeAt stores points of one series in the column at which it was found, or where it
// is by now.
func (k *storer) storeAt(p columns.Position, w head.Write) {
	key := p.Columns.Key(p.Column)
	for ok := true; ok; p, ok = k.locate(key, points{n: k.points(w.Words)}) {
		w.Column, w.Epoch = p.Column, p.Columns.Epoch()
		if k.apply(p.Group, w) {
			return
		}
	}
}

// apply stores what is written to a group and logs it, or refuses it. It is false
// when columns have lost their names since they were found: then nothing was done.
func (k *storer) apply(g *head.Group, w head.Write) bool {
	o := k.o
	w.Pairs = k.width == 2
	if k.err != nil {
		return true
	}
	if k.neverWait && o.Pressure.IsFull() {
		k.refuse(account.Overload, k.points(w.Words))
		return true
	}
	o.Pressure.Wait()
	if o.Pressure.DiskFull() {
		k.refuse(account.DiskFull, k.points(w.Words))
		return true
	}
	if k.err = o.Replay.Group(context.Background(), g.ID); k.err != nil {
		return true
	}
	first, last := w.Slots()
	k.b.Reach.Raise(last)
	a, err := k.writer.Write(g, &w)
	o.Sealers.HandleWrite(g, a)
	switch {
	case err != nil:
		k.err = err
	case a.Dead:
		k.refuse(account.BucketDeleted, k.points(w.Words))
	case a.Stale:
		return false
	default:
		k.totals.Received += k.points(w.Words)
		if k.b.Reach.NeedsNote(first) {
			k.err = o.NoteLate(k.b, first)
		}
	}
	return true
}
