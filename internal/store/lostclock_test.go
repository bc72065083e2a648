package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
)

// Both copies of the MANIFEST are lost, and once more where the clock was set back since. The first
// start takes its time for the deletions that may be lost. The second knows that time when a
// segment was written in between, else not. What got a clock or an id behind that time keeps it: it
// is in a segment or in the log.
func TestOnlyAClockThatNobodyHasIsForgotten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		use  func(t *testing.T, s *Store) // what happens between the losses
		// the second start knows the time of the first, if that was closed
		known bool
	}{
		{"nothing", func(*testing.T, *Store) {}, false},
		{"empty bucket", func(t *testing.T, s *Store) { _ = mustSession(t, s, "new").Close() }, false},
		{"series", func(t *testing.T, s *Store) { sendKey(t, s, "b", 2) }, true},
		{"bucket", func(t *testing.T, s *Store) { sendKey(t, s, "new", 0) }, true},
		{"deletion", func(t *testing.T, s *Store) { mustDelete(t, s, 0) }, true},
		{"deletion and merge", func(t *testing.T, s *Store) {
			mustDelete(t, s, 0)
			mustFlush(t, s)
			if _, err := s.merges.MergeAll(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, crash %v", tt.name, crash), func(t *testing.T) {
				testTwiceLost(t, tt.use, tt.known && (!crash || tt.name == "deletion and merge"), crash)
			})
		}
	}
}

func testTwiceLost(t *testing.T, use func(*testing.T, *Store), known, crash bool) {
	clock, fs := newTestClock(), vfs.NewMem()
	o := testOptions(fs, clock)
	byHand(&o)
	s := mustOpen(t, o)
	sendKey(t, s, "b", 0)
	sendKey(t, s, "b", 1)
	end(t, s, false)
	clock.Advance(time.Hour)
	first := uint64(clock.Now().UnixNano())
	s = openWithoutManifest(t, o)
	if last := s.columns.Deletions.Highest(); last != first {
		t.Fatalf("the first start has the clock %d, want its time %d", last, first)
	}
	use(t, s)
	was := make(map[string]buckets.Info)
	for _, b := range s.Buckets() {
		was[b.Name] = b
	}
	deleted := s.incarnationOf(was["b"].ID, key(0))
	end(t, s, crash)
	clock.Advance(-time.Minute)
	want := uint64(clock.Now().UnixNano())
	if known {
		want = first
	}
	s = openWithoutManifest(t, o)
	defer func() { s.Crash() }()
	if from := s.buckets.DeletionsFrom(); from != want {
		t.Errorf("deletions may be lost up to %d, want %d", from, want)
	}
	if last := s.columns.Deletions.Highest(); last != max(want, deleted) {
		t.Errorf("the highest clock is %d, want %d", last, max(want, deleted))
	}
	if got := s.incarnationOf(was["b"].ID, key(0)); got != deleted {
		t.Errorf("series 0 is in incarnation %d, want %d", got, deleted)
	}
	sendKey(t, s, "b", 0) // it may have to begin anew
	mustDelete(t, s, 0)
	if got := s.incarnationOf(was["b"].ID, key(0)); got <= deleted {
		t.Errorf("series 0 is in incarnation %d behind %d", got, deleted)
	}
	// A bucket that is deleted at the very time that its id was made of.
	clock.Set(int64(first))
	if b, ok := was["new"]; ok && s.buckets.Get("new") != nil {
		if err := s.DeleteBucket("new"); err != nil {
			t.Fatal(err)
		}
		if again, err := s.CreateBucket(buckets.Info{Name: "new", Resolution: b.Resolution,
			PPF: b.PPF}); err == nil && again.ID == b.ID {
			t.Errorf("another bucket has the id of a deleted one")
		} else if err != nil && !errors.Is(err, buckets.ErrInvalid) {
			t.Error(err)
		}
	}
}

// A deletion still hides something when its time is over, so no flush forgets it. A start without a
// MANIFEST does, and says so: a series that begins anew from then on is in no incarnation, and a
// check must not take its older name for damage.
func TestAStartSaysWhatItForgets(t *testing.T) {
	clock, fs := newTestClock(), vfs.NewMem()
	o := testOptions(fs, clock)
	byHand(&o)
	s := mustOpen(t, o)
	sendKey(t, s, "b", 0)
	mustFlush(t, s)
	mustDelete(t, s, 0)
	sendKey(t, s, "b", 0)
	b := s.buckets.Get("b")
	deleted := s.incarnationOf(b.ID, key(0))
	mustFlush(t, s)
	clock.Advance(incarnation.TTL + time.Hour)
	s.clock.Advance()
	end(t, s, false)
	s = openWithoutManifest(t, o)
	defer func() { s.Crash() }()
	state := s.disk.Manifest.State()
	for _, d := range state.Tombstones {
		if d.Incarnation != 0 {
			t.Errorf("the deletion at %d is remembered", d.Incarnation)
		}
	}
	if state.RememberAfter < deleted {
		t.Errorf("deletions are forgotten up to %d, want %d", state.RememberAfter, deleted)
	}
}

