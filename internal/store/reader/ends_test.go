package reader_test

import (
	"context"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/store/storetest"
)

// Reads at the ends of all slots are empty, not a panic.
func TestReadsBeyondAllSlots(t *testing.T) {
	t.Parallel()
	s := storetest.Start(t, storetest.OptionsAt(vfs.NewMem(), drivetest.NewClock()))
	defer s.Crash()
	x := drivetest.Session(t, s, "b")
	x.Point(key(1), 0, point.FromInt(5))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	info, _ := s.BucketByName("b")
	for _, from := range []int64{math.MinInt64, -100, -3, 0, buckets.MaxSlot, math.MaxInt64 - 10,
		math.MaxInt64} {
		dst := make([]uint64, 10)
		if err := s.Read(context.Background(), info, key(1), from, dst); err != nil {
			t.Errorf("from %d: %v", from, err)
		}
		for i, w := range dst {
			want := uint64(0)
			if from <= 0 && from > -10 && i == int(-from) {
				want = point.FromInt(5)
			}
			if w != want {
				t.Errorf("from %d: %d is %x, want %x", from, i, w, want)
			}
		}
	}
}

// Ranges at the ends of what a slot can be.
func TestAggregatesOverFarRanges(t *testing.T) {
	t.Parallel()
	s := storetest.Start(t, storetest.OptionsAt(vfs.NewMem(), drivetest.NewClock()))
	defer s.Crash()
	x := drivetest.Session(t, s, "b")
	x.Point(key(0), epoch, point.FromInt(7))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, from := range []int64{reader.MinFrom, -1 << 54, -5, 0, epoch - 1, epoch, epoch + 1,
			buckets.MaxSlot, buckets.MaxSlot + 1, math.MaxInt64 - 1, math.MaxInt64} {
			for _, step := range []int64{1, 2, 720, 1 << 31, buckets.MaxSlot, 1 << 61, 1 << 62,
				math.MaxInt64} {
				dst := make([]chunk.Header, 5)
				if _, err := s.Series(info, key(0)).Aggregate(t.Context(), from, step, dst); err != nil {
					t.Fatalf("from %d, step %d: %v", from, step, err)
				}
				for i := range dst {
					// In numbers that do not overflow.
					begin := new(big.Int).Add(big.NewInt(from),
						new(big.Int).Mul(big.NewInt(step), big.NewInt(int64(i))))
					off := new(big.Int).Sub(big.NewInt(epoch), begin)
					want := off.Sign() >= 0 && off.Cmp(big.NewInt(step)) < 0
					if h := dst[i]; want != (h.Count == 1) || want && int64(h.FirstOff) != off.Int64() {
						t.Fatalf("from %d, step %d of %d: %+v, want a point: %v", from, i, step, h, want)
					}
				}
			}
		}
		drivetest.Flush(t, s)
	}
	if _, err := s.Series(info, key(0)).Aggregate(t.Context(), reader.MinFrom-1, 1,
		make([]chunk.Header, 1)); err == nil || !strings.Contains(err.Error(), "the lowest is") {
		t.Errorf("from below the lowest slot: %v", err)
	}
}

// What each returns ends the call, and readers leave the store.
func TestAggregateEachEnds(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	s := storetest.Start(t, storetest.OptionsAt(vfs.NewMem(), clock))
	x := drivetest.Session(t, s, "b")
	for i := range 2 {
		x.Point(key(i), epoch, point.FromInt(1))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	handles := []store.Series{s.Series(info, key(0)), s.Series(info, key(1)), s.Series(info, key(0))}
	calls := 0
	err = s.AggregateEach(t.Context(), handles, epoch, 60, make([]chunk.Header, 10),
		func(int, reader.Stats, error) error {
			if calls++; calls == 2 {
				return stop
			}
			return nil
		})
	if !errors.Is(err, stop) || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = s.AggregateEach(ctx, handles, epoch, 60, make([]chunk.Header, 10),
		func(_ int, _ reader.Stats, err error) error {
			return err
		})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if err := s.Close(); err != nil { // waits for readers
		t.Fatal(err)
	}
	err = s.AggregateEach(t.Context(), handles, epoch, 60, make([]chunk.Header, 10),
		func(_ int, _ reader.Stats, err error) error {
			return err
		})
	if err == nil {
		t.Error("a closed store has aggregates")
	}
}
