package catalogue

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/testkit/filetest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func inspectAll(t *testing.T, fs vfs.FS, dir string) (n int, mark uint64, found []Damage) {
	t.Helper()
	mark, found, err := Inspect(fs, dir, slog.New(slog.DiscardHandler), func(segment.Series) error {
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, mark, found
}

// Every flipped bit of a table is found and blamed on its file.
func TestInspectFindsEveryFlippedBit(t *testing.T) {
	fs, m, generation := filledFS(t)
	if n, got, found := inspectAll(t, fs, testDir); n != len(m) || got != Mark(generation) ||
		len(found) != 0 {
		t.Fatalf("%d series, mark %d, %v; want %d and %d", n, got, found, len(m), Mark(generation))
	}
	tables := 0
	for _, path := range filesOf(t, fs) {
		if !strings.HasSuffix(path, ".sst") {
			continue
		}
		tables++
		size := 0
		filetest.Rewrite(t, fs, path, func(b []byte) []byte { size = len(b); return b })
		for at := 0; at < size; at += 1 + size/97 {
			damaged := clone(fs)
			filetest.Rewrite(t, damaged, path, func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b })
			if _, _, found := inspectAll(t, damaged, testDir); len(found) == 0 ||
				found[0].File != fs.PathBase(path) {
				t.Errorf("byte %d of %s: %v", at, path, found)
			}
		}
	}
	if tables == 0 {
		t.Fatal("there is no table")
	}
	stop := errors.New("stop")
	if _, found, err := Inspect(fs, testDir, slog.New(slog.DiscardHandler),
		func(segment.Series) error {
			return stop
		}); !errors.Is(err, stop) || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// A checkpoint is a catalogue of its own that later changes do not touch.
func TestCheckpoint(t *testing.T) {
	fs, m, generation := filledFS(t)
	c := open(t, fs)
	defer closeChecked(t, c)
	if err := c.Checkpoint("data/copy"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.DeleteBucket(1), c.Flush()); err != nil {
		t.Fatal(err)
	}
	if n, got, found := inspectAll(t, fs, "data/copy"); n != len(m) || got != Mark(generation) ||
		len(found) != 0 {
		t.Errorf("%d series, mark %d, %v; want %d and %d", n, got, found, len(m), Mark(generation))
	}
	if err := c.Checkpoint("data/copy"); err == nil {
		t.Error("a checkpoint replaces another")
	}
}
