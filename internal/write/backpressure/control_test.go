package backpressure

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/host/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is a file system with so many free bytes.
type disk struct {
	vfs.FS
	free uint64
}

func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free}, nil
}

type fixture struct {
	*Control
	disk   *disk
	stop   chan struct{}
	fatals atomic.Int64
	series int64
}

func newFixture() *fixture {
	f := &fixture{disk: &disk{FS: vfs.NewMem(), free: 1 << 30}, stop: make(chan struct{})}
	f.Control = New(Options{
		FS: f.disk, Logger: slog.New(slog.DiscardHandler), FlushBytes: 100, LateMemory: 10, MinFree: 1000,
		Memory: memory.New(0, time.Now, nil), HeadBytes: func() int64 {
			return 0
		}, NewSeries: func() int64 { return f.series },
		Stop: f.stop, OnFatal: func(error) { f.fatals.Add(1) },
	})
	return f
}

// startWaiter starts a waiter and returns once it waits.
func (f *fixture) startWaiter(t *testing.T, ctx context.Context, urgent bool) <-chan error {
	t.Helper()
	done, asked := make(chan error, 1), make(chan struct{}, 64)
	go func() {
		done <- f.Hold(ctx, func() bool { asked <- struct{}{}; return f.IsFull() }, urgent)
	}()
	<-asked
	return done
}

// waits has somebody wait until so many sealed bytes are flushed.
func (f *fixture) waits(t *testing.T, sealed int64) {
	t.Helper()
	done := f.startWaiter(t, t.Context(), false)
	f.AddSealed(-sealed)
	f.MakeRoom()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestFull(t *testing.T) {
	f := newFixture()
	for _, c := range []struct {
		sealed, late int64
		want         bool
	}{{200, 0, false}, {201, 0, true}, {0, 20, false}, {0, 21, true}} {
		f.AddSealed(c.sealed)
		f.AddLate(c.late)
		if got := f.IsFull(); got != c.want {
			t.Errorf("%d sealed, %d late: full is %v", c.sealed, c.late, got)
		}
		f.AddSealed(-c.sealed)
		f.AddLate(-c.late)
	}
}

func TestAFlushWakesThoseWhoWait(t *testing.T) {
	f := newFixture()
	f.AddSealed(201)
	done := f.startWaiter(t, t.Context(), false)
	<-f.FlushWanted()
	f.MakeRoom() // and there is none
	f.AddSealed(-1)
	f.MakeRoomIfFree()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if f.Waits() == 0 {
		t.Error("no wait is counted")
	}
}

func TestWhatEndsAWait(t *testing.T) {
	cause := errors.New("EIO")
	for name, c := range map[string]struct {
		end  func(f *fixture, cancel func())
		want error
	}{
		"the caller": {func(_ *fixture, cancel func()) { cancel() }, context.Canceled},
		"the store":  {func(f *fixture, _ func()) { close(f.stop) }, version.ErrClosed},
		"its failure": {func(f *fixture, _ func()) {
			f.Fail(cause)
			f.Fail(errors.New("another one"))
		}, cause},
		"the node": {func(f *fixture, _ func()) { f.Release(); f.Release() }, ErrUrgent},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.AddSealed(201)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := f.startWaiter(t, ctx, true)
			c.end(f, cancel)
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
			if n := f.fatals.Load(); (n == 1) != (name == "its failure") {
				t.Errorf("told %d times", n)
			}
		})
	}
}

// Who is not urgent waits on while the node is to end.
func TestAFlushAtTheEndIsWaitedFor(t *testing.T) {
	f := newFixture()
	f.Release()
	f.AddSealed(201)
	f.waits(t, 201)
}

// Behind a failed flush only the ticker asks for one.
func TestAFailedFlushIsNotAskedForAgain(t *testing.T) {
	f := newFixture()
	f.SetFlushFailed(true)
	f.AddSealed(201)
	f.waits(t, 201)
	select {
	case <-f.FlushWanted():
		t.Error("it is asked for")
	default:
	}
}

func TestTheDisk(t *testing.T) {
	f := newFixture()
	for _, c := range []struct {
		name         string
		free         uint64
		sealed       int64
		series       int64
		unwritten    bool
		full, refuse bool
	}{
		{name: "room", free: 2000},
		{name: "less than storage.min_free", free: 999, full: true, refuse: true},
		{name: "less than the next flush needs", free: 2000, sealed: 1001, full: true, refuse: true},
		{name: "as much as it needs", free: 2000, sealed: 1000},
		{name: "new series", free: 2000, series: 4, full: true, refuse: true},
		{name: "an edit that had no room", free: 2000, unwritten: true, full: true},
	} {
		f.disk.free, f.series = c.free, c.series
		f.AddSealed(c.sealed)
		f.SetUnwritten(c.unwritten)
		f.CheckDisk()
		if f.DiskFull() != c.full {
			t.Errorf("%s: full is %v", c.name, f.DiskFull())
		}
		if err := f.CheckFlush(); (err != nil) != c.refuse {
			t.Errorf("%s: the flush: %v", c.name, err)
		}
		if f.DiskFull() && f.IsFull() {
			t.Errorf("%s: senders wait for a flush that frees nothing", c.name)
		}
		f.AddSealed(-c.sealed)
	}
	if got := f.FreeDisk(); got != 2000 {
		t.Errorf("%d bytes are free", got)
	}
}