// The same where only a name in a segment says the deletion: a merge has replaced the flush that
// said it of itself, and has carried on its identity.
func TestAStartSaysWhichNameItForgets(t *testing.T) {
	t.Parallel()
	clock, fs := newTestClock(), vfs.NewMem()
	o := testOptions(fs, clock)
	byHand(&o)
	s := mustOpen(t, o)
	sendKey(t, s, "b", 0)
	mustFlush(t, s)
	mustDelete(t, s, 0)
	sendKey(t, s, "b", 0)
	deleted := s.incarnationOf(s.buckets.Get("b").ID, key(0))
	mustFlush(t, s)
	pass(s, clock, 12*time.Hour)
	drivetest.SendNoise(t, s, "b", epoch+12*3600, epoch+12*3600+1)
	mustFlush(t, s)
	if _, err := s.merges.MergeAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Advance(incarnation.TTL + time.Hour)
	s.clock.Advance()
	end(t, s, true)
	s = openWithoutManifest(t, o)
	defer func() { s.Crash() }()
	state := s.disk.Manifest.State()
	found := false
	for _, d := range state.Tombstones {
		found = true
		if d.Incarnation != 0 {
			t.Errorf("the deletion at %d is remembered", d.Incarnation)
		}
	}
	if !found {
		t.Error("no segment names the deletion: nothing is tried")
	}
	if got := s.columns.Deletions.ForgottenUpTo(); state.RememberAfter < deleted || got < deleted {
		t.Errorf("deletions are forgotten up to %d, in memory to %d, want %d", state.RememberAfter, got,
			deleted)
	}
}

// end closes a store, or crashes it behind what is synced.
func end(t *testing.T, s *Store, crash bool) {
	t.Helper()
	if !crash {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
}

// openWithoutManifest opens a store whose MANIFEST has lost both copies.
func openWithoutManifest(t *testing.T, o Options) *Store {
	t.Helper()
	for _, name := range []string{manifest.FirstName, manifest.SecondName} {
		if err := o.FS.Remove(o.FS.PathJoin(o.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := mustOpen(t, o)
	if err := s.replay.All(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// A deletion is forgotten after its time, which only the MANIFEST says yet, and both copies are
// lost. Where the clock was set back into that time the deletion may be remembered again. It hides
// nothing of a series that has begun anew since, whether that is in a segment or in the log.
func TestADeletionMayBeRememberedAgain(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %v", crash), func(t *testing.T) {
			clock, fs := newTestClock(), vfs.NewMem()
			o := testOptions(fs, clock)
			byHand(&o)
			s := mustOpen(t, o)
			defer func() { s.Crash() }()
			sendKey(t, s, "b", 0)
			sendKey(t, s, "b", 1)
			mustDelete(t, s, 0)
			mustFlush(t, s)
			b := s.buckets.Get("b")
			deletion := s.incarnationOf(b.ID, key(0))
			clock.Advance(incarnation.TTL + time.Hour)
			s.clock.Advance()
			settle := func() {
				t.Helper()
				mustFlush(t, s)
				if _, err := s.merges.MergeAll(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			settle()
			settle()
			if got := s.incarnationOf(b.ID, key(0)); got != 0 {
				t.Fatalf("the deletion at %d is remembered", got)
			}
			clock.Advance(-incarnation.TTL)
			s.clock.Advance()
			sendKey(t, s, "b", 0)
			want := uint64(0)
			if crash {
				want = deletion // the log says no more than that the series is there
			}
			end(t, s, crash)
			s = openWithoutManifest(t, o)
			for range 2 {
				for range 2 {
					if got := readAll(t, s, "b", 0, epoch, 1)[0]; got != point.FromInt(1) {
						t.Errorf("the series that began anew holds %x", got)
					}
					if got := s.incarnationOf(b.ID, key(0)); got != want {
						t.Errorf("the series is in incarnation %d, want %d", got, want)
					}
					settle()
				}
				end(t, s, false)
				s = mustOpen(t, o)
			}
		})
	}
}

// sendKey sends a point of a series.
func sendKey(t *testing.T, s *Store, bucket string, series int) {
	t.Helper()
	x := mustSession(t, s, bucket)
	x.Point(key(series), epoch, point.FromInt(1))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// mustDelete deletes a series of bucket "b".
func mustDelete(t *testing.T, s *Store, series int) {
	t.Helper()
	if _, err := s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(series)},
		false); err != nil {
		t.Fatal(err)
	}
}
