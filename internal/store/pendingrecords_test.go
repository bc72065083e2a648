package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/intake"
)

// halfRead is a store that has read its log once: what it has of points comes
// into the head when somebody wants it, or when hold is closed.
type halfRead struct {
	t               *testing.T
	r               *rand.Rand
	clock           *testClock
	fs              *vfs.MemFS
	o               Options
	s               *Store
	hold            chan struct{}
	want            [][]uint64
	known           []int // series
	gone            []int // that lost their definition
	replayPositions flush.Positions
	received        uint64
}

func newHalfRead(t *testing.T, seed uint64) *halfRead {
	t.Helper()
	w := newUnread(t, seed)
	w.o.FlushBytes = smallRounds
	w.crash()
	return w
}

// smallRounds is a size of flushes that makes a replay one of rounds of 16 KiB. It
// also makes a flush that names all series due when a few seconds are over.
const smallRounds = 64 << 10

// newUnread is the store of newHalfRead before its crash: all is in the head, and
// no flush is due.
func newUnread(t *testing.T, seed uint64) *halfRead {
	t.Helper()
	w := &halfRead{t: t, r: rand.New(rand.NewPCG(seed, 4)), clock: newTestClock(),
		fs: vfs.NewCrashableMem()}
	w.o = testOptions(w.fs, w.clock)
	w.s = mustOpen(t, w.o)
	var sent account.Counts
	w.want, sent = manyGroups(t, w.s, w.clock)
	w.received = sent.Accepted
	info, err := w.s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.want {
		if w.s.columns.Index.Has(metric.Series(info.ID, key(i))) {
			w.known = append(w.known, i)
		}
	}
	return w
}

// crash opens the store again after a crash that keeps what was synced, which is
// all.
func (w *halfRead) crash() {
	w.t.Helper()
	if err := w.s.disk.Log.Sync(); err != nil {
		w.t.Fatal(err)
	}
	clone := w.fs.CrashClone(vfs.CrashCloneCfg{})
	w.s.Crash()
	w.open(clone)
}

func (w *halfRead) open(fs *vfs.MemFS) {
	w.t.Helper()
	w.fs, w.o.FS, w.hold = fs, fs, make(chan struct{})
	w.o.holdReplay = w.hold
	w.s = mustOpen(w.t, w.o)
	w.s.flusher.Gate().Lock()
	now := w.s.flusher.Positions()
	w.s.flusher.Gate().Unlock()
	for group := range uint32(40) {
		if now.Of(group) < w.replayPositions.Of(group) {
			w.t.Fatalf("the replay position of group %d fell from %d to %d", group,
				w.replayPositions.Of(group), now.Of(group))
		}
	}
	w.replayPositions = now
}

// write sends a point to a known series: on time, over one that is there, or late.
func (w *halfRead) write(x *intake.Session) {
	series := w.known[w.r.IntN(len(w.known))]
	slot := epoch + int64(manySlots) - w.r.Int64N(20)
	if w.r.IntN(4) == 0 {
		slot = epoch + int64(manySlots) - w.r.Int64N(1000)
	}
	word := point.FromInt(w.r.Int64N(1000))
	x.Point(key(series), uint64(slot), word)
	w.want[series][slot-modelFrom] = word
	w.received++
}

