package store

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"dalmatiner/internal/testkit/pagecache"
)

// Whichever fsync of whichever file fails: what the next start of the process shows, and
// what is acknowledged from then on, stays through a power cut, and nothing is called
// damaged or lost (I1, I5).
func TestWhatAFailedFsyncLeftStays(t *testing.T) {
	t.Parallel()
	step, met := 1, 0
	if testing.Short() {
		step = 5
	}
	for nth := 1; ; nth += step {
		clock, fs := newTestClock(), pagecache.New()
		o := testOptions(fs, clock)
		byHand(&o)
		if !failsAtFsync(t, o, fs, clock, nth) {
			break
		}
		met++
		s := mustOpen(t, o)
		if err := sendRound(s, 5); err != nil {
			t.Fatalf("fsync %d: behind the start: %v", nth, err)
		}
		if nth/step%3 > 0 { // two of three: copies of the MANIFEST take turns
			if _, err := s.Flush(t.Context()); err != nil {
				t.Fatalf("fsync %d: behind the start: %v", nth, err)
			}
		}
		want := shownRounds(t, s)
		s.Crash()
		cut, err := fs.PowerCut()
		if err != nil {
			t.Fatal(err)
		}
		o.FS = cut
		s = mustOpen(t, o)
		if got := shownRounds(t, s); !slices.Equal(got, want) {
			t.Errorf("fsync %d: the %d slots are not what they were before the power cut", nth, len(want))
		}
		if names, n := s.Damage(); n > 0 {
			t.Errorf("fsync %d: damage is named: %v", nth, names)
		}
		s.Crash()
	}
	if met < 20/step {
		t.Errorf("%d fsyncs failed", met)
	}
}

// failsAtFsync runs a store whose nth fsync fails, and reports whether there was one.
func failsAtFsync(t *testing.T, o Options, fs *pagecache.FS, clock *testClock, nth int) bool {
	t.Helper()
	s := mustOpen(t, o)
	defer s.Crash()
	var left atomic.Int64
	left.Store(int64(nth))
	fs.FailSyncs(func(string) bool { return left.Add(-1) == 0 })
	defer fs.FailSyncs(nil)
	for round := range 4 { // each with new series
		if sendRound(s, round) != nil {
			break
		}
		if round == 1 {
			clock.Advance(9 * time.Hour)
			s.clock.Advance()
		}
		if _, err := s.Flush(t.Context()); err != nil && s.pressure.Failure() != nil {
			break
		}
		if _, err := s.Merge(t.Context()); err != nil && s.pressure.Failure() != nil {
			break
		}
	}
	return left.Load() <= 0
}

// sendRound sends some points of all series so far and of some new ones, and syncs.
func sendRound(s *Store, round int) error {
	info, err := s.EnsureBucket("b")
	if err != nil {
		return err
	}
	x, err := s.NewSession(info)
	if err != nil {
		return err
	}
	for slot := range uint64(30) {
		for series := range 3 * (round + 1) {
			x.Point(key(series), epoch+uint64(round)*20+slot, 1<<56|uint64(round*100+series))
		}
	}
	if err := x.Close(); err != nil {
		return err
	}
	return s.disk.Log.Sync()
}

// shownRounds is all that a store shows of what sendRound sends.
func shownRounds(t *testing.T, s *Store) (words []uint64) {
	t.Helper()
	if _, err := s.BucketByName("b"); err != nil {
		return nil
	}
	for series := range 18 {
		words = append(words, readAll(t, s, "b", series, epoch, 200)...)
	}
	return words
}
