package store

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
)

// Buckets of a millisecond and of an hour, entries of thousands of points
// across many blocks, and slots at the ends of what is admitted.
func TestResolutionsAndLimits(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	mem := vfs.NewMem()
	o := testOptions(mem, clock)
	s := mustOpen(t, o)
	words := make([]byte, 0, 9000*point.Size)
	for i := range int64(9000) {
		words = point.Append(words, point.FromInt(i+1))
	}
	now := clock.Now().UnixMilli()
	for name, resolution := range map[string]int64{"ms": 1, "odd": 7, "hour": 3600_000,
		"year": buckets.MaxResolution} {
		info, err := s.CreateBucket(buckets.Info{Name: name, Resolution: resolution, PPF: 100})
		if err != nil {
			t.Fatal(err)
		}
		x, err := s.NewSession(info)
		if err != nil {
			t.Fatal(err)
		}
		last := uint64((now + o.MaxFuture.Milliseconds()) / resolution)
		first := uint64(max(0, int64(last)-8990))
		x.Points(key(1), first, words)
		x.Points(key(1), math.MaxUint64-3, words) // wraps: all of it lies in the future
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		c := s.Account().Total(info.ID)
		if want := last - first + 1; c.StoredPoints() != want || c.Refused[account.Future] != 18000-want {
			t.Errorf("%s: %d stored, want %d: %+v", name, c.StoredPoints(), want, c)
		}
		x.Points(nil, first, words)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if c = s.Account().Total(info.ID); c.Refused[account.EmptyName] != 9000 ||
			x.Totals().Received != 27000 || c.ReceivedPoints() != 27000 {
			t.Errorf("%s: %d points without a name, %d received", name, c.Refused[account.EmptyName],
				c.ReceivedPoints())
		}
	}
	check := func() {
		t.Helper()
		for _, info := range s.Buckets() {
			last := (now + o.MaxFuture.Milliseconds()) / info.Resolution
			first := max(0, last-8990)
			got := readAll(t, s, info.Name, 1, first-2, 9010)
			for i, w := range got {
				want := uint64(0)
				if slot := first - 2 + int64(i); slot >= first && slot <= last {
					want = point.FromInt(slot - first + 1)
				}
				if w != want {
					t.Fatalf("%s slot %d: %x, want %x", info.Name, first-2+int64(i), w, want)
				}
			}
		}
	}
	check()
	s.Crash()
	s = mustOpen(t, o)
	check()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	defer s.Crash()
	check()
}

// The TTL hides at once what is older, and refuses it.
func TestTTLHidesAndRefuses(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	mem := vfs.NewMem()
	o := testOptions(mem, clock)
	s := mustOpen(t, o)
	x := mustSession(t, s, "b")
	for i := range uint64(100) {
		x.Point(key(1), epoch-100+i, point.FromInt(1))
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.SetTTL("b", 10); err != nil {
		t.Fatal(err)
	}
	x.Point(key(1), epoch-11, point.FromInt(2))
	x.Points(key(1), epoch-12,
		point.Append(point.Append(point.Append(nil, point.FromInt(3)), point.FromInt(3)),
			point.FromInt(3)))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		set := 0
		for _, w := range readAll(t, s, "b", 1, epoch-100, 100) {
			if w != 0 {
				set++
			}
		}
		info, _ := s.BucketByName("b")
		c := s.Account().Total(info.ID)
		if set != 10 || c.Refused[account.Expired] != 3 || c.Conflicting != 1 || info.TTL != 10 {
			t.Errorf("%d points are visible, want 10; %+v", set, c)
		}
		s.Crash()
		s = mustOpen(t, o)
	}
	s.Crash()
}

// Sessions that take turns in adding series to the groups another one left
// half full never share a column.
func TestSessionsShareGroups(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	o := testOptions(mem, newTestClock())
	s := mustOpen(t, o)
	const series, senders = 3 * head.Width, 6
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for part := range 8 {
				x := mustSession(t, s, "b")
				for i := part * series / 8; i < (part+1)*series/8; i++ {
					n := (i*7 + sender*50) % series
					x.Point(key(n), uint64(epoch+sender), point.FromInt(int64(n)))
				}
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for range 2 {
		names := make(map[string]bool)
		info, _ := s.BucketByName("b")
		err := s.Metrics(context.Background(), info, nil, func(k []byte) bool {
			if names[string(k)] {
				t.Errorf("%s is there twice", metric.Text(k))
			}
			names[string(k)] = true
			return true
		})
		if err != nil || len(names) != series {
			t.Fatalf("%d series, want %d, %v", len(names), series, err)
		}
		for i := range series {
			for _, w := range readAll(t, s, "b", i, epoch, senders) {
				if w != point.FromInt(int64(i)) {
					t.Fatalf("series %d holds %x", i, w)
				}
			}
		}
		s.Crash()
		s = mustOpen(t, o)
	}
	s.Crash()
}
