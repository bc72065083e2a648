package wal

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// hook calls f before every operation of the file system.
func hook(fs vfs.FS, f func(op errorfs.Op) error) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(f))
}

func TestSyncWorksInEveryMode(t *testing.T) {
	for _, m := range []SyncMode{Always, Interval, Off} {
		fs := vfs.NewCrashableMem()
		l := open(t, fs, mode(m), func(o *Options) { o.After = new(manual).newTimer })
		want := add(t, l, numberedRecords(20, 60)...)
		if err := l.Sync(); err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		if l.durableLSN() != l.End() {
			t.Errorf("%v: durable %d after Sync, end %d", m, l.durableLSN(), l.End())
		}
		got, _ := replayAll(t, open(t, fs.CrashClone(vfs.CrashCloneCfg{})), 0)
		wantEntries(t, got, want)
	}
}

func TestWaitDurableOff(t *testing.T) {
	l := open(t, vfs.NewMem(), mode(Off))
	e := add(t, l, "a")
	if err := l.WaitDurable(context.Background(), e[0].lsn); !errors.Is(err, ErrNotDurable) {
		t.Errorf("before Sync: %v", err)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitDurable(context.Background(), e[0].lsn); err != nil {
		t.Errorf("after Sync: %v", err)
	}
}

func TestWaitDurableBeyondEnd(t *testing.T) {
	l := open(t, vfs.NewMem(), mode(Always))
	if err := l.WaitDurable(context.Background(), l.End()); err == nil {
		t.Error("no error for a record that was never appended")
	}
}

// TestIntervalWaitsForTick: nothing is fsynced before the tick, all after it,
// and an idle log sets no timer.
func TestIntervalWaitsForTick(t *testing.T) {
	clock := new(manual)
	l := open(t, vfs.NewMem(), func(o *Options) {
		o.After, o.FileSize, o.Interval = clock.newTimer, 1<<20, 2*time.Second
	})
	for round := range 3 {
		e := add(t, l, "a", "b")
		waitFor(t, "the tick is armed, and nobody waits", func() bool {
			ticks, waits := clock.armedCounts()
			return ticks == 1 && waits == 0
		})
		if l.durableLSN() > e[0].lsn {
			t.Fatalf("round %d: an fsync came before its tick", round)
		}
		clock.fire()
		waitFor(t, "the tick is followed by an fsync", func() bool {
			return l.durableLSN() == l.End()
		})
	}
	if n := l.Stats().Syncs; n > 6 {
		t.Errorf("%d fsyncs in three rounds", n)
	}
}

// TestIntervalHurriesForWaiters: an fsync that is waited for comes before the tick, and one
// is enough for all who wait meanwhile.
func TestIntervalHurriesForWaiters(t *testing.T) {
	clock := new(manual)
	l := open(t, vfs.NewMem(), func(o *Options) {
		o.After, o.FileSize, o.Interval = clock.newTimer, 1<<20, time.Hour
	})
	before := l.Stats().Syncs
	for round := range int64(3) {
		e := add(t, l, "a", "b", "c")
		var done sync.WaitGroup
		for _, one := range e[:2] {
			done.Go(func() {
				if err := l.WaitDurable(context.Background(), one.lsn); err != nil {
					t.Error(err)
				}
			})
		}
		waitFor(t, "both wait, and one timer is armed", func() bool {
			l.mu.Lock()
			awaited := l.awaited
			l.mu.Unlock()
			_, waits := clock.armedCounts()
			return awaited == e[1].lsn+1 && waits == 1
		})
		if l.durableLSN() > e[0].lsn {
			t.Fatalf("round %d: an fsync came before its time", round)
		}
		clock.fireWaits()
		done.Wait()
		if n := l.Stats().Syncs - before; n != round+1 {
			t.Fatalf("round %d: %d fsyncs", round, n)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e := add(t, l, "d")
	if err := l.WaitDurable(ctx, e[0].lsn); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want to wait for an fsync", err)
	}
}

// TestGroupCommit: the waiters that come while an fsync runs share the next.
func TestGroupCommit(t *testing.T) {
	const waiters = 50
	entered, release := make(chan struct{}, 1000), make(chan struct{})
	fs := hook(vfs.NewMem(), func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData {
			entered <- struct{}{}
			<-release
		}
		return nil
	})
	l := open(t, fs, mode(Always), func(o *Options) { o.FileSize, o.BufferSize = 1<<20, 1<<20 })
	var wg sync.WaitGroup
	var waiting atomic.Int64
	wait := func(e entry) {
		waiting.Add(1)
		if err := l.WaitDurable(context.Background(), e.lsn); err != nil {
			t.Error(err)
		}
	}
	first := add(t, l, "first")[0]
	wg.Go(func() { wait(first) })
	<-entered
	for range waiters {
		e := add(t, l, "next")[0]
		wg.Go(func() { wait(e) })
	}
	waitFor(t, "all wait", func() bool { return waiting.Load() == waiters+1 })
	close(release)
	wg.Wait()
	if n := l.Stats().Syncs; n > 3 {
		t.Errorf("%d fsyncs for %d waiters", n, waiters)
	}
}

// TestAppendBlocksWhenFull: the buffer is bounded while the disk stalls, and
// Close wakes those who wait for room.
func TestAppendBlocksWhenFull(t *testing.T) {
	release := make(chan struct{})
	fs := hook(vfs.NewMem(), func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite {
			<-release
		}
		return nil
	})
	l := open(t, fs, mode(Off))
	var appended atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			if _, err := l.Append(make([]byte, 100)); err != nil {
				if !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
				return
			}
			appended.Add(1)
		}
	})
	waitFor(t, "an append waits for room", func() bool { return l.Stats().Stalls > 0 })
	if n, limit := appended.Load(), int64(2*l.o.BufferSize/(100+frameSize)); n > limit {
		t.Errorf("%d records in two buffers of %d bytes, want at most %d", n, l.o.BufferSize, limit)
	}
	close(release)
	waitFor(t, "appends go on", func() bool { return appended.Load() > 200 })
	closeLog(t, l)
	wg.Wait()
}

