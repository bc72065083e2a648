package store

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/buckets"
	marks "dalmatiner/internal/model/history"
)

// outlivedBucket returns a store with bucket b of n slots. Merges have dropped the slots that had
// outlived it, and it keeps all from now on.
func outlivedBucket(t *testing.T, n int64) *Store {
	t.Helper()
	clock := newTestClock()
	o := testOptions(vfs.NewMem(), clock)
	byHand(&o)
	s := mustOpen(t, o)
	t.Cleanup(s.Crash)
	if _, err := s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 1000,
		TTL: 40_000}); err != nil {
		t.Fatal(err)
	}
	x := mustSession(t, s, "b")
	for part := int64(0); part < n; part += 1000 {
		for slot := part; slot < part+1000; slot++ {
			x.Point(key(0), uint64(epoch+slot), point.FromInt(1))
		}
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		clock.Advance(1000 * time.Second)
		s.clock.Advance()
	}
	mustFlush(t, s)
	clock.Advance(6 * time.Hour) // 11,600 slots have outlived the bucket
	s.clock.Advance()
	x.Point(key(1), uint64(s.Now().Unix()), point.FromInt(1)) // the bucket goes on
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	mustFlush(t, s)
	for range 3 {
		if _, err := s.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetTTL("b", 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMarksKnowWhatMergesDropped: a mark has the slot below which merges have dropped what was too
// old, and says nothing any more once they have dropped what is within the lifetime of now. A
// lifetime that grows while a merge runs brings that about.
func TestMarksKnowWhatMergesDropped(t *testing.T) {
	t.Parallel()
	const slots = 30_000
	s := outlivedBucket(t, slots)
	h, err := s.Bucket("b")
	if err != nil {
		t.Fatal(err)
	}
	dropped := int64(0)
	for dropped < slots && readAll(t, s, "b", 0, epoch+dropped, 1)[0] == point.Unset {
		dropped++
	}
	m := h.Mark()
	if dropped == 0 || dropped == slots || m.expired < epoch+dropped {
		t.Fatalf("%d slots were dropped, the mark has %d", dropped, m.expired-epoch)
	}
	expire := func(slot int64) {
		s.versions.Publish(func(v *version.Version) { v.Expire(h.b.ID, epoch+slot) })
	}
	unchanged := func(m Mark) bool { return h.Since(m, epoch).Below != marks.Nothing }
	if expire(m.expired - epoch); !unchanged(m) {
		t.Error("nothing was dropped, and nothing is known")
	}
	// A merge that began with the lifetime of before ends.
	if expire(slots - 1000); unchanged(m) {
		t.Error("points within the lifetime were dropped, and all are said to be unchanged")
	}
	if m = h.Mark(); !unchanged(m) {
		t.Error("a mark behind the merge says nothing")
	}
	// What outlives the lifetime of now is no change.
	if err := s.SetTTL("b", 1000); err != nil {
		t.Fatal(err)
	}
	m = h.Mark()
	if expire(slots); !unchanged(m) {
		t.Error("only points were dropped that have outlived the bucket, and nothing is known")
	}
}
