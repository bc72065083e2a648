package store

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/logrecord"
)

// sendCopies sends n points of a series, as copies or as a sender would.
func sendCopies(t fataler, s *Store, copies bool, series int, slot int64, n int) {
	t.Helper()
	x := drivetest.SessionWith(t, s, "b", write.Options{Copies: copies})
	for i := range int64(n) {
		x.Point(key(series), uint64(slot+i), point.FromInt(i))
	}
	if err := x.Close(); err != nil {
		t.Fatalf("%v", err)
	}
}

// Copies count in the ledger of copies, points in the account, and what other nodes store in the
// account alone: exactly once, at whichever step of a flush the node is killed.
func TestCopiesCountApart(t *testing.T) {
	t.Parallel()
	for at := range flush.StepMerged {
		clock, fs := newTestClock(), vfs.NewCrashableMem()
		o := testOptions(fs, clock)
		byHand(&o)
		s := mustOpen(t, o)
		info := mustCreate(t, s, "b", 1000, false)
		want, copies := account.Counts{}, account.Counts{}
		round := func(r int64) {
			sendCopies(t, s, true, 1, epoch+10*r, 5)
			sendCopies(t, s, false, 2, epoch+10*r, 3)
			elsewhere := account.Counts{Accepted: 7, Late: 1}
			elsewhere.Refused[account.Unconfirmed] = 2
			token, err := s.CountPoints(info.ID, &elsewhere)
			if err != nil || token.Position == 0 {
				t.Fatalf("%+v, %v", token, err)
			}
			if token, err := s.CountPoints(info.ID, &account.Counts{}); err != nil || token.Position != 0 {
				t.Fatalf("of nothing: %+v, %v", token, err)
			}
			want.Add(&elsewhere)
			want.Accepted += 3
			copies.Accepted += 5
		}
		round(0)
		mustFlush(t, s)
		round(1)
		if err := s.disk.Log.Sync(); err != nil {
			t.Fatal(err)
		}
		var clone *vfs.MemFS
		atSteps(s, func(step int) {
			if step == at && clone == nil {
				clone = fs.CrashClone(vfs.CrashCloneCfg{})
			}
		})
		mustFlush(t, s)
		check := func() {
			t.Helper()
			if got := s.Account().Total(info.ID); got != want {
				t.Errorf("step %d: the account has %+v, want %+v", at, got, want)
			}
			if got := s.Copies().Total(info.ID); got != copies {
				t.Errorf("step %d: %+v copies, want %+v", at, got, copies)
			}
		}
		check()
		s.Crash()
		if clone == nil {
			continue // no flush has that step
		}
		o.FS, fs = clone, clone
		s = mustOpen(t, o)
		check()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
		check()
		if err := s.DeleteBucket("b"); err != nil {
			t.Fatal(err)
		}
		if got := s.Copies().Total(account.DeletedBuckets); got != copies {
			t.Errorf("of deleted buckets %+v copies, want %+v", got, copies)
		}
		s.Crash()
	}
}

// Copies are not judged by age: the node that took them from a sender has done that. Slots that
// cannot be are refused.
func TestCopiesAreNotJudged(t *testing.T) {
	t.Parallel()
	o := testOptions(vfs.NewMem(), newTestClock())
	s := mustOpen(t, o)
	defer s.Crash()
	info, err := s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 10, TTL: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range []int64{epoch - 5000, epoch + int64(o.MaxFuture/time.Second) + 500,
		buckets.MaxSlot} {
		sendCopies(t, s, true, 1, slot, 1)
		sendCopies(t, s, false, 1, slot, 1)
	}
	a, c := s.Account().Total(info.ID), s.Copies().Total(info.ID)
	if a.StoredPoints() != 0 || a.Refused[account.Expired] != 1 || a.Refused[account.Future] != 2 {
		t.Errorf("points: %+v", a)
	}
	if c.StoredPoints() != 2 || c.Refused[account.Future] != 1 || c.ReceivedPoints() != 3 {
		t.Errorf("copies: %+v", c)
	}
}

// What damage takes of copies from the log is lost in the ledger of copies, by the heads of their
// records, and what it takes of points in the account.
func TestLostCopiesAreNoLostPoints(t *testing.T) {
	t.Parallel()
	for _, copies := range []bool{true, false} {
		fs := vfs.NewCrashableMem()
		o := testOptions(fs, newTestClock())
		byHand(&o)
		s := mustOpen(t, o)
		info := mustCreate(t, s, "b", 1000, false)
		sendCopies(t, s, copies, 1, epoch, 40)
		if err := s.disk.Log.Sync(); err != nil { // else it would be the torn end of a crash
			t.Fatal(err)
		}
		sendCopies(t, s, !copies, 1, epoch+100, 30)
		if err := s.disk.Log.Sync(); err != nil {
			t.Fatal(err)
		}
		var of wal.LSN
		var size int
		_, err := wal.Inspect(fs, "/data/wal", [16]byte{}, 0, func(lsn wal.LSN, rec []byte) error {
			if p, err := logrecord.Parse(rec); err == nil && p.Kind.Points() && p.Copies == copies {
				of, size = lsn, len(rec)
			}
			return nil
		})
		if err != nil || of == 0 {
			t.Fatal(err, of)
		}
		file := onlyLogFile(t, fs)
		clone := fs.CrashClone(vfs.CrashCloneCfg{})
		s.Crash()
		flipByte(t, clone, file, 64+int64(of)-1+int64(size))
		o.FS = clone
		for range 2 {
			s = mustOpen(t, o)
			if err := s.replay.All(t.Context()); err != nil {
				t.Fatal(err)
			}
			lost, kept := s.Copies(), s.Account()
			if !copies {
				lost, kept = kept, lost
			}
			if l := lost.Losses(); len(l) != 1 || l[0].Points == 0 || len(kept.Losses()) != 0 {
				t.Errorf("copies %t: lost %+v and %+v", copies, l, kept.Losses())
			}
			if a, b := lost.Total(info.ID), kept.Total(info.ID); a.StoredPoints() != 40 ||
				b.StoredPoints() != 30 {
				t.Errorf("copies %t: stored %+v and %+v", copies, a, b)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
