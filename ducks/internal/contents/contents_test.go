package contents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	diskfs "github.com/diskfs/go-diskfs"
	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/partition/gpt"

	"dalmatiner/ducks/internal/duckstest"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// image makes an ext4 file system of files, by path, each of a length, at an offset of a disk.
func image(t *testing.T, files map[string]int, offset string) *os.File {
	t.Helper()
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "disk")
	at := time.Unix(1_700_000_000, 0)
	for name, length := range files {
		full := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755),
			os.WriteFile(full, make([]byte, length), 0o600), os.Chtimes(full, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 32<<20)); err != nil {
		t.Fatal(err)
	}
	duckstest.Run(t, "mke2fs", "-q", "-F", "-t", "ext4", "-E", "offset="+offset, "-d", dir, path,
		"16M")
	return opened(t, path)
}

func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Files that came, went or became others are named, of a disk and of its partitions; what is
// damaged says so.
func TestChanges(t *testing.T) {
	if !duckstest.Alone(t, "mke2fs") {
		return
	}
	files := map[string]int{"etc/passwd": 100, "etc/gone": 5, "usr/bin/tool": 70_000, "same": 1}
	before := image(t, files, "0")
	delete(files, "etc/gone")
	files["usr/bin/tool"], files["home/a b/ü"] = 80_000, 3
	after := image(t, files, "0")
	want := []File{{0, "etc/gone", Removed, 5, 0}, {0, "home", Added, 0, 0},
		{0, "home/a b", Added, 0, 0}, {0, "home/a b/ü", Added, 0, 3},
		{0, "usr/bin/tool", Changed, 70_000, 80_000}}
	c, err := Between(t.Context(), before, after)
	if err != nil || !slices.Equal(c.Files, want) || c.Added != 3 || c.Removed != 1 ||
		c.Changed != 1 || len(c.Partitions) != 1 || c.Partitions[0].Kind != "ext4" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Between(t.Context(), after, after); err != nil || len(c.Files) != 0 ||
		c.Partitions[0].Files != 10 {
		t.Errorf("an image differs from itself: %+v, %v", c, err)
	}

	parted := func(files map[string]int) *os.File {
		f := image(t, files, "1048576")
		d, err := diskfs.OpenBackend(file.New(f, false), diskfs.WithOpenMode(diskfs.ReadWrite))
		if err == nil {
			err = d.Partition(&gpt.Table{LogicalSectorSize: 512, PhysicalSectorSize: 512,
				Partitions: []*gpt.Partition{
					{Index: 1, Start: 2048, End: 34815, Type: gpt.LinuxFilesystem},
					{Index: 2, Start: 40960, End: 43007, Type: gpt.LinuxSwap}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	c, err = Between(t.Context(), parted(map[string]int{"a": 1}), parted(map[string]int{"b": 2}))
	if err != nil || !slices.Equal(c.Files, []File{{1, "a", Removed, 1, 0}, {1, "b", Added, 0, 2}}) ||
		len(c.Partitions) != 2 || c.Partitions[1].Error == "" {
		t.Errorf("%+v, %v", c, err)
	}

	empty := opened(t, os.DevNull)
	if c, err := Between(t.Context(), before, empty); err == nil &&
		(len(c.Files) > 0 || c.Partitions[0].Error == "") {
		t.Errorf("of nothing: %+v", c)
	}
}

// However damaged an image is, who asks gets an answer, and what was not read whole is not
// compared.
func TestDamagedImages(t *testing.T) {
	if !duckstest.Alone(t, "mke2fs") {
		return
	}
	files := map[string]int{}
	for i := range 50 {
		files[fmt.Sprintf("dir%d/file%d", i%5, i)] = i * 1000
	}
	whole := image(t, files, "0")
	damaged := image(t, files, "0")
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 40
	if testing.Short() {
		rounds = 5 // with the race detector a process takes a second
	}
	for range rounds {
		// The superblock, the descriptors and the first inodes, where everything hangs.
		at, was := int64(1024+r.IntN(64<<10)), make([]byte, 4)
		_, err := damaged.ReadAt(was, at)
		_, err2 := damaged.WriteAt(binary.LittleEndian.AppendUint32(nil, r.Uint32()), at)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		c, err := Between(t.Context(), whole, damaged)
		if err != nil && !errors.Is(err, ErrImage) {
			t.Fatal(err)
		}
		if err == nil && c.Partitions[0].Error != "" && len(c.Files) > 0 {
			t.Errorf("it says %q and has %d files that differ", c.Partitions[0].Error, len(c.Files))
		}
		if _, err := damaged.WriteAt(was, at); err != nil {
			t.Fatal(err)
		}
	}
}

// One reads at a time; who does not want to wait any more is told.
func TestTurns(t *testing.T) {
	r := NewTurns()
	done, err := r.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Take(ctx); !errors.Is(err, ErrImage) || !errors.Is(err, context.Canceled) {
		t.Errorf("while another one reads: %v", err)
	}
	done()
	if done, err = r.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	done()
}

// What is shown is bounded, what is counted is not.
func TestMany(t *testing.T) {
	of := tree{files: map[string]entry{}}
	for i := range MostShown + 10 {
		of.files[fmt.Sprintf("%06d", i)] = entry{size: 1}
	}
	c := compare([]tree{{files: map[string]entry{"x": {}}}}, []tree{of})
	if len(c.Files) != MostShown || c.Added != MostShown+10 || c.Removed != 1 ||
		c.Files[0].Path != "000000" {
		t.Errorf("%d shown, %d added, %d removed, first %+v", len(c.Files), c.Added, c.Removed,
			c.Files[0])
	}
	unread := []tree{{Partition: Partition{Error: "no"}, files: map[string]entry{"x": {}}}}
	if c := compare(unread, []tree{of}); len(c.Files) != 0 ||
		!strings.Contains(c.Partitions[0].Error, "before: no") {
		t.Errorf("%d files differ from one that was not read, %+v", len(c.Files), c.Partitions)
	}
}
