package store

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write/intake"
)

const (
	manySenders = 4
	manySeries  = 400 // of a sender: two groups
	manySlots   = 150
)

// manyGroups sends rows of several senders that are not in step, new series on
// the way, points that are sent again with another value, and late ones. It
// returns the last word of every series and slot, from modelFrom on.
func manyGroups(t *testing.T, s *Store, clock *testClock) (want [][]uint64, sent account.Counts) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 9))
	want = make([][]uint64, manySenders*manySeries)
	for i := range want {
		want[i] = make([]uint64, modelSlots)
	}
	var sessions [manySenders]*intake.Session
	for i := range sessions {
		sessions[i] = mustSession(t, s, "b")
	}
	point1 := func(x *intake.Session, series int, slot int64) {
		w := point.FromInt(r.Int64N(1 << (8 * r.IntN(5))))
		x.Point(key(series), uint64(slot), w)
		want[series][slot-modelFrom] = w
		sent.Accepted++
	}
	for slot := range int64(manySlots) {
		for n, i := range r.Perm(manySenders) {
			for series := range manySeries * (n + 1 + int(slot)) / (manySenders + manySlots) {
				point1(sessions[i], i*manySeries+series, epoch+slot)
				if r.IntN(50) == 0 {
					point1(sessions[i], i*manySeries+series, epoch+slot-r.Int64N(1000))
				}
			}
			if _, err := sessions[i].Commit(); err != nil {
				t.Fatal(err)
			}
		}
		clock.Advance(time.Second)
		s.clock.Advance()
	}
	return want, sent
}

// A replay applies groups side by side, and a flush in the middle of one is
// followed by a crash: every point is there, with its last value, and counted
// once.
func TestReplayOfManyGroups(t *testing.T) {
	// Not beside other tests: a flush must come while a replay runs.
	clock, fs := newTestClock(), vfs.NewCrashableMem()
	o := testOptions(fs, clock)
	s := mustOpen(t, o)
	want, sent := manyGroups(t, s, clock)
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	o.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	s.Crash()
	check := func(s *Store) {
		t.Helper()
		info, err := s.BucketByName("b")
		if err != nil {
			t.Fatal(err)
		}
		total := s.Account().Total(info.ID)
		if total.ReceivedPoints() != sent.Accepted || total.StoredPoints() != sent.Accepted {
			t.Fatalf("%d points were sent, the account has %+v", sent.Accepted, total)
		}
		drivetest.CheckMinutes(t, s, info.ID, total)
		for series := 0; series < len(want); series += 7 {
			for i, got := range readAll(t, s, "b", series, modelFrom, modelSlots) {
				if got != want[series][i] {
					t.Fatalf("series %d, slot epoch%+d: %x, want %x", series, int64(i)+modelFrom-epoch, got,
						want[series][i])
				}
			}
		}
	}
	o.FlushBytes = 64 << 10 // rounds of 16 KiB
	flushes := 0
	for range 3 {
		fs = o.FS.(*vfs.MemFS)
		midway := fs
		o.flushStep = func(step int) {
			if step == flush.StepCommitted {
				flushes++
				midway = fs.CrashClone(vfs.CrashCloneCfg{})
			}
		}
		s = mustOpen(t, o)
		check(s)
		s.Crash()
		o.FS = midway
	}
	if flushes == 0 {
		t.Error("no flush during a replay")
	}
}
