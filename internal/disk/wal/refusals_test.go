package wal

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Every way to append refuses what no reader would take, and takes what fits.
func TestEveryAppendRefuses(t *testing.T) {
	l := open(t, vfs.NewMem())
	for name, add := range map[string]func(n int) error{
		"twice": func(n int) error { _, err := l.AppendTwice(make([]byte, n)); return err },
		"headed": func(n int) error {
			_, err := l.AppendHeaded([]byte("h"), make([]byte, max(n, 1)-1))
			return err
		},
	} {
		for _, n := range []int{0, 1, 1024, 1025} {
			err := add(n)
			if ok := 0 < n && n <= 1024 || n == 0 && name == "headed"; ok != (err == nil) {
				t.Errorf("%s: append of %d bytes: %v", name, n, err)
			}
		}
	}
	for _, n := range []int{0, 1, maxHead, maxHead + 1} {
		if _, err := l.AppendHeaded(make([]byte, n), nil); (0 < n && n <= maxHead) != (err == nil) {
			t.Errorf("head of %d bytes: %v", n, err)
		}
	}
}

// A header with a right checksum that says what no writer says is damage.
func TestHeadersThatNobodyWrites(t *testing.T) {
	for name, h := range map[string]header{
		"no first LSN":             {},
		"no first LSN, but others": {clean: 1, prev: 1},
		"beyond the last LSN":      {first: maxLSN + 1},
		"clean end behind":         {first: 9, clean: 10},
		"previous file behind":     {first: 9, prev: 10},
		"its own previous file":    {first: 9, prev: 9},
	} {
		if _, _, err := parseHeader(appendHeader(nil, h)); !errors.Is(err, errBadHeader) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, h := range []header{{first: 1}, {first: maxLSN}, {first: 9, clean: 9, prev: 8}} {
		if got, _, err := parseHeader(appendHeader(nil, h)); err != nil || got != h {
			t.Errorf("%+v became %+v: %v", h, got, err)
		}
	}
}

// shortFS writes a byte less than it is given, and gives no error, when told.
type shortFS struct {
	vfs.FS
	short *atomic.Bool
}

func (s shortFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	return &shortFile{f, s.short}, err
}

type shortFile struct {
	vfs.File
	short *atomic.Bool
}

func (f *shortFile) Write(p []byte) (int, error) {
	if f.short.Load() {
		p = p[:len(p)-1]
	}
	return f.File.Write(p)
}

// A write that is short without an error ends the log: nothing behind it could be read.
func TestAShortWriteEndsTheLog(t *testing.T) {
	var short atomic.Bool
	mem := vfs.NewMem()
	l := open(t, shortFS{mem, &short})
	want := add(t, l, "a", "b")
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	short.Store(true)
	if _, err := l.Append([]byte("c")); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); !errors.Is(err, io.ErrShortWrite) || !strings.Contains(err.Error(), ".wal") {
		t.Fatalf("a short write: %v", err)
	}
	_ = l.Close() // the same error
	got, _ := replayAll(t, open(t, mem), 0)
	wantEntries(t, got, want)
}
