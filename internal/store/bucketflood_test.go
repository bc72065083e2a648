package store

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/drivetest"
)

// A flood of new buckets is refused where new series are, with the reason, before the
// limit; known buckets are served, and what they took comes back when they are deleted.
func TestAFloodOfBucketsIsRefused(t *testing.T) {
	// Not beside other tests: a merge that gets no processor holds its memory at the last look.
	s := openPressed(t, func(o *Options) { o.UnknownBuckets.Create = true })
	known := mustSession(t, s.Store, "known")
	known.Point(key(1), epoch, point.FromInt(1))
	var refusal *memory.Refusal
	made := 0
	for ; refusal == nil && made < 100_000; made++ {
		info, err := s.EnsureBucket(fmt.Sprintf("flood-%d", made))
		if err != nil {
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "memory.limit") ||
				!strings.Contains(err.Error(), "MiB") {
				t.Fatalf("bucket %d: %v", made, err)
			}
			break
		}
		x, err := s.NewSession(info)
		if err != nil {
			t.Fatal(err)
		}
		x.Point(key(1), epoch, point.FromInt(1))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d buckets, %d bytes of names, %d in use", made, s.columns.Names().Bytes(),
		s.o.Memory.UsedBytes())
	if refusal == nil || made < 1000 {
		t.Fatalf("%d buckets and none refused: %v", made, refusal)
	}
	if used := s.o.Memory.UsedBytes(); used > testLimit {
		t.Errorf("%d bytes in use, the limit is %d", used, testLimit)
	}
	_, err := s.CreateBucket(buckets.Info{Name: "by hand", Resolution: 1000, PPF: 3600})
	if !errors.As(err, &refusal) || refusal.TooLarge {
		t.Errorf("a bucket by hand: %v", err)
	}
	if _, err := s.CreateBucket(buckets.Info{Name: "known", Resolution: 1000, PPF: 3600}); !errors.Is(
		err, buckets.ErrExists) {
		t.Errorf("a bucket that exists: %v", err)
	}
	if _, err := s.EnsureBucket("flood-0"); err != nil {
		t.Errorf("a known bucket: %v", err)
	}
	known.Point(key(1), epoch+1, point.FromInt(1))
	if err := known.Close(); err != nil || known.Totals().Refused != 0 {
		t.Errorf("a point of a known series: %+v, %v", known.Totals(), err)
	}
	full := s.columns.Names().Bytes()
	for i := range made {
		if err := s.DeleteBucket(fmt.Sprintf("flood-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	drivetest.Eventually(t, "new buckets are taken again", func() bool {
		s.clock.Advance(10 * time.Millisecond)
		_, err := s.EnsureBucket("after")
		return err == nil
	})
	s.columns.CountNames()
	if left := s.columns.Names().Bytes(); left > full/8 {
		t.Errorf("%d bytes of %d are left of buckets that were deleted", left, full)
	}
}

// What counts for a bucket is no less than it takes on the heap.
func TestBucketsCountWhatTheyTake(t *testing.T) {
	clock := newTestClock()
	o := testOptions(vfs.Default, clock) // a log in memory would count as well
	o.Dir, o.UnknownBuckets.Create = t.TempDir(), true
	o.Memory = memory.New(1<<40, clock.Now, nil)
	s := mustOpen(t, o)
	defer s.Crash()
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const n = 2000
	for _, series := range []int{0, 1} {
		count, was := s.columns.Names().Bytes()+s.columns.Unflushed.FlushMemory(), heap()
		for i := range n {
			info, err := s.EnsureBucket(fmt.Sprintf("%d-%d", series, i))
			if err != nil {
				t.Fatal(err)
			}
			for k := range series {
				b, err := s.buckets.ByIdentity(info)
				if err != nil {
					t.Fatal(err)
				}
				filler := s.columns.NewFiller(b)
				if _, _, err := filler.Define(b.SeriesID(key(k)), key(k)); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.columns.CountNames() // what was taken first and what is there are the same
		counted, took := s.columns.Names().Bytes()+s.columns.Unflushed.FlushMemory()-count, heap()-was
		t.Logf("%d series: %d bytes counted for a bucket, %d taken", series, counted/n, took/n)
		if took > counted {
			t.Errorf("%d series: %d bytes counted for a bucket, %d taken", series, counted/n, took/n)
		}
	}
}
