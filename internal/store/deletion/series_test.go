package deletion_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/testkit/filetest"
)

// A crash at any operation of the disk leaves each series whole or gone, and gone for good once the
// token was waited for. What was deleted at an incarnation that this store never had begins anew in
// it.
func TestDeletionsElsewhereSurviveCrashes(t *testing.T) {
	t.Parallel()
	const n = 12
	for at := range 60 {
		mem := vfs.NewCrashableMem()
		f := filetest.NewFaults(mem)
		o := storetest.OptionsAt(f.FS, drivetest.NewClock())
		storetest.ByHand(&o)
		o.WALInterval = time.Millisecond
		s := storetest.Start(t, o)
		drivetest.SendRows(t, s, 0, 5)
		drivetest.Flush(t, s)
		b := mustBucket(t, s, "rows")
		before := s.BucketStats(b.ID).Series
		clone := f.CloneAt(mem, 1+at)
		var list []deletion.At
		foreign := uint64(o.Now().UnixNano()) + 5
		for i := range n {
			list = append(list, deletion.At{
				ID:          metric.Series(b.ID, drivetest.Key(i)),
				Incarnation: foreign + uint64(i%3),
			})
		}
		absent := metric.SeriesID{9, 9, 9}
		list = append(list, deletion.At{ID: absent, Incarnation: foreign})
		token, err := s.DeleteSeriesAt(t.Context(), b.ID, list)
		if err == nil {
			err = s.Intake().WaitDurable(t.Context(), token)
		}
		if err != nil {
			t.Fatal(err)
		}
		left := clone()
		done := left == nil
		if done {
			left = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: at % 2 * 50,
				RNG: rand.New(rand.NewPCG(uint64(at), 1))})
		}
		f.Clear()
		s.Crash()
		o.FS = left
		s = storetest.Start(t, o)
		b = mustBucket(t, s, "rows")
		for i := range n {
			gone := s.Incarnation(b.ID, metric.Series(b.ID, drivetest.Key(i))) == foreign+uint64(i%3)
			if done && !gone {
				t.Fatalf("crash %d: series %d is there again", at, i)
			}
			for slot, w := range drivetest.Words(t, s, "rows", i, epoch, 5) {
				if want := drivetest.RowWord(i, epoch+int64(slot)); !gone && w != want || gone && w != 0 {
					t.Fatalf("crash %d: series %d, deleted %t, has %x in slot %d", at, i, gone, w, slot)
				}
			}
		}
		if done && (s.Incarnation(b.ID, absent) != foreign || s.BucketStats(b.ID).Series != before-n) {
			t.Fatalf("crash %d: incarnation %d of a series that was never here, want %d; %d series", at,
				s.Incarnation(b.ID, absent), foreign, s.BucketStats(b.ID).Series)
		}
		s.Crash()
	}
}

// A series that is given up and comes back has what was written since, and its incarnation.
func TestDroppedSeriesComeBackEmpty(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	fs := vfs.NewCrashableMem()
	o := storetest.OptionsAt(fs, clock)
	storetest.ByHand(&o)
	s := storetest.Start(t, o)
	send := func(slot uint64, v int64) {
		t.Helper()
		x := drivetest.Session(t, s, "b")
		for i := range 3 {
			x.Point(drivetest.Key(i), epoch+slot, point.FromInt(v))
		}
		durable, err := x.Commit()
		if err == nil {
			err = s.Intake().WaitDurable(t.Context(), durable)
		}
		if err := errors.Join(err, x.Close()); err != nil {
			t.Fatal(err)
		}
	}
	send(0, 1)
	b := mustBucket(t, s, "b")
	if _, err := s.DeleteSeriesAt(t.Context(), b.ID,
		[]deletion.At{{ID: metric.Series(b.ID, drivetest.Key(1)), Incarnation: 77}}); err != nil {
		t.Fatal(err)
	}
	send(1, 2)
	drivetest.Flush(t, s)
	send(2, 3)
	if err := s.DropSeries(b.ID, []metric.SeriesID{metric.Series(b.ID, drivetest.Key(0)),
		metric.Series(b.ID, drivetest.Key(1)), metric.Series(b.ID, drivetest.Key(9))}); err != nil {
		t.Fatal(err)
	}
	send(3, 4)
	clone := fs.CrashClone(vfs.CrashCloneCfg{})
	checkDropped(t, s)
	drivetest.Flush(t, s)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkDropped(t, s)
	s.Crash()
	o.FS = clone
	s = storetest.Start(t, o)
	defer func() { s.Crash() }()
	checkDropped(t, s)
	drivetest.Flush(t, s)
	checkDropped(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = storetest.Start(t, o)
	checkDropped(t, s)
}

// checkDropped checks what TestDroppedSeriesComeBackEmpty leaves.
func checkDropped(t *testing.T, s *storetest.Store) {
	t.Helper()
	for i, want := range [][]int64{{0, 0, 0, 4}, {0, 0, 0, 4}, {1, 2, 3, 4}} {
		var words []uint64
		for _, v := range want {
			w := point.FromInt(v)
			if v == 0 {
				w = point.Unset
			}
			words = append(words, w)
		}
		if got := drivetest.Words(t, s, "b", i, epoch, 4); !slices.Equal(got, words) {
			t.Errorf("series %d has %x, want %x", i, got, words)
		}
	}
	b := mustBucket(t, s, "b")
	for i, want := range []uint64{0, 77, 0} {
		if got := s.Incarnation(b.ID, metric.Series(b.ID, drivetest.Key(i))); got != want {
			t.Errorf("series %d is in incarnation %d, want %d", i, got, want)
		}
	}
	all := map[metric.SeriesID]uint64{}
	s.Incarnations(func(bucket uint64, id metric.SeriesID, n uint64) bool {
		all[id] = n
		return bucket == b.ID
	})
	if len(all) != 1 || all[metric.Series(b.ID, drivetest.Key(1))] != 77 {
		t.Errorf("incarnations %v", all)
	}
	if names, n := s.Damage(); n > 0 {
		t.Errorf("damage: %v", names)
	}
	s.CheckSound(t)
}

// A name that has no bytes is refused even where a column has lost its name.
func TestAnEmptyNameIsNotADeletedSeries(t *testing.T) {
	t.Parallel()
	s := storetest.Start(t, storetest.OptionsAt(vfs.NewMem(), drivetest.NewClock()))
	defer s.Crash()
	x := drivetest.Session(t, s, "b")
	x.Point(drivetest.Key(0), epoch, point.FromInt(1))
	x.Point(drivetest.Key(1), epoch, point.FromInt(2))
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: drivetest.Key(1)},
		false); err != nil {
		t.Fatal(err)
	}
	x.Point(drivetest.Key(0), epoch+1, point.FromInt(1))
	x.Point(nil, epoch+1, point.FromInt(7))
	x.Points(bytes.Clone(nil), epoch+2, point.Append(nil, point.FromInt(7)))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if tot := x.Totals(); tot.Received != 5 || tot.Refused != 2 {
		t.Errorf("%+v, want 2 of 5 refused", tot)
	}
}
