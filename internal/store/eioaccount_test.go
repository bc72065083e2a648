package store

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/host/durable"
)

const namedSeries = 40

// namedStore leaves a directory with points in the log whose series are defined below all
// that a start reads of it: their names are in the catalogue and in segments.
func namedStore(t *testing.T, clock *testClock, without string) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewCrashableMem()
	o := testOptions(mem, clock)
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	byHand(&o)
	s := mustOpen(t, o)
	x := mustSession(t, s, "b")
	for round := range int64(4) {
		for slot := round * 10; slot < round*10+10; slot++ {
			for series := range namedSeries / 2 {
				series += int(round%2) * namedSeries / 2
				x.Point(key(series), uint64(epoch+slot), noise(series, slot))
			}
		}
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		if round < 2 {
			mustFlush(t, s)
		}
	}
	x.Close()
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	mem = whole(mem)
	s.Crash()
	if without != "" {
		if err := mem.RemoveAll("/data/" + without); err != nil {
			t.Fatal(err)
		}
		if err := durable.SyncDir(mem, "/data"); err != nil {
			t.Fatal(err)
		}
	}
	return mem
}

// namedServed returns how many points are not what was sent.
func namedServed(t *testing.T, s *Store) (missing uint64, err error) {
	t.Helper()
	info, err := s.BucketByName("b")
	if err != nil {
		return 2 * namedSeries * 10, nil
	}
	dst := make([]uint64, 40)
	for series := range namedSeries {
		if err := s.Read(t.Context(), info, key(series), epoch, dst); err != nil {
			return missing, err
		}
		for slot, got := range dst {
			want := uint64(0)
			if slot/10%2 == series/(namedSeries/2) {
				want = noise(series, int64(slot))
			}
			if got != want {
				missing++
			}
		}
	}
	return missing, nil
}

// readsBytes reports whether an operation is one of a file's bytes. pebble does not stand
// others that fail late in its Open: it panics in a compaction.
func readsBytes(k errorfs.OpKind) bool {
	return k == errorfs.OpFileRead || k == errorfs.OpFileReadAt || k == errorfs.OpOpen
}

// sums returns what the account has of losses.
func sums(s *Store) (lost, recovered uint64) {
	for _, l := range s.Account().Losses() {
		lost, recovered = lost+l.Points, recovered+l.Recovered
	}
	return lost, recovered
}

// A device that fails one read of a start, whichever: what the account calls lost and
// has not found again is exactly what is not served once the device works, however the
// node ended in between. A single failure loses nothing at all; where the names of a
// segment cannot be read for as long as the start takes, and the catalogue is lost, what
// the log has of their series is lost, and counted.
func TestAPassingReadErrorLosesNothingThatIsServed(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	reads := map[errorfs.OpKind]bool{errorfs.OpFileRead: true, errorfs.OpFileReadAt: true,
		errorfs.OpOpen: true, errorfs.OpStat: true, errorfs.OpList: true, errorfs.OpFileStat: true,
		errorfs.OpOpenDir: true}
	for _, without := range []string{"", "catalogue"} {
		origin := namedStore(t, clock, without)
		for i, end := range []string{"crash", "flush", "close", "crash", "flush", "close"} {
			part, all := "/data", i >= 3 // fail all from one on, of segments
			if all {
				part = "/data/flush"
			}
			t.Run(fmt.Sprintf("without %q, all %t, %s", without, all, end), func(t *testing.T) {
				k, hit := int64(1), true
				for ; hit; k++ {
					var n atomic.Int64
					f := newFaults(whole(origin))
					failing := ""
					f.Set(func(op errorfs.Op) error {
						if c := int64(0); reads[op.Kind] && strings.Contains(op.Path, part) &&
							(readsBytes(op.Kind) || !strings.Contains(op.Path, "/catalogue")) {
							if c = n.Add(1); c < k || !all && c > k {
								return nil
							}
							failing = fmt.Sprintf("%v of %s", op.Kind, op.Path)
							return &injected{op.Path}
						}
						return nil
					})
					o := testOptions(f.FS, clock)
					o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
					byHand(&o)
					passingFailure(t, f, o, end, all, func() string {
						return fmt.Sprintf("read %d, %s", k, failing)
					})
					hit = n.Load() >= k
				}
				if k < 5 {
					t.Errorf("a start makes %d reads", k)
				}
			})
		}
	}
}

// passingFailure is one start with the failure, the end of the node, and starts without.
func passingFailure(t *testing.T, f *faults, o Options, end string, all bool, what func() string) {
	t.Helper()
	s, err := Open(o)
	var lost, recovered uint64
	if err == nil {
		_ = s.replay.All(t.Context()) // it may have met the failure
		f.Clear()
		lost, recovered = sums(s)
		switch end { // of a store that may have failed
		case "flush":
			_, _ = s.Flush(t.Context())
			s.Crash()
		case "close":
			_ = s.Close()
		default:
			s.Crash()
		}
	}
	f.Clear()
	for start := range 2 {
		s, err := Open(o)
		if err != nil {
			t.Fatalf("%s: start %d: %v", what(), start, err)
		}
		if err := s.replay.All(t.Context()); err != nil {
			t.Fatal(err)
		}
		missing, err := namedServed(t, s)
		if err != nil {
			t.Fatal(err)
		}
		l, r := sums(s)
		if l-r != missing {
			t.Errorf("%s: start %d: %d points are missing, the account has lost %d and recovered %d (in "+
				"the failing start %d and %d)", what(), start, missing, l, r, lost, recovered)
		}
		if missing > 0 && !all {
			t.Errorf("%s: start %d: %d points are missing after a failure that went away", what(), start,
				missing)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
