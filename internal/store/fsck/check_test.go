package fsck_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/inventory"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/testkit/filetest"
)

// mergeRows lets half a day pass, so that the segments become a window.
func mergeRows(t *testing.T, s *storetest.Store, clock *drivetest.Clock) {
	t.Helper()
	s.Pass(t, clock, 12*time.Hour)
	drivetest.SendRows(t, s, 43200, 43210)
	if _, err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The merge that the flush asked for may have done it before.
	list, err := store.NewOperations(s.Store).Segments(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	merged := slices.ContainsFunc(list, func(seg inventory.Segment) bool {
		return strings.HasPrefix(seg.File, datadir.SegmentDirs[manifest.Window]+"/")
	})
	if !merged {
		t.Fatal("no window was written")
	}
	drivetest.SendRows(t, s, 43210, 43220)
}

// A store without damage is clean, while it runs, after a crash and after a
// clean stop, and a check changes nothing.
func TestCheckOfAWholeStore(t *testing.T) {
	t.Parallel()
	fs, clock := vfs.NewMem(), drivetest.NewClock()
	s := storetest.FillRows(t, storetest.OptionsAt(fs, clock))
	online, err := store.NewOperations(s.Store).Check(t.Context(), fsck.Options{})
	if err != nil || online.Damaged != 0 || !online.Online {
		t.Fatalf("online: %v, %+v", err, online)
	}
	s.Crash()
	before := list(t, fs, "/data")
	crashed := drivetest.Check(t, fs, "/data")
	if crashed.Damaged != 0 || crashed.Series != drivetest.RowSeries || crashed.Records == 0 ||
		crashed.Points != drivetest.RowSeries*drivetest.RowSlots/2 ||
		crashed.Chunks != 2*drivetest.RowSeries || crashed.Blocks == 0 {
		t.Fatalf("after a crash: %+v", crashed)
	}
	if after := list(t, fs, "/data"); after != before {
		t.Errorf("the check changed the directory:\n%s\nbefore:\n%s", after, before)
	}
	s = storetest.Start(t, storetest.OptionsAt(fs, clock))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r := drivetest.Check(t, fs, "/data"); r.Damaged != 0 ||
		r.Points != drivetest.RowSeries*drivetest.RowSlots*3/4 || len(r.Expected) != 0 {
		t.Errorf("after a clean stop: %+v", r)
	}
}

// What merges and deletions leave is whole, and so is a snapshot of it.
func TestCheckAfterMerges(t *testing.T) {
	t.Parallel()
	fs, clock := vfs.NewMem(), drivetest.NewClock()
	s := storetest.FillRows(t, storetest.OptionsAt(fs, clock))
	defer func() { s.Crash() }()
	x := drivetest.Session(t, s, "gone")
	for i := range drivetest.RowSeries {
		x.Point(drivetest.Key(i), drivetest.Epoch, point.FromInt(1))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	mergeRows(t, s, clock)
	if err := s.DeleteBucket("gone"); err != nil {
		t.Fatal(err)
	}
	op := store.NewOperations(s.Store)
	for _, what := range []string{"deleted", "flushed", "merged"} {
		if r, err := op.Check(t.Context(), fsck.Options{}); err != nil || r.Damaged != 0 {
			t.Errorf("%s: %v, %v", what, err, r.Damages)
		}
		if what == "deleted" {
			drivetest.SendRows(t, s, 43220, 43230)
			if _, err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else if _, err := s.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := op.Snapshot(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	restored := storetest.Restore(t, fs, snap.Dir, "/restored", clock)
	if missing := drivetest.CheckRows(t, restored, drivetest.RowSlots*3/4); missing != 0 {
		t.Errorf("%d words are missing", missing)
	}
	restored.Crash()
	s.Crash()
	if r := drivetest.Check(t, fs, "/data"); r.Damaged != 0 {
		t.Errorf("offline: %v", r.Damages)
	}
	s = storetest.Start(t, storetest.OptionsAt(fs, clock))
}

// list is the names and the content of all files.
func list(t *testing.T, fs vfs.FS, dir string) string {
	t.Helper()
	var b strings.Builder
	err := datadir.Walk(fs, dir, func(file string, size int64) error {
		text, err := durable.ReadFile(fs, fs.PathJoin(dir, file))
		fmt.Fprintf(&b, "%s %d %x\n", file, size, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := storetest.OptionsAt(fs, drivetest.NewClock())
	s := storetest.FillRows(t, o)
	defer s.Crash()
	if _, err := fsck.CheckDir(t.Context(), fs, "/data", fsck.Options{}); err == nil ||
		!strings.Contains(err.Error(), "running node") {
		t.Errorf("a directory in use: %v", err)
	}
	for _, dir := range []string{"/nowhere", "/data/lost+found"} {
		if _, err := fsck.CheckDir(t.Context(), fs, dir, fsck.Options{}); !errors.Is(err,
			fsck.ErrNoStore) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	op := store.NewOperations(s.Store)
	var inner error
	_, err := op.Check(t.Context(), fsck.Options{Progress: func(fsck.Progress) {
		_, inner = op.Check(t.Context(), fsck.Options{})
	}})
	if err != nil || !errors.Is(inner, store.ErrBusy) {
		t.Errorf("two at once: %v, %v", err, inner)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := op.Check(ctx, fsck.Options{}); !errors.Is(err, context.Canceled) || r.Damaged != 0 {
		t.Errorf("cancelled: %v, %+v", err, r.Damages)
	}
}

// Series that begin or are deleted at any moment of a check are no damage.
func TestCheckBesideFlushes(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	s := storetest.FillRows(t, storetest.OptionsAt(vfs.NewMem(), clock))
	defer func() { s.Crash() }()
	steps := 0
	change := func(p fsck.Progress) {
		steps++
		x := drivetest.Session(t, s, "rows")
		for i := range 10 {
			x.Point(drivetest.Key(1000*steps+i), uint64(clock.Now().Unix()), point.FromInt(1))
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		first := deletion.Choice{Key: drivetest.Key(1000*steps - 999)}
		if _, err := s.DeleteSeries(t.Context(), "rows", first, false); steps > 1 && err != nil {
			t.Fatal(err)
		}
		s.Pass(t, clock, 3*time.Hour)
		drivetest.Flush(t, s)
		if p.File != datadir.Catalogue { // the segments stay that the MANIFEST names
			return
		}
		if _, err := s.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := store.NewOperations(s.Store).Check(t.Context(), fsck.Options{Progress: change})
	if err != nil || r.Damaged != 0 || steps < 4 {
		t.Fatalf("%d steps: %v, %v", steps, err, r.Damages)
	}
	s.CheckSound(t)
}

// A disk that does not give a file is damage in a check, and an error or a
// counted hole for a reader; no word is wrong (I5).
func TestCheckWithAFailingDisk(t *testing.T) {
	t.Parallel()
	f := filetest.NewFaults(vfs.NewMem())
	s := storetest.FillRows(t, storetest.OptionsAt(f.FS, drivetest.NewClock()))
	defer s.Crash()
	f.Fail(".seg", errorfs.OpFileReadAt)
	op := store.NewOperations(s.Store)
	r, err := op.Check(t.Context(), fsck.Options{})
	if err != nil || r.Damaged != 2 ||
		!strings.Contains(r.Damages[0].String(),
			"flush/0000000000000001.seg: offset 0, file: cannot be read") {
		t.Errorf("%v, %+v", err, r.Damages)
	}
	info, err := s.BucketByName("rows")
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]uint64, 10)
	_, before := s.Damage()
	if err := s.Read(t.Context(), info, drivetest.Key(1), drivetest.Epoch, dst); err == nil {
		if _, after := s.Damage(); after == before || slices.ContainsFunc(dst, func(w uint64) bool {
			return w != 0
		}) {
			t.Errorf("reads %x without an error or a count", dst)
		}
	}
	f.Clear()
	if r, err := op.Check(t.Context(), fsck.Options{}); err != nil || r.Damaged != 0 {
		t.Errorf("the disk works again: %v, %+v", err, r.Damages)
	}
	if missing := drivetest.CheckRows(t, s, drivetest.RowSlots*3/4); missing != 0 {
		t.Errorf("%d words are missing though the disk works again", missing)
	}
}
