package store

import (
	"context"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/replay"
	"dalmatiner/internal/write/logrecord"
)

// onlyLogFile returns the path of the one file of records that the log has.
func onlyLogFile(t *testing.T, fs vfs.FS) string {
	t.Helper()
	names, err := fs.List("/data/wal")
	names = slices.DeleteFunc(names, func(name string) bool { return name == "LAST" })
	if err != nil || len(names) != 1 {
		t.Fatalf("files of the log: %v, %v", names, err)
	}
	return "/data/wal/" + names[0]
}

// loseDefinitions damages the definitions of some series in the log of a store
// that is held in its replay, and opens it again.
func (w *halfRead) loseDefinitions(n int) {
	w.t.Helper()
	info, err := w.s.BucketByName("b")
	if err != nil {
		w.t.Fatal(err)
	}
	var defined []int64
	names := map[int64]metric.SeriesID{}
	err = w.s.disk.Log.ReplayAgain(1, func(lsn wal.LSN, rec []byte) error {
		if p, err := logrecord.Parse(rec); err == nil && p.Kind == logrecord.Series {
			defined = append(defined, int64(lsn))
			names[int64(lsn)] = metric.Series(info.ID, p.Key)
		}
		return nil
	})
	if err != nil || len(defined) < 10*n {
		w.t.Fatalf("%d definitions: %v", len(defined), err)
	}
	file := onlyLogFile(w.t, w.fs)
	if err := w.s.disk.Log.Sync(); err != nil {
		w.t.Fatal(err)
	}
	clone := w.fs.CrashClone(vfs.CrashCloneCfg{})
	w.s.Crash()
	lost := map[metric.SeriesID]bool{}
	for _, i := range w.r.Perm(len(defined))[:n] {
		flipByte(w.t, clone, file, 64+defined[i]-1+10)
		lost[names[defined[i]]] = true
	}
	kept := w.known[:0]
	for _, i := range w.known {
		if lost[metric.Series(info.ID, key(i))] {
			clear(w.want[i])
			w.gone = append(w.gone, i)
		} else {
			kept = append(kept, i)
		}
	}
	if w.known = kept; len(w.gone) != n {
		w.t.Fatalf("%d of %d series are known", len(w.gone), n)
	}
	w.open(clone)
}

// lostOf returns what the account has lost, which is of one cause.
func lostOf(t *testing.T, s *Store) uint64 {
	t.Helper()
	switch lost := s.Account().Losses(); {
	case len(lost) == 0:
		return 0
	case len(lost) > 1 || lost[0].Cause != replay.LostRecord:
		t.Fatalf("lost: %+v", lost)
		return 0
	default:
		return lost[0].Points
	}
}

// Damage took definitions from the log, and starts break off in the middle of the
// replay, before, in and behind flushes: the points without a series are counted
// as lost once, and as often as by a start that nothing interrupts. So they are
// when others are given their columns.
func TestLossesOfAReplayAreCountedOnce(t *testing.T) {
	t.Parallel()
	flushes, partly, seeds := 0, 0, uint64(6)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		w := newUnread(t, seed)
		w.crash() // no flush may name the series before they are lost
		w.o.FlushBytes = smallRounds
		w.loseDefinitions(3)
		whole := w.fs.CrashClone(vfs.CrashCloneCfg{})
		w.release()
		lost := lostOf(t, w.s)
		if lost == 0 {
			t.Fatal("the damage lost nothing")
		}
		w.s.Crash()
		w.open(whole)
		for range 8 {
			all := w.s.replay.Pending()
			for range w.r.IntN(4) {
				if err := w.s.replay.Group(context.Background(), all[w.r.IntN(len(all))].Group); err != nil {
					t.Fatal(err)
				}
			}
			if n := lostOf(t, w.s); n > 0 && n < lost {
				partly++
			}
			w.writes(w.r.IntN(50))
			if w.r.IntN(3) == 0 {
				close(w.hold) // the flush is beside the second reading
			}
			flushes += w.crashInAFlush()
			if w.s.Stats().Replay.Left == 0 {
				break
			}
		}
		w.release()
		if n := lostOf(t, w.s); n != lost {
			t.Fatalf("seed %d: %d points are lost, want %d", seed, n, lost)
		}
		w.comeBack(lost)
	}
	if flushes == 0 || partly == 0 {
		t.Errorf("%d flushes before the log was in memory, %d with a part of the losses", flushes, partly)
	}
}

// crashInAFlush opens the store again as a crash at some step of a flush left it,
// or one before it. It returns 1 when the flush was committed.
func (w *halfRead) crashInAFlush() (committed int) {
	w.t.Helper()
	if err := w.s.disk.Log.Sync(); err != nil {
		w.t.Fatal(err)
	}
	var midway *vfs.MemFS
	step := w.r.IntN(flush.StepLogTrimmed + 1)
	atSteps(w.s, func(n int) {
		if n == step && midway == nil {
			midway = w.fs.CrashClone(vfs.CrashCloneCfg{})
		}
	})
	var err error
	if w.r.IntN(2) == 0 {
		err = w.s.flusher.Sealed()
	} else {
		_, err = w.s.flusher.All(context.Background())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if midway == nil { // a step of writing, and nothing was to be written
		midway, step = w.fs.CrashClone(vfs.CrashCloneCfg{}), flush.StepLogTrimmed
	}
	w.s.Crash()
	w.open(midway)
	if step >= flush.StepCommitted {
		committed = 1
	}
	return committed
}

// comeBack sends the series again that lost their definition, with crashes in
// between: they get columns, others as well, and what is lost stays as it is.
func (w *halfRead) comeBack(lost uint64) {
	w.t.Helper()
	for n := range 4 {
		x := mustSession(w.t, w.s, "b")
		for i := range 300 { // there is no free column that none of them gets
			x.Point(key(len(w.want)+n*300+i), epoch+manySlots, point.FromInt(1))
			w.received++
		}
		for _, series := range w.gone {
			slot, word := epoch+int64(manySlots)-w.r.Int64N(5), point.FromInt(w.r.Int64N(1000))
			x.Point(key(series), uint64(slot), word)
			w.want[series][slot-modelFrom] = word
			w.received++
		}
		if err := x.Close(); err != nil {
			w.t.Fatal(err)
		}
		for range w.r.IntN(3) {
			w.crashInAFlush()
		}
		w.crash()
		w.release()
		if n := lostOf(w.t, w.s); n != lost {
			w.t.Fatalf("%d points are lost, want %d", n, lost)
		}
		for _, series := range w.gone {
			w.readOne(series)
		}
	}
	w.read(100)
	info, err := w.s.BucketByName("b")
	if err != nil {
		w.t.Fatal(err)
	}
	if total := w.s.Account().Total(info.ID); total.ReceivedPoints() != w.received ||
		total.StoredPoints() != w.received {
		w.t.Fatalf("%d points were sent, the account has %+v", w.received, total)
	}
	if err := w.s.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open(w.fs)
	if n := lostOf(w.t, w.s); n != lost {
		w.t.Fatalf("%d points are lost after an orderly end, want %d", n, lost)
	}
	w.s.Crash()
}
