package store

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write/head"
)

// Random writes, ticks, flushes, clean restarts and crashes with any share of
// the unsynced bytes lost: what is there is always the first commits of what was
// sent, all that was durable among them, and of one more the first writes of each
// series; and the account says how many points that is (I1, I2, I3).
func TestAnyCrashLeavesAPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		l := newLived(t, r, func(o *Options) {
			o.FlushBytes = int64(rapid.SampledFrom([]int{1 << 10, 64 << 20}).Draw(t, "flush bytes"))
			o.CachePoints = rapid.SampledFrom([]int{60, 120, 720}).Draw(t, "cache_points")
			o.WALMaxSize = rapid.SampledFrom([]int64{8 << 10, 1 << 30}).Draw(t, "wal.max_size")
		})
		defer func() { l.s.Crash() }()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			step := rapid.SampledFrom([]string{"send", "send", "send", "tick", "flush", "sync", "crash",
				"reopen", "crowd"}).Draw(t, "step")
			switch {
			case l.step(step):
			case step == "send":
				sendSome(t, l.s, &l.h, r, l.clock)
			case step == "crowd":
				sendCrowd(t, l.s, &l.h, l.clock)
			case step == "sync":
				if err := l.s.disk.Log.Sync(); err != nil {
					t.Fatalf("sync: %v", err)
				}
				l.acked = len(l.h.writes)
			}
			l.check()
		}
	})
}

// cut forgets the writes that the crash took.
func (h *history) cut(t fataler, s *Store) history {
	info, err := s.BucketByName("b")
	if err != nil {
		return history{}
	}
	return h.left(t, s, info)
}

func sendSome(t fataler, s *Store, h *history, r *rand.Rand, clock *testClock) {
	x := mustSession(t, s, "b")
	for range 1 + r.IntN(40) {
		w := drivetest.RandCall(r, clock.Now().Unix())
		w.Send(x)
		h.add(w)
	}
	if err := x.Close(); err != nil {
		t.Fatalf("session: %v", err)
	}
	h.commit()
}

// sendCrowd fills more than a quarter of a block of 60 slots with points of other
// series: it becomes rows, and those behind it are.
func sendCrowd(t fataler, s *Store, h *history, clock *testClock) {
	x := mustSession(t, s, "b")
	now := clock.Now().Unix()
	for i := range 66 {
		w := call{Series: modelSeries + i, Slot: now - now%60, Words: make([]uint64, 60)}
		for j := range w.Words {
			w.Words[j] = point.FromInt(int64(i * j))
		}
		w.Send(x)
		h.add(w)
	}
	if err := x.Close(); err != nil {
		t.Fatalf("session: %v", err)
	}
	h.commit()
}

// A crash after every numbered step of a flush finds everything that was there
// before it.
func TestCrashAfterEveryFlushStep(t *testing.T) {
	t.Parallel()
	for step := flush.StepLogSynced; step <= flush.StepLogTrimmed; step++ {
		r := rand.New(rand.NewPCG(uint64(step), 7))
		clock := newTestClock()
		fs := vfs.NewCrashableMem()
		o := testOptions(fs, clock)
		var clone *vfs.MemFS
		armed := false
		o.flushStep = func(n int) {
			if armed && n == step {
				clone = fs.CrashClone(vfs.CrashCloneCfg{})
			}
		}
		s := mustOpen(t, o)
		var h history
		for range 3 {
			sendSome(t, s, &h, r, clock)
			if _, err := s.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			clock.Advance(100 * time.Second)
		}
		sendSome(t, s, &h, r, clock)
		armed = true
		if _, err := s.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.Crash()
		if clone == nil {
			t.Fatalf("step %d was not reached", step)
		}
		o.FS = clone
		s = mustOpen(t, o)
		h.check(t, s, "b", len(h.writes))
		// And the store goes on from there.
		sendSome(t, s, &h, r, clock)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
		h.check(t, s, "b", len(h.writes))
		s.Crash()
	}
}

// Eight senders write different values to the same slots; after a crash the
// replay gives what the last read gave.
func TestReplayGivesTheLastRead(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	fs := vfs.NewCrashableMem()
	o := testOptions(fs, clock)
	o.FlushBytes = 4 << 10
	s := mustOpen(t, o)
	var wg sync.WaitGroup
	for sender := range 8 {
		x := mustSession(t, s, "b")
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(sender), 3))
			for slot := range uint64(400) {
				for series := range modelSeries {
					x.Point(key((series+sender)%modelSeries), epoch+slot, point.FromInt(int64(r.IntN(1<<20))))
				}
				if _, err := x.Commit(); err != nil {
					t.Error(err)
				}
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	var want [modelSeries][]uint64
	for i := range want {
		want[i] = readAll(t, s, "b", i, epoch, 400)
	}
	o.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	info, _ := s.BucketByName("b")
	before := s.Account().Total(info.ID)
	s.Crash()
	s = mustOpen(t, o)
	defer s.Crash()
	for i := range want {
		for j, got := range readAll(t, s, "b", i, epoch, 400) {
			if got == 0 || got != want[i][j] {
				t.Fatalf("series %d slot %d: %x after the replay, %x before", i, j, got, want[i][j])
			}
		}
	}
	if after := s.Account().Total(info.ID); after != before ||
		after.ReceivedPoints() != 8*400*modelSeries {
		t.Errorf("account after the replay %+v, before %+v", after, before)
	}
}

// A sender that reconnects for every flush is predicted by the groups: its
// rows are logged in whole runs.
func TestPredictionSurvivesReconnects(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
	defer s.Crash()
	const series = 2*head.Width + 10
	records := func() int64 { return s.disk.Log.Stats().Records }
	for flush := range uint64(3) {
		before := records()
		x := mustSession(t, s, "b")
		for i := range series {
			x.Point(key(i), epoch+flush, point.FromInt(int64(i)))
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if n := records() - before; flush > 0 && n != 3 {
			t.Errorf("flush %d made %d log records, want 3: one a group", flush, n)
		}
	}
}

func TestAlwaysWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	clock := newTestClock()
	o := testOptions(fs, clock)
	o.WALSync = wal.Always
	s := mustOpen(t, o)
	x := mustSession(t, s, "b")
	x.Point(key(1), epoch, point.FromInt(5))
	lsn, err := x.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.intake.WaitDurable(t.Context(), lsn); err != nil {
		t.Fatal(err)
	}
	o.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	s = mustOpen(t, o)
	defer s.Crash()
	if got := readAll(t, s, "b", 1, epoch, 1)[0]; got != point.FromInt(5) {
		t.Errorf("an acknowledged point reads %x after the crash", got)
	}
}

// A catalogue that is gone, or that silently opens in an older state, is
// rebuilt from the segments and the log.
func TestALostCatalogueIsRebuilt(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	fs := vfs.NewMem()
	o := testOptions(fs, clock)
	s := mustOpen(t, o)
	r := rand.New(rand.NewPCG(1, 2))
	var h history
	for range 2 {
		sendSome(t, s, &h, r, clock)
		if _, err := s.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	sendSome(t, s, &h, r, clock)
	s.Crash()
	if err := fs.RemoveAll("/data/catalogue"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start finds the rebuilt one in order
		s = mustOpen(t, o)
		h.check(t, s, "b", len(h.writes))
		s.Crash()
	}
	s = mustOpen(t, o)
	defer s.Crash()
	if names, n := s.Damage(); n != 0 {
		t.Errorf("the rebuilt catalogue is damaged: %v", names)
	}
}
