package wal

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/testkit/pagecache"
)

// A process whose fsync fails leaves records that the page cache shows and the disk
// never gets. Those that the next start gives out stay, through a power cut behind it,
// and so does what is written on top of them: which fsync it was, and of what.
func TestWhatAFailedFsyncLeftStays(t *testing.T) {
	met := 0
	for nth := 1; ; nth++ {
		fs := pagecache.New()
		l, left := open(t, fs), nth
		fs.FailSyncs(func(string) bool { left--; return left == 0 })
		for i := range 12 { // over several files
			if _, err := l.Append(fmt.Appendf(nil, "%0100d", i)); err != nil {
				break
			}
			if l.Sync() != nil {
				break
			}
		}
		_ = l.Close() // it may have failed
		fs.FailSyncs(nil)
		if left > 0 {
			break
		}
		met++
		l = open(t, fs)
		want, report := replayAll(t, l, 0)
		if len(report.Damaged)+len(report.Missing) > 0 {
			t.Fatalf("fsync %d: damage in what the page cache has: %+v", nth, report)
		}
		want = append(want, add(t, l, "and on")...)
		closeLog(t, l)
		fs, err := fs.PowerCut()
		if err != nil {
			t.Fatal(err)
		}
		got, report := replayAll(t, open(t, fs), 0)
		if len(report.Damaged)+len(report.Missing) > 0 {
			t.Errorf("fsync %d: damage: %+v", nth, report)
		}
		wantEntries(t, got, want)
	}
	if met < 12 {
		t.Errorf("%d fsyncs failed", met)
	}
}

// Where a file system that never writes in place has no room to write the end again,
// the log opens all the same.
func TestAFullDiskDoesNotKeepTheLogShut(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, mem)
	want := add(t, l, "a", "b")
	closeLog(t, l)
	full := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt && strings.HasSuffix(op.Path, ".wal") {
			return syscall.ENOSPC
		}
		return nil
	}))
	removed := Options{FS: full, Dir: dir}
	if err := mem.Remove(mem.PathJoin(dir, lastFile)); err != nil { // nothing is known to be on disk
		t.Fatal(err)
	}
	l, err := Open(removed)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := replayAll(t, l, 0)
	wantEntries(t, got, want)
	closeLog(t, l)
}
