package store

import (
	"context"
	"errors"
	"testing"

	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/replay"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// patient is a context that is cancelled after it was asked so many times.
type patient struct {
	context.Context
	left int
}

func (p *patient) Err() error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

// A query that is cancelled while it brings its group leaves the rest to the next
// one, wherever it was.
func TestACancelledReaderLeavesTheBacklog(t *testing.T) {
	// Not beside other tests: a reader must find a replay under way.
	most := 6
	if testing.Short() {
		most = 4
	}
	for looks := range most {
		w := newHalfRead(t, uint64(looks))
		info, err := w.s.BucketByName("b")
		if err != nil {
			t.Fatal(err)
		}
		cancelled, dst := 0, make([]uint64, modelSlots)
		for _, series := range w.known {
			err := w.s.Read(&patient{context.Background(), looks}, info, key(series), modelFrom, dst)
			if errors.Is(err, context.Canceled) {
				cancelled++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if looks < 3 && cancelled == 0 {
			t.Errorf("no reader was cancelled that looked %d times", looks)
		}
		w.read(40)
		w.writes(200)
		w.read(40)
		w.release()
		w.read(200)
		w.accounted()
		w.s.Crash()
	}
}

// A query that waits for room, or for somebody who does, goes when it is cancelled.
func TestAReaderThatWaitsForRoomCanBeCancelled(t *testing.T) {
	w := newHalfRead(t, 3)
	info, err := w.s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	w.s.flusher.Gate().Lock()
	w.s.pressure.AddSealed(1 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 3)
	for range cap(done) {
		go func() {
			done <- w.s.Read(ctx, info, key(w.known[0]), modelFrom, make([]uint64, modelSlots))
		}()
	}
	drivetest.Eventually(t, "the readers wait", func() bool {
		return w.s.pressure.WaitingSenders() == int64(cap(done))
	})
	cancel()
	for range cap(done) {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled reader: %v", err)
		}
	}
	w.s.pressure.AddSealed(-1 << 20)
	w.s.flusher.Gate().Unlock()
	w.release()
	w.read(200)
	w.accounted()
	w.s.Crash()
}

// replayPool is the use of the pool of the replay.
func (w *halfRead) replayPool() int64 {
	w.t.Helper()
	for _, p := range w.s.Memory().Pools() {
		if p.Name == "replay" {
			return p.Use
		}
	}
	w.t.Fatal("the replay has no pool")
	return 0
}

// What a start takes until the log is in memory is counted, and given back group
// by group.
func TestTheReplayGivesItsMemoryBack(t *testing.T) {
	w := newHalfRead(t, 7)
	r := w.s.replay
	first := w.replayPool()
	held := func() (n int64) {
		for _, l := range r.Pending() {
			n += l.Bytes
		}
		return n
	}
	if n := held(); n == 0 || r.PositionBytes() != n || first < n {
		t.Fatalf("%d bytes of positions: %d are counted, %d in the pool", n, r.PositionBytes(), first)
	}
	for _, l := range r.Pending() {
		if l.Group%2 == 0 {
			continue
		}
		before := w.replayPool()
		if err := r.Group(context.Background(), l.Group); err != nil {
			t.Fatal(err)
		}
		if after := w.replayPool(); after >= before {
			t.Errorf("the pool has %d bytes after group %d was brought, %d before", after, l.Group, before)
		}
	}
	if n := held(); r.PositionBytes() != n {
		t.Errorf("%d bytes of positions, %d are counted", n, r.PositionBytes())
	}
	w.release()
	if n := w.replayPool(); n != 0 || r.PositionBytes() != 0 {
		t.Errorf("%d bytes are in the pool after the replay, %d of them positions", n, r.PositionBytes())
	}
	w.s.Crash()
}

// A start that may take little memory for positions brings what it cannot keep, and
// finds all the same.
func TestPositionsAreBounded(t *testing.T) {
	for seed, limit := range []int64{1, 100, 2000} {
		w := newHalfRead(t, uint64(seed))
		all := w.s.replay.PositionBytes()
		w.o.maxPositions = limit
		w.crash()
		r := w.s.replay
		// A group may have half of its share when the others have all.
		if n := r.PositionBytes(); n > limit+limit/2+64*int64(len(r.Pending())) || n >= all {
			t.Errorf("%d bytes of positions with a limit of %d, %d without", n, limit, all)
		}
		w.accounted()
		w.writes(100)
		w.read(40)
		w.crash()
		w.release()
		w.read(200)
		w.accounted()
		w.s.Crash()
	}
}

// A node that is to end in the middle of a replay still waits for flushes: the log
// may hold more than memory may.
func TestAReplayWaitsForRoomUntilItIsOver(t *testing.T) {
	w := newHalfRead(t, 8)
	w.s.flusher.Gate().Lock()
	w.s.pressure.AddSealed(1 << 20)
	w.s.ReleaseSenders()
	close(w.hold)
	drivetest.Eventually(t, "the replay waits", func() bool {
		return w.s.pressure.WaitingSenders() > 0
	})
	if w.s.Stats().Replay.Left == 0 {
		t.Error("the replay is over")
	}
	w.s.pressure.AddSealed(-1 << 20)
	w.s.flusher.Gate().Unlock()
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	w.endedInOrder(200)
}

// Where no flush makes room the replay gives up when the node is to end, and only
// then; the next start has all.
func TestAReplayWithoutRoomEndsWithTheNode(t *testing.T) {
	w := newHalfRead(t, 4)
	clone := w.fs.CrashClone(vfs.CrashCloneCfg{})
	w.s.Crash()
	f := newFaults(clone)
	w.o.FS, w.hold = f.FS, make(chan struct{})
	w.o.holdReplay = w.hold
	w.s = mustOpen(t, w.o)
	w.readOne(w.known[0]) // and its group is in the head
	f.Fail("/flush/", errorfs.OpCreate)
	if _, err := w.s.flusher.All(context.Background()); !errors.Is(err, errorfs.ErrInjected) {
		t.Fatalf("a flush that cannot be written: %v", err)
	}
	w.s.pressure.AddSealed(1 << 20)
	close(w.hold)
	drivetest.Eventually(t, "the replay waits", func() bool {
		return w.s.pressure.WaitingSenders() > 0
	})
	x := mustSession(t, w.s, "b")
	w.s.ReleaseSenders()
	x.Point(key(1_000_000), epoch, 1)
	if err := x.Close(); !errors.Is(err, replay.ErrNoRoom) {
		t.Errorf("a new series: %v", err)
	}
	if err := w.s.Close(); !errors.Is(err, replay.ErrNoRoom) {
		t.Errorf("the end of the store: %v", err)
	}
	w.open(clone)
	w.read(50)
	w.release()
	w.read(200)
	w.accounted()
	w.s.Crash()
}

// A node whose log fails in the middle of a replay ends without the rest of it, and who
// waits for the replay hears why. The next start has all.
func TestAReplayEndsWhenTheLogHasFailed(t *testing.T) {
	w := newHalfRead(t, 9)
	clone := w.fs.CrashClone(vfs.CrashCloneCfg{})
	w.s.Crash()
	f := newFaults(clone)
	w.o.FS, w.hold = f.FS, make(chan struct{})
	w.o.holdReplay, w.o.FlushBytes = w.hold, 64<<20 // there is room for all of it
	w.s = mustOpen(t, w.o)
	f.Fail("/wal/", errorfs.OpFileSync, errorfs.OpFileSyncData)
	x := mustSession(t, w.s, "b")
	x.Point(key(w.known[0]), epoch, 1)
	if err := errors.Join(x.Close(), w.s.disk.Log.Sync()); !errors.Is(err, errorfs.ErrInjected) {
		t.Fatalf("a log that cannot be synced: %v", err)
	}
	drivetest.Eventually(t, "the store knows", func() bool { return w.s.pressure.Failure() != nil })
	x = mustSession(t, w.s, "b")
	waited := make(chan error)
	go func() {
		x.Point(key(1_000_000), epoch, 1)
		waited <- x.Close()
	}()
	close(w.hold)
	if err := <-waited; !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("a new series: %v", err)
	}
	if w.s.Stats().Replay.Left == 0 {
		t.Error("all of the log was read")
	}
	if err := w.s.Close(); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("the end of the store: %v", err)
	}
	w.open(clone)
	w.read(50)
	w.release()
	w.read(200)
	w.accounted()
	w.s.Crash()
}
