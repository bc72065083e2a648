// Package ledger makes the log and the account agree. What counts points, or changes what
// a node has, stands in both; the log forgets a record once a flush has committed what the
// record stands for. So a flush needs a moment in which nothing is in one of them only.
package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/logrecord"
)

// reserve is what the log has room for before a record of anything but points is
// appended: one that finds none would end the store.
const reserve = 1 << 20

// Options are what a ledger works with.
type Options struct {
	Account *account.Account
	Clock   *clock.Clock
	// Exists reports whether a bucket is there. Points of one that is not count for
	// account.DeletedBuckets.
	Exists func(bucket uint64) bool
	// DiskFull reports whether points are refused for want of disk.
	DiskFull func() bool
	// FreeSpace returns the free bytes of the disk, where the file system can say.
	FreeSpace func() (free int64, known bool)
}

// Ledger is the log, the account, and the commit lock. The lock is held shared from the append of a
// record until what the record stands for is done, such as its row in the account. It is held
// exclusively for a snapshot of all this: a flush that ends above a record, and so lets the log
// forget it, has what it stands for. The methods may be called concurrently, but not from the
// functions that they call: a waiting snapshot holds back later callers.
type Ledger struct {
	o      Options
	commit sync.RWMutex
	log    *wal.Log // set by Use
	points sheet
	copies sheet
	events sheet
}

// New returns a ledger without a log.
func New(o Options) *Ledger {
	return &Ledger{
		o: o, points: sheet{account: o.Account, record: logrecord.AppendRefused},
		copies: sheet{account: account.New(), record: appendCopiesRefused},
		events: sheet{account: account.New(), record: logrecord.AppendEventsRefused},
	}
}

// Points returns the account of the points that senders sent to this node.
func (l *Ledger) Points() *account.Account { return l.points.account }

// Copies returns the ledger of copies: the account of the points that this node stores for a
// cluster, whichever node they were sent to.
func (l *Ledger) Copies() *account.Account { return l.copies.account }

// Events returns the account of events, which are counted beside points.
func (l *Ledger) Events() *account.Account { return l.events.account }

// Use sets the log, before anything else is called.
func (l *Ledger) Use(log *wal.Log) { l.log = log }

// Define appends a record and calls apply with its position.
func (l *Ledger) Define(rec []byte, apply func(lsn wal.LSN)) error {
	return l.append(rec, false, apply)
}

// Change appends a record and applies the change it stands for. The error wraps
// write.ErrDiskFull where the log has no room.
func (l *Ledger) Change(rec []byte, apply func()) error {
	return l.change(rec, false, func(wal.LSN) { apply() })
}

// ChangeTwice is Change for what must not come back where the log is damaged.
func (l *Ledger) ChangeTwice(rec []byte, apply func()) error {
	return l.change(rec, true, func(wal.LSN) { apply() })
}

// ChangeTwiceAt is ChangeTwice for a change that somebody waits for: apply gets its position.
func (l *Ledger) ChangeTwiceAt(rec []byte, apply func(lsn wal.LSN)) error {
	return l.change(rec, true, apply)
}

// Delete appends the record of a deletion of series, with twice such that damage in one
// place does not take it. No flush is under way. The error wraps write.ErrDiskFull
// where the log has no room.
func (l *Ledger) Delete(rec []byte, twice bool) (wal.LSN, error) {
	if err := l.CheckRoom(); err != nil {
		return 0, err
	}
	return l.put(rec, twice)
}

func (l *Ledger) change(rec []byte, twice bool, apply func(lsn wal.LSN)) error {
	if err := l.CheckRoom(); err != nil {
		return err
	}
	return l.append(rec, twice, apply)
}

// append appends a record and calls apply, in one moment of a flush.
func (l *Ledger) append(rec []byte, twice bool, apply func(lsn wal.LSN)) error {
	l.commit.RLock()
	defer l.commit.RUnlock()
	lsn, err := l.put(rec, twice)
	if err == nil {
		apply(lsn)
	}
	return err
}

func (l *Ledger) put(rec []byte, twice bool) (wal.LSN, error) {
	if twice {
		return l.log.AppendTwice(rec)
	}
	return l.log.Append(rec)
}

// CheckRoom returns an error that wraps write.ErrDiskFull where a record might
// find no room: the newest file of the log has none, and the disk is full. A start
// has no file yet, and makes one with the first record.
func (l *Ledger) CheckRoom() error {
	if l.log.Stats().Room >= reserve {
		return nil
	}
	if free, known := l.o.FreeSpace(); known && free < reserve {
		return fmt.Errorf("%w: %d bytes are free, and the log needs %d: make space, then try again",
			write.ErrDiskFull, free, reserve)
	}
	return nil
}

// AppendHeaded calls fn in one moment of a flush, with what appends the record head + body to the
// log.
func (l *Ledger) AppendHeaded(fn func(put func(head, body []byte) (wal.LSN, error)) error) error {
	l.commit.RLock()
	defer l.commit.RUnlock()
	return fn(l.log.AppendHeaded)
}

// Refuse enters refusals of a bucket into the account, and into the log at once or, on a
// full disk, within a second. lsn is 0 where that is to come.
func (l *Ledger) Refuse(bucket uint64, c *account.Counts) (lsn wal.LSN, err error) {
	return l.refuse(&l.points, bucket, c)
}

