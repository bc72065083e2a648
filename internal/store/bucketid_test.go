package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/buckets"
)

func mustCreate(t *testing.T, s *Store, name string, resolution int64, hpts bool) buckets.Info {
	t.Helper()
	info, err := s.CreateBucket(buckets.Info{Name: name, Resolution: resolution, PPF: 100, HPTS: hpts})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// A bucket has the same id in every data directory, whatever was created and
// deleted there before, and another one for every name, resolution and hpts.
func TestBucketIDsAreThoseOfEveryNode(t *testing.T) {
	t.Parallel()
	var want map[string]uint64
	for seed := range uint64(4) {
		s := mustOpen(t, testOptions(vfs.NewCrashableMem(), newTestClock()))
		r := rand.New(rand.NewPCG(seed, 1))
		got, seen := map[string]uint64{}, map[uint64]string{}
		for _, i := range r.Perm(12) {
			name := fmt.Sprintf("b%d", i)
			info := mustCreate(t, s, name, int64(1000*(1+i%3)), i%2 == 1)
			if was, ok := seen[info.ID]; ok || info.ID == 0 {
				t.Fatalf("%s has the id %x, as has %q", name, info.ID, was)
			}
			got[name], seen[info.ID] = info.ID, name
			if other := fmt.Sprintf("other%d", r.IntN(4)); r.IntN(2) == 0 {
				mustCreate(t, s, other, 1000, false)
				if err := s.DeleteBucket(other); err != nil {
					t.Fatal(err)
				}
			}
		}
		if want == nil {
			want = got
		}
		for name, id := range got {
			if want[name] != id {
				t.Errorf("seed %d: bucket %s has the id %x, elsewhere %x", seed, name, id, want[name])
			}
		}
		s.Crash()
	}
}

// A bucket that is deleted and created again has another id each time, through
// crashes and orderly ends, also when the clock stands still or is set back.
func TestACreatedAgainBucketHasAnotherID(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		clock, r := newTestClock(), rand.New(rand.NewPCG(seed, 2))
		fs := vfs.NewCrashableMem()
		o := testOptions(fs, clock)
		s := mustOpen(t, o)
		seen := map[uint64]int{}
		for n := range 8 {
			info := mustCreate(t, s, "b", 1000, false)
			if was, ok := seen[info.ID]; ok {
				t.Fatalf("seed %d: the bucket has the id %x for the %dth and for the %dth time", seed, info.ID,
					was, n)
			}
			seen[info.ID] = n
			x := mustSession(t, s, "b")
			x.Point(key(n), epoch, point.FromInt(int64(n)))
			if _, err := x.Commit(); err != nil {
				t.Fatal(err)
			}
			steps := []func(){
				func() { mustFlush(t, s) },
				func() { clock.Advance(time.Duration(r.IntN(3)-1) * time.Hour) },
				func() {
					if err := s.disk.Log.Sync(); err != nil {
						t.Fatal(err)
					}
					fs = fs.CrashClone(vfs.CrashCloneCfg{})
					s.Crash()
					o.FS = fs
					s = mustOpen(t, o)
				},
				func() {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = mustOpen(t, o)
				},
			}
			some := func() {
				for range r.IntN(4) {
					steps[r.IntN(len(steps))]()
				}
			}
			some()
			if err := s.DeleteBucket("b"); err != nil {
				t.Fatal(err)
			}
			some()
			for i, got := range readAllIn(t, s, n) {
				if got != 0 {
					t.Fatalf("seed %d: slot %d of a deleted bucket is %x", seed, i, got)
				}
			}
		}
		s.Crash()
	}
}

// readAllIn creates bucket "b" for the moment of a read, deletes it, and returns
// what it had of a series.
func readAllIn(t *testing.T, s *Store, series int) []uint64 {
	t.Helper()
	mustCreate(t, s, "b", 1000, false)
	got := readAll(t, s, "b", series, epoch, 3)
	if err := s.DeleteBucket("b"); err != nil {
		t.Fatal(err)
	}
	return got
}

// Two names whose ids are equal do not both become buckets, also when the first is
// deleted: the second is refused by name, and nothing of it stays.
func TestBucketsOfOneIDAreRefused(t *testing.T) {
	t.Parallel()
	o := testOptions(vfs.NewCrashableMem(), newTestClock())
	s := mustOpen(t, o)
	few := func(name string, _ int64, _ bool, deleted uint64) uint64 {
		return uint64(name[0]) + deleted
	}
	s.buckets.Hash = few
	mustCreate(t, s, "a1", 1000, false)
	refused := func(why string) {
		t.Helper()
		_, err := s.CreateBucket(buckets.Info{Name: "a2", Resolution: 1000, PPF: 100})
		if !errors.Is(err, buckets.ErrInvalid) || !strings.Contains(err.Error(), "a2") ||
			!strings.Contains(err.Error(), why) || s.buckets.Get("a2") != nil {
			t.Errorf("a2, want %q: %v", why, err)
		}
	}
	refused(`bucket 'a1' has`)
	if err := s.DeleteBucket("a1"); err != nil {
		t.Fatal(err)
	}
	refused("a deleted bucket had")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	s.buckets.Hash = few
	refused("a deleted bucket had")
	mustCreate(t, s, "a1", 1000, false) // its clock tells it from the first
	mustCreate(t, s, "b", 1000, false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Where a damaged MANIFEST may have lost deletions, a new bucket has an id that
// none had before, whatever its name is; a node that has lost nothing keeps to the
// ids of all others.
func TestLostDeletionsGiveNoIDAgain(t *testing.T) {
	t.Parallel()
	clean := mustOpen(t, testOptions(vfs.NewCrashableMem(), newTestClock()))
	want := mustCreate(t, clean, "new", 1000, false).ID
	clean.Crash()
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, fs *vfs.MemFS, s *Store)
		other bool
	}{
		{"nothing", func(*testing.T, *vfs.MemFS, *Store) {}, false},
		{"flipped", func(t *testing.T, fs *vfs.MemFS, s *Store) {
			for _, name := range []string{manifest.FirstName, manifest.SecondName} {
				flipByte(t, fs, s.path(name), 40)
			}
		}, true},
		{"flipped in one copy", func(t *testing.T, fs *vfs.MemFS, s *Store) {
			flipByte(t, fs, s.path(manifest.SecondName), 40)
		}, false},
		{"removed", func(t *testing.T, fs *vfs.MemFS, s *Store) {
			if err := errors.Join(fs.Remove(s.path(manifest.FirstName)),
				fs.Remove(s.path(manifest.SecondName))); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		fs := vfs.NewCrashableMem()
		o := testOptions(fs, newTestClock())
		byHand(&o)
		s := mustOpen(t, o)
		x := mustSession(t, s, "kept")
		x.Point(key(1), epoch, point.FromInt(1))
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		mustFlush(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		c.spoil(t, fs, s)
		for i := range 3 { // it stays so
			s = mustOpen(t, o)
			name := "new"
			info := mustCreate(t, s, name, 1000, false)
			if other := info.ID != want; i == 0 && other != c.other {
				t.Errorf("%s: the bucket has the id %x, that of a node without damage is %x", c.name, info.ID,
					want)
			} else if i > 0 && !other {
				t.Errorf("%s: the id %x is given again", c.name, info.ID)
			}
			if err := s.DeleteBucket(name); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
