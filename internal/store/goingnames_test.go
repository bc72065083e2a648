package store

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/store/deletion"
)

// A series is deleted, twice, and a merge writes its segments without it, before a flush has
// committed the deletion. Then the catalogue is lost. The log has points from before the deletion:
// they are of the deleted series, and none of them is lost, however often the node starts.
func TestAMergeKeepsTheNamesThatTheLogNeeds(t *testing.T) {
	t.Parallel()
	const gone, points = 3, 20 // points of each series
	clock := newTestClock()
	mem := namedStore(t, clock, "")
	s := openNamed(t, mem, clock)
	for n := range 2 {
		if n > 0 {
			x := mustSession(t, s, "b")
			x.Point(key(gone), epoch, noise(gone, 0))
			if _, err := x.Commit(); err != nil {
				t.Fatal(err)
			}
			x.Close()
		}
		if _, err := s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(gone)},
			false); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := s.Merge(t.Context()); err != nil || r.Removed == 0 {
		t.Fatalf("a merge of segments with a deleted series: %+v, %v", r, err)
	}
	startWithoutCatalogue(t, mem, clock, s, func(start int, s *Store) {
		if missing, err := namedServed(t, s); err != nil || missing != points {
			t.Errorf("start %d: %d points are not served, %d were deleted: %v", start, missing, points, err)
		}
		if slices.Contains(namesOf(t, s), string(key(gone))) {
			t.Errorf("start %d: the deleted series is listed", start)
		}
	})
}

// openNamed opens the directory of namedStore, with all of its log in memory.
func openNamed(t *testing.T, mem *vfs.MemFS, clock *testClock) *Store {
	t.Helper()
	o := testOptions(mem, clock)
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	byHand(&o)
	s := mustOpen(t, o)
	if err := s.replay.All(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// startWithoutCatalogue crashes a store of openNamed, takes its catalogue away and starts it three
// times, the second time to flush. Each start must have lost nothing and find no other damage, and
// a check behind it none; look is given each.
func startWithoutCatalogue(t *testing.T, mem *vfs.MemFS, clock *testClock, s *Store,
	look func(start int, s *Store)) {
	t.Helper()
	err := s.disk.Log.Sync()
	mem = whole(mem)
	s.Crash()
	if err := errors.Join(err, mem.RemoveAll("/data/catalogue"),
		durable.SyncDir(mem, "/data")); err != nil {
		t.Fatal(err)
	}
	for start, ends := range []func(*Store) *vfs.MemFS{
		func(s *Store) *vfs.MemFS { left := whole(mem); s.Crash(); return left },
		func(s *Store) *vfs.MemFS { mustFlush(t, s); left := whole(mem); s.Crash(); return left },
		func(s *Store) *vfs.MemFS { s.Crash(); return mem },
	} {
		s := openNamed(t, mem, clock)
		if lost, _ := sums(s); lost != 0 {
			t.Errorf("start %d: the account has lost %v", start, s.Account().Losses())
		}
		damages := 0 // the catalogue
		if start == 0 {
			damages = 1
		}
		if names, n := s.Damage(); int(n) != damages {
			t.Errorf("start %d: damage %v", start, names)
		}
		look(start, s)
		mem = ends(s)
		if r := mustCheck(t, mem, "/data"); r.Damaged != 0 {
			t.Errorf("behind start %d the check finds %+v", start, r.Damages)
		}
	}
}

// namesOf returns the names that the bucket lists.
func namesOf(t *testing.T, s *Store) (names []string) {
	t.Helper()
	info, err := s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Metrics(t.Context(), info, nil, func(k []byte) bool {
		names = append(names, string(k))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return names
}
