package intake

import (
	"context"
	"errors"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/columns"
	"dalmatiner/internal/head"
	"dalmatiner/internal/ledger"
	"dalmatiner/internal/wal"
)

var errDiskFull = errors.New("the disk is nearly full")

// errReplaying is for senders that cannot be made to wait.
var errReplaying = errors.New("new series wait until the log is in memory")

// sink stores the points of a session: it finds the columns of series, gives new ones a
// column, writes to the groups, and counts what it refuses.
type sink struct {
	o     *Options // of the intake
	b     *columns.Bucket
	width int // columns of a metric: 1, or 2 with timestamps

	neverWait bool           // points that would have to wait are refused
	copies    bool           // the points were judged elsewhere
	filler    columns.Filler // gives columns to new series
	writer    ledger.Writer

	refused account.Counts // since the last commit
	totals  Totals
	err     error // of the log, or of the replay: nothing can be stored any more
}

// points returns how many points the words are.
func (k *sink) points(words []uint64) uint64 { return uint64(len(words) / k.width) }

// slots returns the slots [lo, hi) that are taken now.
func (k *sink) slots() (lo, hi uint64) {
	if k.copies {
		return 0, buckets.MaxSlot
	}
	return k.o.Columns.Admitted(k.b)
}

func (k *sink) refuse(r account.Reason, n uint64) {
	k.refused.Refused[r] += n
	k.totals.Received += n
	k.totals.Refused += n
}

// commit enters the refusals since the last one, and returns the last record of all that
// was stored and refused.
func (k *sink) commit() (wal.LSN, error) {
	if k.err == nil && k.refused.RefusedTotal() > 0 {
		if k.err = k.writer.Refuse(k.b.ID, &k.refused); k.err == nil {
			k.refused = account.Counts{}
		}
	}
	return k.writer.Last(), k.err
}

// locate returns the column of a series, which it creates where there is none. It is false
// where there is no column for it: then its points, n of them, are refused.
func (k *sink) locate(key []byte, n uint64) (p columns.Position, ok bool) {
	p, err := k.assign(key)
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

// assign returns the column of a series, which it creates when there is none and
// gives a column when it has none. The error says why it has none.
func (k *sink) assign(key []byte) (columns.Position, error) {
	o := k.o
	id := k.b.SeriesID(key)
	if p, ok := o.Columns.Locate(id, key); ok {
		return p, nil
	}
	if o.Pressure.DiskFull() {
		return columns.Position{}, errDiskFull
	}
	if k.neverWait && o.Replay.Behind() {
		return columns.Position{}, errReplaying
	}
	if err := o.Replay.All(context.Background()); err != nil {
		return columns.Position{}, err
	}
	p, lsn, err := k.filler.Define(id, key)
	k.writer.Defined(lsn)
	return p, err
}

func (k *sink) notAssigned(err error, n uint64) {
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
	case errors.Is(err, errReplaying):
		k.refuse(account.Overload, n)
	default:
		k.err = err
	}
}

// storeColumn stores the part of consecutive points of a series that is admitted.
func (k *sink) storeColumn(p columns.Position, slot uint64, words []uint64) {
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
func (k *sink) storeRuns(g *head.Group, cols *head.Columns, runs []head.Run, words []uint64) {
	w := rows(runs, words)
	w.Epoch = cols.Epoch()
	if k.apply(g, w) {
		return
	}
	for _, r := range runs {
		for i := 0; i < r.Points; i += k.width {
			k.storeAt(columns.Position{Group: g, Columns: cols, Column: r.Column + i}, head.Write{Slot: r.Slot, Words: words[i : i+k.width]})
		}
		words = words[r.Points:]
	}
}

// storeOne stores a point of a series that has no column or another one than it had a
// moment ago.
func (k *sink) storeOne(key []byte, slot int64, word uint64) {
	if p, ok := k.locate(key, 1); ok {
		k.storeAt(p, head.Write{Slot: slot, Words: []uint64{word}})
	}
}

// storeAt stores points of one series in the column at which it was found, or where it
// is by now.
func (k *sink) storeAt(p columns.Position, w head.Write) {
	key := p.Columns.Key(p.Column)
	for ok := true; ok; p, ok = k.locate(key, k.points(w.Words)) {
		w.Column, w.Epoch = p.Column, p.Columns.Epoch()
		if k.apply(p.Group, w) {
			return
		}
	}
}

// apply stores what is written to a group and logs it, or refuses it. It is false
// when columns have lost their names since they were found: then nothing was done.
func (k *sink) apply(g *head.Group, w head.Write) bool {
	o := k.o
	w.Pairs = k.width == 2
	if k.err != nil {
		return true
	}
	if k.neverWait && o.Pressure.Full() {
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
	a, err := k.writer.Write(g, &w)
	o.Sealers.Applied(g, a)
	switch {
	case err != nil:
		k.err = err
	case a.Dead:
		k.refuse(account.BucketDeleted, k.points(w.Words))
	case a.Stale:
		return false
	default:
		k.totals.Received += k.points(w.Words)
	}
	return true
}
