package snapshot_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/store/storetest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A crash before any of the moves of a restore, or before what it was built in is
// removed, leaves a directory that no start takes for a store with losses.
func TestCrashInARestore(t *testing.T) {
	t.Parallel()
	mem, o := storetest.Merged(t)
	var crashes []*vfs.MemFS
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRename || op.Kind == errorfs.OpRemoveAll {
			crashes = append(crashes,
				mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}))
		}
		return nil
	}))
	if _, err := snapshot.Restore(t.Context(),
		snapshot.RestoreOptions{FS: fs, From: o.Dir, To: "/new"}); err != nil {
		t.Fatal(err)
	}
	if len(crashes) < 6 {
		t.Fatalf("%d moves", len(crashes))
	}
	crashes = append(crashes, mem)
	for i, c := range crashes {
		o := o
		o.FS, o.Dir = c, "/new"
		s, err := storetest.TryStart(o)
		if i < len(crashes)-1 && (err == nil || !strings.Contains(err.Error(), datadir.Restore)) {
			t.Errorf("crash %d: opened, or refused without a remedy: %v", i, err)
		}
		if err != nil && i < len(crashes)-1 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if lost := s.Account().Losses(); len(lost) > 0 {
			t.Errorf("crash %d: a segment is missing: %+v", i, lost)
		}
		if i == len(crashes)-1 {
			if n := drivetest.MissingNoise(t, s, "a", drivetest.Epoch, drivetest.Epoch+1440); n != 0 {
				t.Errorf("%d points are missing after the restore", n)
			}
		}
		s.Crash()
	}
}

// What a restore has moved is on disk before what it was built in, which marks the directory
// as unfinished, is removed: a real file system may keep the one without the other, which
// the one in memory does not.
func TestARestoreSyncsItsMovesFirst(t *testing.T) {
	t.Parallel()
	mem, o := storetest.Merged(t)
	moved, synced, removed := 0, false, false
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpRename:
			moved++
			synced = false
		case errorfs.OpFileSync:
			synced = synced || op.Path == "/new"
		case errorfs.OpRemoveAll:
			if removed = true; !synced {
				t.Errorf("%s is removed, %d moves before it may not be on disk", op.Path, moved)
			}
		}
		return nil
	}))
	if _, err := snapshot.Restore(t.Context(),
		snapshot.RestoreOptions{FS: fs, From: o.Dir, To: "/new"}); err != nil {
		t.Fatal(err)
	}
	if moved == 0 || !removed {
		t.Errorf("%d moves, removed: %v", moved, removed)
	}
}
