package tagstore_test

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/testkit/filetest"
)

// TestACopyOfTagsThatCannotBeMended: a device that fails while a start writes a damaged copy again
// does not keep the node from serving (I6). The copy is written behind a later flush.
func TestACopyOfTagsThatCannotBeMended(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	mem, want := taggedDir(t, clock)
	name := drivetest.TagFiles(t, mem)[0]
	was := filetest.Read(t, mem, "/data/tags/"+name)
	damageTags(t, mem, name)
	var failing atomic.Bool
	failing.Store(true)
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite &&
			strings.Contains(op.Path, "tags/") {
			return syscall.EIO
		}
		return nil
	}))
	s := storetest.Start(t, options(fs, clock))
	want.Same(t, s, "while the device fails")
	if named, _ := s.Damage(); len(named) != 1 || !strings.Contains(named[0], name) {
		t.Errorf("the start says %q", named)
	}
	failing.Store(false)
	drivetest.Flush(t, s)
	if err := s.Tags().Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	if string(filetest.Read(t, mem, "/data/tags/"+name)) != string(was) {
		t.Error("the copy was not written again")
	}
}
