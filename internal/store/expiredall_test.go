package store

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
)

// When the last series of a node has expired, no start brings one back: a
// catalogue that is empty is not one that was lost.
func TestNoExpiredNameComesBackWhenAllAreGone(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	o := testOptions(vfs.NewCrashableMem(), clock)
	byHand(&o)
	s := mustOpen(t, o)
	if _, err := s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 1000,
		TTL: 3600}); err != nil {
		t.Fatal(err)
	}
	x := mustSession(t, s, "b")
	for i := range 256 {
		x.Point(key(i), epoch, point.FromInt(1))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	mustFlush(t, s)
	clock.Advance(2 * time.Hour)
	s.clock.Advance()
	if err := s.merges.DropIdle(context.Background()); err != nil || s.Stats().Series != 256 {
		t.Fatalf("%d series, %v", s.Stats().Series, err)
	}
	clock.Advance(24 * time.Hour)
	s.clock.Advance()
	gone := func(when string) {
		t.Helper()
		info, err := s.BucketByName("b")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := s.Metrics(context.Background(), info, nil, func([]byte) bool {
			n++
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if st := s.Stats(); st.Series != 0 || n != 0 {
			t.Fatalf("%s: %d series are counted, %d listed", when, st.Series, n)
		}
	}
	for range 3 {
		if _, err := s.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustFlush(t, s)
	}
	gone("after the merges")
	if len(s.versions.Latest().Segments) == 0 {
		t.Fatal("no segment is left that could bring a name back")
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
		gone("after a restart")
		o.FS = o.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
		s.Crash()
		s = mustOpen(t, o)
		gone("after a crash")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