// TestFailure: every failed step of the writer fails the log for good, and
// what was durable before stays so.
func TestFailure(t *testing.T) {
	f := func(name string, kind errorfs.OpKind, path string) {
		t.Helper()
		var broken atomic.Bool
		mem := vfs.NewCrashableMem()
		fs := hook(mem, func(op errorfs.Op) error {
			if broken.Load() && op.Kind == kind && strings.HasSuffix(op.Path, path) {
				return errorfs.ErrInjected
			}
			return nil
		})
		failed := make(chan error, 2)
		l := open(t, fs, mode(Always), func(o *Options) {
			o.OnFailure = func(err error) { failed <- err }
		})
		want := add(t, l, numberedRecords(5, 60)...)
		if err := l.Sync(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		broken.Store(true)
		// Enough for a new file; the appends may or may not see the failure.
		for _, rec := range numberedRecords(20, 60) {
			_, _ = l.Append([]byte(rec))
		}
		check := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, errorfs.ErrInjected) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		check("sync", l.Sync())
		check("callback", <-failed)
		broken.Store(false)
		_, err := l.Append([]byte("x"))
		check("append", err)
		check("second sync", l.Sync())
		check("remove", l.RemoveBelow(l.End()))
		check("wait", l.WaitDurable(context.Background(), l.End()-1))
		check("close", l.Close())
		if err := l.WaitDurable(context.Background(), want[4].lsn); err != nil {
			t.Errorf("%s: wait for a record that was durable: %v", name, err)
		}
		if len(failed) != 0 {
			t.Errorf("%s: OnFailure was called twice", name)
		}
		durable := l.durableLSN()
		got, report := replayAll(t, open(t, mem.CrashClone(vfs.CrashCloneCfg{})), 0)
		if n := len(got); n < 5 || got[n-1].lsn+frameSize+60 < durable || len(report.Damaged) != 0 {
			t.Errorf("%s: replayed %d records, durable %d: %+v", name, n, durable, report)
		}
	}
	f("fsync", errorfs.OpFileSyncData, ".wal")
	f("write", errorfs.OpFileWrite, ".wal")
	f("create", errorfs.OpCreate, ".wal")
	f("fsync of the header", errorfs.OpFileSync, ".wal")
	f("fsync of the directory", errorfs.OpFileSync, dir)
}

// TestOpenNamesFailedIO: a read that fails is not taken for a torn file.
func TestOpenNamesFailedIO(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, mem)
	add(t, l, numberedRecords(20, 60)...)
	closeLog(t, l)
	for _, kind := range []errorfs.OpKind{errorfs.OpFileRead, errorfs.OpOpen, errorfs.OpFileSync,
		errorfs.OpList, errorfs.OpMkdirAll} {
		fs := hook(mem, func(op errorfs.Op) error {
			if op.Kind == kind {
				return errorfs.ErrInjected
			}
			return nil
		})
		if _, err := Open(Options{FS: fs, Dir: dir}); !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("operation %d fails: open returned %v", kind, err)
		}
	}
}

// TestAlwaysDoesNotWaitForMore: the first waiter gets its fsync without any
// timer.
func TestAlwaysDoesNotWaitForMore(t *testing.T) {
	l := open(t, vfs.NewMem(), mode(Always), func(o *Options) {
		o.After = func(time.Duration) <-chan time.Time { return nil }
	})
	e := add(t, l, "a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := l.WaitDurable(ctx, e[0].lsn); err != nil {
		t.Error(err)
	}
}
