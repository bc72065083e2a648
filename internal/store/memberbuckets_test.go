package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// bucketNews is what one node tells another of a bucket: a creation behind a deletion of its name,
// or a deletion.
type bucketNews struct {
	name       string
	resolution int64 // of a creation; 0 for a deletion
	clock      uint64
}

func (n bucketNews) tell(t fataler, s *Store) {
	t.Helper()
	if n.resolution == 0 {
		if err := s.DeleteBucketAt(n.name, n.clock); err != nil {
			t.Fatalf("%+v: %v", n, err)
		}
		return
	}
	info, err := s.AdoptBucket(buckets.Info{Name: n.name, Resolution: n.resolution, PPF: 100,
		HPTS: n.resolution == 2000}, n.clock)
	switch {
	case err == nil:
		if want := metric.BucketID(n.name, n.resolution, n.resolution == 2000,
			n.clock); info.ID != want || info.Name != n.name || info.PPF != 100 {
			t.Fatalf("%+v is adopted as %+v, want the id %x", n, info, want)
		}
	case !errors.Is(err, buckets.ErrUnknown):
		t.Fatalf("%+v: %v", n, err)
	}
}

// bucketState is what a store has of buckets, and the clocks of their last deletions.
func bucketState(s *Store) string {
	ids, clocks := map[string]uint64{}, map[string]uint64{}
	for _, info := range s.Buckets() {
		ids[info.Name] = info.ID
	}
	for _, d := range s.BucketDeletions() {
		clocks[d.Name] = d.Clock
	}
	return fmt.Sprint(ids, clocks)
}

// In whatever order two stores are told of creations and deletions, however often, and with crashes
// and flushes in between: both end with the same buckets, those that follow from the last
// deletions.
func TestBucketsOfOtherNodesConverge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var news []bucketNews
		last := map[string]uint64{}
		live := map[string]bucketNews{}
		for range rapid.IntRange(1, 12).Draw(t, "news") {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
			// A name has one resolution behind each deletion: two are a conflict, which is for the cluster.
			n := bucketNews{name: name, resolution: int64(1+last[name]%2) * 1000, clock: last[name]}
			if rapid.IntRange(0, 2).Draw(t, "deletes") == 0 {
				n.resolution, n.clock = 0, last[name]+rapid.Uint64Range(1, 1<<62/20).Draw(t, "later")
				last[name] = n.clock
				delete(live, name)
			} else {
				live[name] = n
			}
			news = append(news, n)
		}
		want := bucketStateOf(live, last)
		for i := range 2 {
			fs := vfs.NewCrashableMem()
			o := testOptions(fs, newTestClock())
			byHand(&o)
			s := mustOpen(t, o)
			order := rapid.Permutation(append(slices.Clone(news), news...)).Draw(t, "order")
			for _, n := range order {
				n.tell(t, s)
				switch rapid.IntRange(0, 8).Draw(t, "then") {
				case 0:
					if _, err := s.Flush(t.Context()); err != nil {
						t.Fatalf("%v", err)
					}
				case 1:
					before, clone := bucketState(s), fs.CrashClone(vfs.CrashCloneCfg{})
					s.Crash()
					fs, o.FS = clone, clone
					if s = mustOpen(t, o); bucketState(s) != before {
						t.Fatalf("a crash left %s of %s", bucketState(s), before)
					}
				}
			}
			got := bucketState(s)
			s.Crash()
			if got != want {
				t.Fatalf("store %d has %s behind %+v, want %s", i, got, order, want)
			}
		}
	})
}

// bucketStateOf is the bucketState that all news lead to. Who creates a bucket knows of the
// deletion before, and so does who is told of it.
func bucketStateOf(live map[string]bucketNews, last map[string]uint64) string {
	ids := map[string]uint64{}
	for name, n := range live {
		ids[name] = metric.BucketID(n.name, n.resolution, n.resolution == 2000, n.clock)
	}
	return fmt.Sprint(ids, last)
}

// Two buckets of one name that no deletion tells apart are a conflict: the first stays. A deletion
// that is known already deletes nothing, and one at a lower clock neither.
func TestBucketsOfOtherNodesInConflict(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	o := testOptions(vfs.NewMem(), clock)
	s := mustOpen(t, o)
	defer s.Crash()
	first, err := s.AdoptBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 10, TTL: 5}, 40)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AdoptBucket(buckets.Info{Name: "b", Resolution: 2000, PPF: 10}, 40); !errors.Is(err,
		buckets.ErrExists) {
		t.Errorf("another bucket of that name: %v", err)
	}
	if again, err := s.AdoptBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 99},
		40); err != nil || again != first {
		t.Errorf("the same bucket is %+v, was %+v; %v", again, first, err)
	}
	for _, at := range []uint64{0, 39, 40} {
		if err := s.DeleteBucketAt("b", at); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.AdoptBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 10}, 39); !errors.Is(err,
		buckets.ErrUnknown) {
		t.Errorf("a bucket that was deleted: %v", err)
	}
	for _, err := range []error{s.DeleteBucketAt("", 1),
		s.DeleteBucketAt(string(make([]byte, metric.MaxBucket+1)), 1)} {
		if !errors.Is(err, buckets.ErrInvalid) {
			t.Error(err)
		}
	}
	if got := s.Buckets(); len(got) != 1 || got[0] != first {
		t.Fatalf("%+v, want %+v", got, first)
	}
	if err := s.DeleteBucket("b"); err != nil { // its clock is the time, above 40
		t.Fatal(err)
	}
	next := mustCreate(t, s, "b", 1000, false)
	d := s.BucketDeletions()
	if len(d) != 1 || d[0] != (buckets.Deletion{ID: first.ID, Clock: uint64(clock.Now().UnixNano()),
		Name: "b"}) {
		t.Fatalf("deletions %+v", d)
	}
	if want := metric.BucketID("b", 1000, false, d[0].Clock); next.ID != want {
		t.Errorf("the next bucket has the id %x, want %x", next.ID, want)
	}
}
