package snapshot_test

import (
	"context"
	"testing"

	"dalmatiner/internal/store"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/store/storetest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A snapshot of a store to which nothing was ever sent can be restored, and started.
func TestSnapshotOfAnEmptyStore(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := storetest.OptionsAt(fs, drivetest.NewClock())
	s := storetest.Start(t, o)
	snap, err := store.NewOperations(s.Store).Snapshot(context.Background(), "empty")
	s.Crash()
	if err != nil {
		t.Fatal(err)
	}
	o.Dir = "/restored"
	if _, err := snapshot.Restore(context.Background(),
		snapshot.RestoreOptions{FS: fs, From: snap.Dir, To: o.Dir}); err != nil {
		t.Fatal(err)
	}
	s = storetest.Start(t, o)
	defer s.Crash()
	if names, n := s.Damage(); n != 0 {
		t.Errorf("%d damages: %v", n, names)
	}
}
