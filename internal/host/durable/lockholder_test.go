package durable

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestHolderIn(t *testing.T) {
	const list = `1: POSIX  ADVISORY  READ 11 fd:00:77 0 EOF
2: -> POSIX  ADVISORY  WRITE 22 fd:00:78 0 EOF
2: POSIX  ADVISORY  WRITE 33 fd:00:78 0 EOF
3: FLOCK  ADVISORY  WRITE 0 fd:00:79 0 EOF
4: cut off
5: POSIX  ADVISORY  WRITE 55 fd:00:178 0 EOF
`
	for inode, want := range map[uint64]int{77: 11, 78: 33, 79: 0, 8: 0, 178: 55} {
		if got := holderIn(strings.NewReader(list), inode); got != want {
			t.Errorf("inode %d is held by %d, want %d", inode, got, want)
		}
	}
}

func TestLockHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "LOCK")
	if pid := LockHolder(path); pid != 0 {
		t.Errorf("a missing file is held by %d", pid)
	}
	lock, err := vfs.Default.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/locks"); err == nil {
		if pid := LockHolder(path); pid != os.Getpid() {
			t.Errorf("held by %d, this is %d", pid, os.Getpid())
		}
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if pid := LockHolder(path); pid != 0 {
		t.Errorf("a free lock is held by %d", pid)
	}
}