// RefuseEvents is Refuse for events.
func (l *Ledger) RefuseEvents(bucket uint64, c *account.Counts) (lsn wal.LSN, err error) {
	return l.refuse(&l.events, bucket, c)
}

func (l *Ledger) refuse(s *sheet, bucket uint64, c *account.Counts) (lsn wal.LSN, err error) {
	minute := l.minute()
	l.commit.RLock()
	defer l.commit.RUnlock()
	if l.o.DiskFull() {
		s.waiting.add(bucket, minute, c)
	} else if lsn, err = l.log.Append(s.record(nil, bucket, minute, c)); err != nil {
		return 0, err
	}
	s.account.Add(l.owner(bucket), minute, c)
	return lsn, nil
}

// LogRefusals writes the refusals that wait to the log, once that has room for them. It is
// called every second. A failure of the log ends the store by itself.
func (l *Ledger) LogRefusals() {
	l.commit.RLock()
	defer l.commit.RUnlock()
	l.logRefusals()
}

// logRefusals is LogRefusals. The commit lock is held, at least shared: account and log
// then agree for who holds it alone.
func (l *Ledger) logRefusals() {
	for _, s := range []*sheet{&l.points, &l.copies, &l.events} {
		s.waiting.take(l.CheckRoom, func(bucket uint64, minute int64, c *account.Counts) bool {
			_, err := l.log.Append(s.record(nil, bucket, minute, c))
			return err == nil
		})
	}
}

// CountPoints enters what became of points of a bucket into the account and the log: those that
// this node took from senders, and that other nodes store. lsn is 0 where there is nothing to wait
// for. The error wraps write.ErrDiskFull where the log has no room for them; refusals alone
// wait for it, as those of Refuse.
func (l *Ledger) CountPoints(bucket uint64, c *account.Counts) (lsn wal.LSN, err error) {
	switch {
	case c.ReceivedPoints() == 0:
		return 0, nil
	case c.ReceivedPoints() == c.RefusedTotal():
		return l.Refuse(bucket, c)
	}
	minute := l.minute()
	err = l.change(l.points.record(nil, bucket, minute, c), false, func(at wal.LSN) {
		lsn = at
		l.points.account.Add(l.owner(bucket), minute, c)
	})
	return lsn, err
}

// CountCopies enters copies of points that did not come by the log into the account of copies and
// the log. The error wraps write.ErrDiskFull where the log has no room for them.
func (l *Ledger) CountCopies(bucket uint64, c *account.Counts) error {
	minute := l.minute()
	return l.change(l.copies.record(nil, bucket, minute, c), false, func(wal.LSN) {
		l.copies.account.Add(l.owner(bucket), minute, c)
	})
}

// Rows are counts of points and of copies that are on their way into their accounts.
type Rows struct{ Points, Copies account.Rows }

// Add adds counts to a row of points or of copies.
func (r *Rows) Add(ofCopies bool, bucket uint64, minute int64, c *account.Counts) {
	if ofCopies {
		r.Copies.Add(bucket, minute, c)
	} else {
		r.Points.Add(bucket, minute, c)
	}
}

// Enter enters counts of the log into the accounts and calls done, in one moment of a flush.
func (l *Ledger) Enter(rows *Rows, done func()) {
	l.commit.RLock()
	defer l.commit.RUnlock()
	l.enter(&l.points, &rows.Points)
	l.enter(&l.copies, &rows.Copies)
	done()
}

func (l *Ledger) enter(s *sheet, rows *account.Rows) {
	rows.Take(func(bucket uint64, minute int64, c *account.Counts) bool {
		s.account.Add(l.owner(bucket), minute, c)
		return true
	})
}

// Count calls fn, which counts something in the account, in one moment of a flush.
func (l *Ledger) Count(fn func()) {
	l.commit.RLock()
	defer l.commit.RUnlock()
	fn()
}

// Snapshot calls fn while nothing is in log or account that is not in the other, and not
// done as well. Refusals that wait are in the log, unless that has no room for them.
func (l *Ledger) Snapshot(fn func()) {
	l.commit.Lock()
	defer l.commit.Unlock()
	l.logRefusals()
	fn()
}

// DeleteBucket takes a bucket that does not exist any more out of the account. Whoever
// found the bucket before has counted by then.
func (l *Ledger) DeleteBucket(bucket uint64) {
	l.commit.Lock()
	defer l.commit.Unlock()
	l.points.account.DeleteBucket(bucket)
	l.copies.account.DeleteBucket(bucket)
	l.events.account.DeleteBucket(bucket)
}

// WaitDurable waits until the record at lsn, and all before it, are on disk as the sync mode
// of the log has it. With wal.Off it is an error.
func (l *Ledger) WaitDurable(ctx context.Context, lsn wal.LSN) error {
	return l.log.WaitDurable(ctx, lsn)
}

// owner returns where the account has points of a bucket that may be gone.
func (l *Ledger) owner(bucket uint64) uint64 {
	if !l.o.Exists(bucket) {
		return account.DeletedBuckets
	}
	return bucket
}

// minute is the minute of arrival of what comes now.
func (l *Ledger) minute() int64 { return l.o.Clock.Unix() / int64(time.Minute) }
