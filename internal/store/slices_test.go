package store

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
)

// While many series are deleted, flushes are done and new series begin; those
// that begin anew stay, and after a crash in the middle each series is whole, as
// it was before or as it began anew.
func TestFlushesAndSendersDoNotWaitForADeletion(t *testing.T) {
	t.Parallel()
	const width = 800
	clock, mem := newTestClock(), vfs.NewCrashableMem()
	o := testOptions(mem, clock)
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	s.o.deleteSlice = 8
	x := mustSession(t, s, "b")
	prefix, _ := metric.Key("series")
	send := func(slot int64) {
		for i := range width {
			x.Point(key(i), uint64(slot), point.FromInt(slot-epoch+1))
		}
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	slot := int64(epoch)
	drivetest.Eventually(t, "a flush and a new series come in between", func() bool {
		send(slot)
		done, before := make(chan error, 1), s.Stats().Deleted.Series
		go func() {
			got, err := s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: prefix, Prefix: true},
				false)
			if err == nil && got.Series != width {
				err = errors.New("not all were deleted")
			}
			done <- err
		}()
		between := false
		for n := 0; ; n++ {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				slot++
				return between
			default:
			}
			other, _ := metric.Key("other", string(rune('a'+n%26)))
			x.Point(other, uint64(slot), point.FromInt(1))
			x.Point(key(0), uint64(slot), point.FromInt(slot-epoch+1))
			if _, err := x.Commit(); err != nil {
				t.Fatal(err)
			}
			mustFlush(t, s)
			gone := s.Stats().Deleted.Series - before
			between = between || gone > 0 && gone < width
		}
	})
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
	s = mustOpen(t, o)
	for i := 1; i < width; i++ {
		for at, w := range readAll(t, s, "b", i, epoch, int(slot-epoch)) {
			if w != 0 {
				t.Fatalf("series %d slot %d holds %x", i, at, w)
			}
		}
	}
	// Of the first one, points that came after its turn in the last deletion.
	if got := readAll(t, s, "b", 0, epoch, int(slot-epoch)); len(got) > 1 && got[0] != 0 {
		t.Errorf("a point of the first round came back: %x", got[0])
	}
}
