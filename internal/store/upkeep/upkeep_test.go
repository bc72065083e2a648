package upkeep_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store/flushtest"
	"dalmatiner/internal/store/upkeep"
	"dalmatiner/internal/testkit/golden"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction(
			"github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); runtime.Gosched() {
		if time.Since(began) > time.Minute {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// Merges yield while a sender is held back. From 256 segments on they yield to nobody.
func TestMergesYieldUntilThereAreTooManySegments(t *testing.T) {
	w := newWorld(&golden.Script{T: t}, memoryLimit, flushtest.Quiet)
	w.Bucket("a")
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan error)
	go func() { held <- w.Pressure.Hold(ctx, func() bool { return true }, false) }()
	eventually(t, "a sender is held back", func() bool { return w.Pressure.WaitingSenders() > 0 })
	if !w.upkeep.Yields(false) {
		t.Error("merges do not yield while a sender is held back")
	}
	cancel()
	<-held
	if w.upkeep.Yields(false) {
		t.Error("merges yield when nobody is held back any more")
	}
	for n := range 256 {
		if !w.upkeep.Yields(true) {
			t.Fatalf("merges do not yield with %d segments", n)
		}
		w.Define(fmt.Sprintf("a/m%d", n))
		w.Must(w.Flusher.Sealed())
	}
	if w.upkeep.Yields(true) {
		t.Error("merges yield with 256 segments")
	}
}

// Loaded indexes stay while they have an eighth of the memory, and go when they have more.
func TestIndexesHaveTheirPart(t *testing.T) {
	w := newWorld(&golden.Script{T: t}, memoryLimit, flushtest.Quiet)
	w.Bucket("a")
	w.Write("a/m1", 0, 60)
	w.Seal(1)
	w.Must(w.Flusher.Sealed())
	w.loadIndexes()
	index := w.Versions.Latest().Segments[0].Reader
	size := index.IndexBytes()
	for _, less := range []int64{0, upkeep.IndexPart} {
		u := upkeep.New(upkeep.Options{Memory: memory.New(upkeep.IndexPart*size-less, time.Now, nil),
			Versions: w.Versions})
		u.WatchIndexes()
		want := size
		if less > 0 {
			want = 0
		}
		if got := u.IndexBytes(); size == 0 || got != want || index.IndexBytes() != want {
			t.Errorf("of %d bytes %d stay, %d are counted, want %d", size, index.IndexBytes(), got, want)
		}
	}
}

// A bucket whose slots are long keeps its blocks open for two of them without writes, for half of
// one when they are complete, and for a block and that at all.
func TestSlowBucketsKeepTheirBlocks(t *testing.T) {
	w := newWorld(&golden.Script{T: t}, memoryLimit, flushtest.Quiet)
	grace, complete, age := w.upkeep.Ages(60_000, flushtest.Height)
	if grace != 2*time.Minute || complete != 30*time.Second || age != 62*time.Minute {
		t.Errorf("grace %v, complete %v, age %v", grace, complete, age)
	}
}

// records notes what is logged.
type records struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(p)
}

func (r *records) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.all.String(), text)
}

// Started, it looks at disk and memory by itself, wakes those who wait once there is room, says
// that new series are refused, and ends when it is told.
func TestItRunsUntilItIsStopped(t *testing.T) {
	var said records
	w := newWorld(&golden.Script{T: t}, memoryLimit, slog.New(slog.NewTextHandler(&said, nil)))
	w.Bucket("a")
	w.Write("a/m1", 0, 10)
	w.used = memoryLimit / 100 * 90
	w.Disk.Free.Store(flushtest.MinFree - 1)
	w.Pressure.AddSealed(2*flushtest.FlushBytes + 1)
	held := make(chan struct{})
	go func() { w.Pressure.Wait(); close(held) }()
	eventually(t, "a sender is held back", func() bool { return w.Pressure.WaitingSenders() > 0 })
	var running sync.WaitGroup
	stop := make(chan struct{})
	w.upkeep.Start(&running, stop)
	select {
	case <-held: // on a full disk points are refused, and nobody waits
	case <-time.After(30 * time.Second):
		t.Fatal("a sender is still held back on a full disk")
	}
	if !w.Pressure.DiskFull() {
		t.Error("somebody was woken before the disk was looked at")
	}
	eventually(t, "series are refused", func() bool { return said.has("memory is short") })
	close(stop)
	running.Wait()
}
