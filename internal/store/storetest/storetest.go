// Package storetest opens stores for the tests of the packages above the store, and for those of
// its rooms that need a whole one. The latter drive it with package drivetest.
package storetest

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/store"
)

// Options returns the defaults, except for FS, a new file system in memory, and for MinFree, which
// is 0 because that file system reports no free space.
func Options() store.Options {
	o := store.DefaultOptions("/data")
	o.FS, o.MinFree = vfs.NewMem(), 0
	return o
}

// Open opens a store. At the end of the test it is closed, which must succeed.
func Open(tb testing.TB, o store.Options) *store.Store {
	tb.Helper()
	s, err := store.Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("closing the store: %v", err)
		}
	})
	return s
}
