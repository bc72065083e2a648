package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/testkit/filetest"
)

// A copy outlives a crash once its directory is synced, not before.
func TestACopyOutlivesACrash(t *testing.T) {
	data := bytes.Repeat([]byte("dalmatiner"), copyBuffer/8)
	for _, c := range []struct {
		limit int64
		want  int
	}{{math.MaxInt64, len(data)}, {int64(len(data)), len(data)}, {copyBuffer + 1, copyBuffer + 1},
		{0, 0}} {
		fs := vfs.NewCrashableMem()
		filetest.Write(t, fs, "/from", data)
		if err := SyncDir(fs, "/"); err != nil {
			t.Fatal(err)
		}
		n, err := CopyFile(fs, "/from", "/to", c.limit)
		if err != nil || n != int64(c.want) {
			t.Fatalf("limit %d: %d bytes, %v, want %d", c.limit, n, err, c.want)
		}
		if _, err := fs.CrashClone(vfs.CrashCloneCfg{}).Stat("/to"); err == nil {
			t.Errorf("limit %d: the name is there before the directory was synced", c.limit)
		}
		if err := SyncDir(fs, "/"); err != nil {
			t.Fatal(err)
		}
		if got := filetest.Read(t, fs.CrashClone(vfs.CrashCloneCfg{}), "/to"); !bytes.Equal(got,
			data[:c.want]) {
			t.Errorf("limit %d: %d bytes after a crash, want the first %d", c.limit, len(got), c.want)
		}
	}
}

func TestErrorsNameTheDirectory(t *testing.T) {
	if err := SyncDir(vfs.NewMem(), "/data/wal"); err == nil ||
		!strings.Contains(err.Error(), "/data/wal") {
		t.Errorf("got %v, want the directory's name", err)
	}
}

func TestIsFull(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT,
		&os.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC},
		fmt.Errorf("flush: %w", errors.Join(io.ErrShortWrite, syscall.EDQUOT))} {
		if !IsFull(err) {
			t.Errorf("%v: not a full disk", err)
		}
	}
	for _, err := range []error{nil, syscall.EIO, syscall.EROFS, syscall.EFBIG, io.ErrShortWrite,
		errors.New("no space left on device")} {
		if IsFull(err) {
			t.Errorf("%v: a full disk", err)
		}
	}
}
