package version

import (
	"errors"
	"testing"

	"dalmatiner/internal/disk/manifest"
)

// Removals count as durable only after a sync that worked: until then each retry syncs again, and
// afterwards none does.
func TestRemovalsAreSyncedUntilThatWorks(t *testing.T) {
	var l leftovers
	syncs, broken := 0, errors.New("no disk")
	var fails error
	retry := func(want error, all int) {
		t.Helper()
		err := l.retry(func(*manifest.Segment) error {
			return nil
		}, func() error { syncs++; return fails })
		if !errors.Is(err, want) || syncs != all {
			t.Errorf("%v after %d syncs, want %v after %d", err, syncs, want, all)
		}
	}
	retry(nil, 0) // nothing was removed
	l.noteRemoved(&manifest.Segment{Seq: 1}, nil)
	fails = broken
	retry(broken, 1)
	retry(broken, 2)
	fails = nil
	retry(nil, 3)
	retry(nil, 3)
	// One that could not be removed is removed by a retry, and that is synced, too.
	l.noteRemoved(&manifest.Segment{Seq: 2}, broken)
	retry(nil, 4)
	if retry(nil, 4); len(l.list) != 0 {
		t.Errorf("%d are left", len(l.list))
	}
}
