package snapshot_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/testkit/filetest"
)

// What is restored from a snapshot is what was there when it was made, and
// stays so whatever the store does afterwards.
func TestRestoreReadsBack(t *testing.T) {
	t.Parallel()
	fs, clock := vfs.NewMem(), drivetest.NewClock()
	s := storetest.FillRows(t, storetest.OptionsAt(fs, clock))
	op := store.NewOperations(s.Store)
	snap, err := op.Snapshot(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.BucketByName("rows")
	if err != nil {
		t.Fatal(err)
	}
	account := s.Account().Total(info.ID)
	drivetest.SendRows(t, s, drivetest.RowSlots*3/4, drivetest.RowSlots)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if snap.Files == 0 || snap.Bytes < snap.Linked || snap.Linked == 0 {
		t.Errorf("%+v", snap)
	}
	for to, link := range map[string]bool{"/copied": false, "/linked": true} {
		r, err := snapshot.Restore(t.Context(), snapshot.RestoreOptions{FS: fs, From: snap.Dir, To: to,
			Link: link})
		if err != nil || r.Files != snap.Files || r.Bytes != snap.Bytes || r.Linked > 0 != link ||
			r.Check.Points == 0 {
			t.Fatalf("%s: %v, %+v", to, err, r)
		}
		o := storetest.OptionsAt(fs, clock)
		o.Dir = to
		restored := storetest.Start(t, o)
		if missing := drivetest.CheckRows(t, restored, drivetest.RowSlots*3/4); missing != 0 {
			t.Errorf("%s: %d words are missing", to, missing)
		}
		if got := restored.Account().Total(info.ID); got != account {
			t.Errorf("%s: the account is %+v, was %+v", to, got, account)
		}
		if names, n := restored.Damage(); n != 0 {
			t.Errorf("%s: damage: %v", to, names)
		}
		drivetest.SendRows(t, restored, drivetest.RowSlots*3/4, drivetest.RowSlots)
		if err := restored.Close(); err != nil {
			t.Fatal(err)
		}
		if r := drivetest.Check(t, fs, to); r.Damaged != 0 {
			t.Errorf("%s, after a run: %v", to, r.Damages)
		}
	}
	if r := drivetest.Check(t, fs, snap.Dir); r.Damaged != 0 || len(r.Expected) != 0 {
		t.Errorf("the snapshot afterwards: %v, %v", r.Damages, r.Expected)
	}
}

// A snapshot beside senders holds every point acknowledged before it, and its
// account is the one of its points (I1, I3).
func TestSnapshotBesideSenders(t *testing.T) {
	t.Parallel()
	fs, clock := vfs.NewMem(), drivetest.NewClock()
	o := storetest.OptionsAt(fs, clock)
	o.FlushBytes = 16 << 10
	s := storetest.Start(t, o)
	op := store.NewOperations(s.Store)
	stop := make(chan struct{})
	started := make(chan struct{})
	var wg sync.WaitGroup
	x := drivetest.Session(t, s, "rows")
	wg.Go(func() {
		for slot := uint64(0); ; slot++ {
			for i := range drivetest.RowSeries {
				x.Point(drivetest.Key(i), drivetest.Epoch+slot%500, point.FromInt(int64(slot)))
			}
			if _, err := x.Commit(); err != nil {
				t.Error(err)
			}
			if slot == 50 {
				close(started)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	<-started
	for _, name := range []string{"a", "b", "c"} {
		info, _ := s.BucketByName("rows")
		before := s.Account().Total(info.ID)
		snap, err := op.Snapshot(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		restored := storetest.Restore(t, fs, snap.Dir, "/"+name, clock)
		after := restored.Account().Total(info.ID)
		got, least := after.ReceivedPoints(), before.ReceivedPoints()
		if got < least || got%drivetest.RowSeries != 0 && got == 0 {
			t.Errorf("%d points in the account of the snapshot, %d before it", got, least)
		}
		drivetest.CheckMinutes(t, restored, info.ID, after)
		for i := range drivetest.RowSeries {
			for slot, w := range drivetest.Words(t, restored, "rows", i, drivetest.Epoch, 51) {
				if w == 0 {
					t.Fatalf("series %d slot %d is missing", i, slot)
				}
			}
		}
		restored.Crash()
	}
	close(stop)
	wg.Wait()
	if err := errors.Join(x.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotNames(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := storetest.OptionsAt(fs, drivetest.NewClock())
	s := storetest.FillRows(t, o)
	defer func() { s.Crash() }()
	op := store.NewOperations(s.Store)
	for _, name := range []string{"", ".", "..", ".hidden", "a/b", "a b", "ä", "x.tmp", "a\x00",
		strings.Repeat("x", 101)} {
		if _, err := op.Snapshot(t.Context(), name); !errors.Is(err, snapshot.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
		if err := op.DeleteSnapshot(name); !errors.Is(err, snapshot.ErrName) {
			t.Errorf("deleting %q: %v", name, err)
		}
	}
	for _, name := range []string{"b", strings.Repeat("x", 100), "2026-11-20_a.1"} {
		if _, err := op.Snapshot(t.Context(), name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := op.Snapshot(t.Context(), "b"); !errors.Is(err, snapshot.ErrExists) {
		t.Errorf("again: %v", err)
	}
	if err := op.DeleteSnapshot("b"); err != nil {
		t.Error(err)
	}
	if err := op.DeleteSnapshot("b"); !errors.Is(err, snapshot.ErrUnknown) {
		t.Errorf("deleted twice: %v", err)
	}
	all, err := op.Snapshots()
	if err != nil || len(all) != 2 || all[0].Name != "2026-11-20_a.1" || all[0].Bytes == 0 {
		t.Errorf("%v, %+v", err, all)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = storetest.Start(t, o)
	if names, n := s.Damage(); n != 0 {
		t.Errorf("snapshots are damage to a start: %v", names)
	}
}

// A snapshot that fails half-way leaves nothing, and the store goes on.
func TestAFailedSnapshotLeavesNothing(t *testing.T) {
	t.Parallel()
	f := filetest.NewFaults(vfs.NewMem())
	s := storetest.FillRows(t, storetest.OptionsAt(f.FS, drivetest.NewClock()))
	defer s.Crash()
	op := store.NewOperations(s.Store)
	for _, fault := range []struct {
		part string
		kind errorfs.OpKind
	}{
		{"snapshots/x.tmp", errorfs.OpMkdirAll}, {"flush/", errorfs.OpLink},
		{"snapshots/x.tmp/MANIFEST", errorfs.OpCreate},
		{"snapshots/x.tmp/wal", errorfs.OpFileSync}, {"snapshots/x", errorfs.OpRename},
	} {
		f.Fail(fault.part, fault.kind)
		if _, err := op.Snapshot(t.Context(), "x"); err == nil {
			t.Errorf("%+v does not fail", fault)
		}
		f.Clear()
		if names, err := f.FS.List("/data/snapshots"); err != nil || len(names) != 0 {
			t.Errorf("%+v leaves %v, %v", fault, names, err)
		}
	}
	if _, err := op.Snapshot(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	if missing := drivetest.CheckRows(t, s, drivetest.RowSlots*3/4); missing != 0 {
		t.Errorf("%d words are missing", missing)
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	fs, clock := vfs.NewMem(), drivetest.NewClock()
	s := storetest.FillRows(t, storetest.OptionsAt(fs, clock))
	defer func() { s.Crash() }()
	snap, err := store.NewOperations(s.Store).Snapshot(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	try := func(from, to string) (snapshot.RestoreReport, error) {
		return snapshot.Restore(context.Background(), snapshot.RestoreOptions{FS: fs, From: from, To: to})
	}
	if _, err := try("/nowhere", "/new"); !errors.Is(err, fsck.ErrNoStore) {
		t.Error(err)
	}
	if _, err := try(snap.Dir, "/data"); !errors.Is(err, snapshot.ErrNotEmpty) {
		t.Error(err)
	}
	if _, err := try("/data", "/new"); err == nil || !strings.Contains(err.Error(), "running node") {
		t.Errorf("a running node: %v", err)
	}
	names, err := fs.List(snap.Dir + "/flush")
	if err != nil || len(names) == 0 {
		t.Fatal(err, names)
	}
	filetest.FlipBit(t, fs, snap.Dir+"/flush/"+names[0], 1000)
	r, err := try(snap.Dir, "/new")
	if !errors.Is(err, snapshot.ErrDamaged) || len(r.Check.Damages) == 0 ||
		r.Check.Damages[0].File != "flush/"+names[0] {
		t.Errorf("%v, %+v", err, r)
	}
	if left, err := fs.List("/new"); err != nil || len(left) != 0 {
		t.Errorf("a refused restore leaves %v, %v", left, err)
	}
	if _, err := snapshot.Restore(t.Context(),
		snapshot.RestoreOptions{FS: fs, From: snap.Dir, To: "/new", AllowDamage: true}); err != nil {
		t.Fatal(err)
	}
	o := storetest.OptionsAt(fs, clock)
	o.Dir = "/new"
	restored := storetest.Start(t, o)
	defer restored.Crash()
	if missing := drivetest.CheckRows(t, restored, drivetest.RowSlots*3/4); missing == 0 ||
		missing == drivetest.RowSeries*drivetest.RowSlots*3/4 {
		t.Errorf("%d words are missing behind one damaged block", missing)
	}
}
