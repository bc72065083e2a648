package ledger

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/history"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is the disk of a test, and what it says of itself.
type disk struct {
	mem  vfs.FS
	full bool
	free int64
}

// open returns a ledger over an empty log, of a node with bucket 7.
func open(t *testing.T, d *disk) *Ledger {
	t.Helper()
	d.mem = vfs.NewMem()
	log, err := wal.Open(wal.Options{FS: d.mem, Dir: "wal", Logger: slog.New(slog.DiscardHandler),
		OnFailure: func(err error) {
			t.Error(err)
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Replay(0, func(wal.LSN, []byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	l := New(Options{
		Account: account.New(), Clock: clock.New(func() time.Time { return time.Unix(120, 0) }),
		Exists:   func(bucket uint64) bool { return bucket == 7 },
		DiskFull: func() bool { return d.full }, FreeSpace: func() (int64, bool) { return d.free, true },
	})
	l.Use(log)
	return l
}

// countLogged returns how many points the log counts, by bucket.
func (d *disk) countLogged(t *testing.T, l *Ledger) map[uint64]uint64 {
	t.Helper()
	if err := l.log.Sync(); err != nil {
		t.Error(err)
	}
	sum := make(map[uint64]uint64)
	_, err := wal.Inspect(d.mem, "wal", [16]byte{}, 0, func(_ wal.LSN, rec []byte) error {
		p, err := logrecord.Parse(rec)
		if err == nil {
			sum[p.Bucket] += p.Counts.ReceivedPoints()
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return sum
}

// countOf returns how many points the account has of a bucket.
func countOf(a *account.Account, bucket uint64) uint64 {
	c := a.Total(bucket)
	return c.ReceivedPoints()
}

// What is refused on a full disk is in the account at once, and in the log as soon as that
// has room; what is refused otherwise is in both at once.
func TestRefusalsWaitForRoom(t *testing.T) {
	d := &disk{full: true, free: reserve - 1}
	l := open(t, d)
	c := &account.Counts{}
	c.Refused[account.DiskFull] = 3
	refuse := func(bucket uint64, logged bool) {
		t.Helper()
		if lsn, err := l.Refuse(bucket, c); err != nil || (lsn != 0) != logged {
			t.Fatalf("refused at %d, %v", lsn, err)
		}
	}
	refuse(7, false)
	refuse(7, false)
	refuse(8, false)
	if n := countOf(l.o.Account, 7); n != 6 {
		t.Errorf("the account has %d points, want 6", n)
	}
	if n := countOf(l.o.Account, account.DeletedBuckets); n != 3 {
		t.Errorf("the account has %d points of deleted buckets, want 3", n)
	}
	l.LogRefusals()
	if got := d.countLogged(t, l); len(got) != 0 {
		t.Errorf("without room the log has refusals: %v", got)
	}
	d.free = reserve
	l.Snapshot(func() {
		if got := d.countLogged(t, l); got[7] != 6 || got[8] != 3 {
			t.Errorf("at a snapshot the log has %v, want 6 and 3", got)
		}
	})
	d.full = false
	refuse(7, true)
	l.LogRefusals() // nothing waits any more
	if got := d.countLogged(t, l); got[7] != 9 || got[8] != 3 {
		t.Errorf("the log has %v, want 9 and 3", got)
	}
}

// Without room for their records, changes are refused, and are not done.
func TestChangesNeedRoom(t *testing.T) {
	d := &disk{free: reserve - 1}
	l := open(t, d)
	done := 0
	change := func() { done++ }
	_, err := l.Delete([]byte("a deletion"), true)
	for _, err := range []error{l.Change([]byte("a change"), change),
		l.ChangeTwice([]byte("a change"), change), err, l.CheckRoom()} {
		if !errors.Is(err, write.ErrDiskFull) {
			t.Errorf("without room: %v", err)
		}
	}
	d.free = reserve
	_, err = l.Delete([]byte("a deletion"), true)
	if err := errors.Join(l.Change([]byte("a change"), change),
		l.ChangeTwice([]byte("a change"), change), err); err != nil || done != 2 {
		t.Errorf("with room %d changes were done: %v", done, err)
	}
}

// Whenever a snapshot is taken, what the log counts below its end is in the account, and
// nothing else is.
func TestSnapshotsAgree(t *testing.T) {
	const writes = 300
	d := &disk{free: 1 << 30}
	l := open(t, d)
	var done sync.WaitGroup
	for id := range uint32(3) {
		done.Go(func() {
			g := head.NewGroup(id, 7, 60, new(head.Arenas).ArenaFor(60), new(history.Journal))
			into := account.Counts{}
			w := l.NewWriter(false, &into)
			for slot := range int64(writes) {
				a, err := w.Write(g, &head.Write{Slot: slot, Words: []uint64{point.FromInt(slot)},
					Epoch: g.Columns().Epoch()})
				if err != nil || a.Dead || a.Stale {
					t.Errorf("a write: %+v, %v", a, err)
				}
			}
			refused := account.Counts{}
			refused.Refused[account.Future] = 1
			before := w.LastLSN()
			if err := w.Refuse(7, &refused); err != nil || w.LastLSN() <= before {
				t.Errorf("the last record is at %d behind one at %d: %v", w.LastLSN(), before, err)
			}
			if into.ReceivedPoints() != writes+1 || into.RefusedTotal() != 1 {
				t.Errorf("of %d points and a refusal: %+v", writes, into)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		done.Wait()
		close(over)
	}()
	for end := false; !end; {
		select {
		case <-over:
			end = true
		default:
		}
		l.Snapshot(func() {
			if got, want := countOf(l.o.Account, 7), d.countLogged(t, l)[7]; got != want {
				t.Errorf("the account has %d points, the log %d", got, want)
			}
		})
	}
	if n := countOf(l.o.Account, 7); n != 3*(writes+1) {
		t.Errorf("the account has %d points of %d", n, 3*(writes+1))
	}
}

// Counts of a start are in the account when what stands for them is set, those of buckets
// that are gone under their own id.
func TestEnteredRows(t *testing.T) {
	l := open(t, &disk{})
	var rows Rows
	rows.Add(false, 7, 1, &account.Counts{Accepted: 5})
	rows.Add(false, 8, 1, &account.Counts{Accepted: 2})
	entered := false
	l.Enter(&rows, func() { entered = true })
	a := l.o.Account
	if a.Total(7).Accepted != 5 || a.Total(account.DeletedBuckets).Accepted != 2 || !entered ||
		rows.Points.Len() != 0 {
		t.Errorf("%+v, %+v, entered %t, %d rows are left", a.Total(7), a.Total(account.DeletedBuckets),
			entered, rows.Points.Len())
	}
	l.Count(func() { a.Lose("a cause", 1) })
	l.DeleteBucket(7)
	if n := a.Total(account.DeletedBuckets).Accepted; n != 7 || len(a.Losses()) != 1 {
		t.Errorf("%d points of deleted buckets, lost %+v", n, a.Losses())
	}
}
