package tagstore_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/store"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

func TestMain(m *testing.M) { drivetest.Main(m) }

// options returns those of a store that flushes and merges, tags too, when a test says so.
func options(fs vfs.FS, clock *drivetest.Clock) store.Options {
	o := storetest.OptionsAt(fs, clock)
	storetest.ByHand(&o)
	return o
}

// taggedDir returns a directory that drivetest.FillTagged has filled, and its tags.
func taggedDir(t *testing.T, clock *drivetest.Clock) (*vfs.MemFS, drivetest.TagModel) {
	t.Helper()
	fs := vfs.NewMem()
	s := storetest.Start(t, options(fs, clock))
	want := drivetest.FillTagged(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs, want
}
