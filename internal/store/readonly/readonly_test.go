package readonly

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The rate bounds what a check reads: the waits that are asked for add up.
func TestPaceWaits(t *testing.T) {
	p := &pace{ctx: t.Context(), rate: 100 << 20}
	start := time.Now()
	for range 20 {
		if err := p.took(1 << 20); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < 150*time.Millisecond {
		t.Errorf("20 MiB at 100 MiB/s were let through in %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&pace{ctx: ctx, rate: 1}).took(100); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait goes on after the end: %v", err)
	}
}

func TestNothingIsWritten(t *testing.T) {
	fs := New(t.Context(), vfs.NewMem(), 0)
	none := vfs.WriteCategoryUnspecified
	_, e1 := fs.Create("/a", none)
	_, e2 := fs.OpenReadWrite("/a", none)
	_, e3 := fs.ReuseForWrite("/a", "/b", none)
	for i, err := range []error{e1, e2, e3, fs.Link("/a", "/b"), fs.Rename("/a", "/b"),
		fs.Remove("/a"), fs.RemoveAll("/a"), fs.MkdirAll("/a", 0o700)} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	lock, err := fs.Lock("/LOCK")
	if names, lerr := fs.List("/"); err != nil || lerr != nil || len(names) != 0 {
		t.Errorf("%v, %v: %v", err, lerr, names)
	}
	if err := errors.Join(lock.Close(), io.Closer(noLock{}).Close()); err != nil {
		t.Error(err)
	}
}