func (w *halfRead) writes(n int) {
	w.t.Helper()
	x := mustSession(w.t, w.s, "b")
	for range n {
		w.write(x)
	}
	if err := x.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// read compares some series with what was sent.
func (w *halfRead) read(n int) {
	w.t.Helper()
	for range n {
		w.readOne(w.r.IntN(len(w.want)))
	}
}

func (w *halfRead) readOne(series int) {
	w.t.Helper()
	for i, got := range readAll(w.t, w.s, "b", series, modelFrom, modelSlots) {
		if got != w.want[series][i] {
			w.t.Fatalf("series %d, slot epoch%+d: %x, want %x", series, int64(i)+modelFrom-epoch, got,
				w.want[series][i])
		}
	}
}

// accounted checks that every point that was sent was counted once.
func (w *halfRead) accounted() {
	w.t.Helper()
	info, err := w.s.BucketByName("b")
	if err != nil {
		w.t.Fatal(err)
	}
	total := w.s.Account().Total(info.ID)
	if total.ReceivedPoints() != w.received || total.StoredPoints() != w.received {
		w.t.Fatalf("%d points were sent, the account has %+v", w.received, total)
	}
	drivetest.CheckMinutes(w.t, w.s, info.ID, total)
	if lost := w.s.Account().Losses(); len(lost) > 0 {
		w.t.Fatalf("lost: %+v", lost)
	}
}

func (w *halfRead) release() {
	w.t.Helper()
	close(w.hold)
	if err := w.s.replay.All(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	if left := w.s.Stats().Replay.Left; left != 0 {
		w.t.Fatalf("%d bytes of the log are left after the replay", left)
	}
}

// Points are taken and read before the log is in memory. They lie over what the
// log has of their slots, whatever of it is in memory already, and a crash at any
// time loses none of either: after a flush of some groups, in one, and after both.
func TestInUseBeforeTheLogIsInMemory(t *testing.T) {
	// Not beside other tests: a flush must come while a replay runs.
	flushes := 0
	for seed := range uint64(3) {
		w := newHalfRead(t, seed)
		for range 6 {
			if w.s.Stats().Replay.Left == 0 {
				t.Fatal("nothing of the log is left to be read")
			}
			w.accounted()
			w.writes(w.r.IntN(300))
			w.read(20)
			var midway *vfs.MemFS
			if w.r.IntN(2) == 0 {
				step := w.r.IntN(flush.StepLogTrimmed + 1)
				if err := w.s.disk.Log.Sync(); err != nil {
					t.Fatal(err)
				}
				atSteps(w.s, func(n int) {
					if n == step && midway == nil {
						midway = w.fs.CrashClone(vfs.CrashCloneCfg{})
					}
				})
				if _, err := w.s.flusher.All(context.Background()); err != nil {
					t.Fatal(err)
				}
				flushes++
			}
			switch {
			case midway != nil:
				w.s.Crash()
				w.open(midway)
			case w.r.IntN(3) == 0:
				close(w.hold)
				w.writes(100) // beside the replay
				w.read(10)
				w.crash()
			default:
				w.crash()
			}
		}
		w.accounted()
		w.release()
		w.read(300)
		w.accounted()
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
		w.s = mustOpen(t, w.o)
		w.read(100)
		w.s.Crash()
	}
	if flushes == 0 {
		t.Error("no flush before the log was in memory")
	}
}

// Sessions and readers replay groups while the replay goes on: what is found is
// what was sent.
func TestBringingBesideTheReplay(t *testing.T) {
	w := newHalfRead(t, 9)
	defer func() { w.s.Crash() }()
	var users sync.WaitGroup
	info, err := w.s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		users.Go(func() {
			dst := make([]uint64, modelSlots)
			for range 60 {
				series := w.known[r.IntN(len(w.known))]
				if series%2 == 0 { // somebody writes to it
					continue
				}
				if err := w.s.Read(context.Background(), info, key(series), modelFrom, dst); err != nil {
					t.Error(err)
					return
				}
				for i, got := range dst {
					if got != w.want[series][i] {
						t.Errorf("series %d, slot epoch%+d: %x, want %x", series, int64(i)+modelFrom-epoch, got,
							w.want[series][i])
						return
					}
				}
			}
		})
	}
	x := mustSession(t, w.s, "b")
	close(w.hold)
	for range 2000 {
		series, slot := w.known[w.r.IntN(len(w.known))], epoch+int64(manySlots)-w.r.Int64N(30)
		if series%2 == 1 {
			continue
		}
		word := point.FromInt(w.r.Int64N(1000))
		x.Point(key(series), uint64(slot), word)
		w.want[series][slot-modelFrom] = word
		w.received++
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	users.Wait()
	if err := w.s.replay.All(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.accounted()
	w.read(200)
}

// A new series waits until the log is in memory; a sender that cannot wait is
// told so. A flush by hand and the deletion of a series wait as well.
func TestNewSeriesWaitForTheReplay(t *testing.T) {
	w := newHalfRead(t, 5)
	defer func() { w.s.Crash() }()
	nonBlocking := drivetest.SessionWith(t, w.s, "b", write.Options{NeverWait: true})
	nonBlocking.Point(key(1_000_000), epoch, point.FromInt(1))
	if err := nonBlocking.Close(); err != nil {
		t.Fatal(err)
	}
	if got := nonBlocking.Totals(); got.Refused != 1 {
		t.Errorf("a new series of a sender that cannot wait: %+v", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.s.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a flush before the log is in memory: %v", err)
	}
	if _, err := w.s.DeleteSeries(ctx, "b", deletion.Choice{Key: key(3)}, false); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a deletion before the log is in memory: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		x := mustSession(t, w.s, "b")
		x.Point(key(1_000_001), epoch, point.FromInt(7))
		done <- x.Close()
	}()
	drivetest.Eventually(t, "the log is left alone", func() bool {
		return w.s.Stats().Replay.Left > 0
	})
	select {
	case err := <-done:
		t.Fatalf("a new series did not wait: %v", err)
	default:
	}
	w.release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, w.s, "b", 1_000_001, epoch, 1); got[0] != point.FromInt(7) {
		t.Errorf("the new series has %x", got[0])
	}
}

// A store that is closed while its log comes into memory has nothing to replay
// the next time.
func TestCloseDuringTheReplay(t *testing.T) {
	w := newHalfRead(t, 1)
	hold, s := w.hold, w.s
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	close(hold)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	w.endedInOrder(100)
}

// endedInOrder opens a store that was closed, which has nothing to replay and holds
// everything, and reads some of it.
func (w *halfRead) endedInOrder(reads int) {
	w.t.Helper()
	w.open(w.fs)
	if n := w.s.Stats().Replay.Records; n != 0 {
		w.t.Errorf("%d records were replayed after an orderly end", n)
	}
	w.release()
	w.read(reads)
	w.accounted()
	w.s.Crash()
}

// What a failing device does not give back ends the store, and its users are
// told.
func TestABacklogThatCannotBeRead(t *testing.T) {
	w := newHalfRead(t, 6)
	names, err := w.fs.List("/data/wal")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := w.fs.Remove("/data/wal/" + name); err != nil {
			t.Fatal(err)
		}
	}
	info, err := w.s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.s.Read(context.Background(), info, key(0), epoch, make([]uint64, 1)); err == nil {
		t.Error("a read of what cannot be read")
	}
	x := mustSession(t, w.s, "b")
	x.Point(key(0), epoch, point.FromInt(1))
	if err := x.Close(); err == nil {
		t.Error("a write over what cannot be read")
	}
	close(w.hold)
	deadline, cancel := context.WithTimeout(context.Background(), drivetest.Patience)
	defer cancel()
	if err := w.s.replay.All(deadline); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after a replay that failed: %v", err)
	}
	w.s.Crash()
}
