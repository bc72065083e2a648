package catalogue

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/testkit/filetest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// filledFS is a file system with a closed catalogue of two tables.
func filledFS(tb testing.TB) (*vfs.MemFS, model, uint64) {
	tb.Helper()
	fs := dataFS(tb)
	c := open(tb, fs)
	series := testSeries(400)
	for _, part := range [][]segment.Series{series[:200], series[200:]} {
		if err := errors.Join(c.Put(part), c.Flush()); err != nil {
			tb.Fatal(err)
		}
	}
	generation := c.Generation()
	closeChecked(tb, c)
	return fs, modelOf(series), generation
}

// clone is a copy of fs as it is.
func clone(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// checkDamaged opens a catalogue after damage to one file. It may be intact, or
// say that it is damaged, or say by its generation that it lost something; it
// must not silently miss an identity.
func checkDamaged(tb testing.TB, what string, fs vfs.FS, m model,
	generation uint64) (damaged bool) {
	tb.Helper()
	c, err := Open(fs, testDir, slog.New(slog.DiscardHandler))
	if err != nil {
		if !errors.Is(err, ErrDamaged) {
			tb.Fatalf("%s: Open: %v", what, err)
		}
		return true
	}
	defer closeChecked(tb, c)
	if c.Generation() < generation {
		return true
	}
	if err := m.compare(c); err != nil {
		if !errors.Is(err, ErrDamaged) {
			tb.Fatalf("%s: Load: %v", what, err)
		}
		return true
	}
	return false
}

func filesOf(tb testing.TB, fs vfs.FS) (paths []string) {
	tb.Helper()
	names, err := fs.List(testDir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names {
		if name != "LOCK" {
			paths = append(paths, fs.PathJoin(testDir, name))
		}
	}
	return paths
}

// Without the marker pebble sees no catalogue. It must not start an empty one
// in a directory with tables.
func TestTablesWithoutMarkerAreDamage(t *testing.T) {
	fs, _, _ := filledFS(t)
	for _, path := range filesOf(t, fs) {
		if !strings.Contains(path, "marker.manifest") {
			continue
		}
		if err := fs.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(fs, testDir, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrDamaged) {
			t.Fatalf("Open without %s: %v", path, err)
		}
		return
	}
	t.Fatal("there is no marker")
}

// I5, I6: whatever happens to one file, the catalogue is whole or says that it
// is not.
func TestI6DamageIsNeverSilent(t *testing.T) {
	fs, m, generation := filledFS(t)
	if checkDamaged(t, "no damage", clone(fs), m, generation) {
		t.Fatal("an intact catalogue is reported as damaged")
	}
	tables := 0
	for _, path := range filesOf(t, fs) {
		removed := clone(fs)
		if err := removed.Remove(path); err != nil {
			t.Fatal(err)
		}
		bad := checkDamaged(t, path+" removed", removed, m, generation)
		if strings.HasSuffix(path, ".sst") || strings.Contains(path, "MANIFEST") {
			tables++
			if !bad {
				t.Fatalf("%s is gone and nobody noticed", path)
			}
		}
		for step := range 24 {
			cut := clone(fs)
			filetest.Rewrite(t, cut, path, func(b []byte) []byte { return b[:len(b)*step/24] })
			checkDamaged(t, fmt.Sprintf("%s cut at %d/24", path, step), cut, m, generation)
			flipped := clone(fs)
			filetest.Rewrite(t, flipped, path, func(b []byte) []byte {
				if len(b) > 0 {
					b[len(b)*step/24] ^= 0x10
				}
				return b
			})
			checkDamaged(t, fmt.Sprintf("%s flipped at %d/24", path, step), flipped, m, generation)
		}
	}
	if tables < 3 {
		t.Fatalf("%d tables and manifests, the test wants at least 3", tables)
	}
}

// Damage in a table that a change has to read is said by Failure, so that its owner goes on
// without the catalogue; and a change never hides it from the next start.
func TestDamageMetByAChange(t *testing.T) {
	fs, m, generation := filledFS(t)
	met := 0
	for _, path := range filesOf(t, fs) {
		if !strings.HasSuffix(path, ".sst") {
			continue
		}
		size := 0
		filetest.Rewrite(t, fs, path, func(b []byte) []byte { size = len(b); return b })
		for at := 0; at < size; at += 1 + size/29 {
			damaged := clone(fs)
			filetest.Rewrite(t, damaged, path, func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b })
			c, err := Open(damaged, testDir, slog.New(slog.DiscardHandler))
			if err != nil {
				continue
			}
			err = c.Put(testSeries(400)) // the same again
			switch {
			case err != nil && (!errors.Is(err, ErrDamaged) || c.Failure() == nil || c.Mark() != MarkLost):
				t.Errorf("byte %d of %s: %v, failed %v", at, path, err, c.Failure())
			case err != nil:
				met++
			}
			_ = c.Close() // it may have failed
			if err != nil {
				checkDamaged(t, "behind the change", damaged, m, generation)
			}
		}
	}
	if met == 0 {
		t.Error("no change has met damage")
	}
}

func TestSetAsideMakesRoomForAnEmptyOne(t *testing.T) {
	fs, _, _ := filledFS(t)
	for n := 1; n <= 2; n++ {
		to, err := SetAside(fs, testDir, "data/lost+found")
		if want := fmt.Sprintf("data/lost+found/catalogue-%d", n); err != nil || to != want {
			t.Fatalf("SetAside: %q, %v, want %q", to, err, want)
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{})
		if _, err := crashed.Stat(to); err != nil {
			t.Fatalf("after a crash: %v", err)
		}
		c := open(t, fs)
		if err := (model{}).compare(c); err != nil || c.Generation() != 0 {
			t.Fatalf("reopened: %v, generation %d", err, c.Generation())
		}
		closeChecked(t, c)
	}
	if to, err := SetAside(fs, "data/none", "data/lost+found"); to != "" || err != nil {
		t.Fatalf("SetAside of nothing: %q, %v", to, err)
	}
}

// fullFS refuses to create tables while full is set.
type fullFS struct {
	vfs.FS
	full atomic.Bool
}

func (f *fullFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if f.full.Load() && strings.HasSuffix(name, ".sst") {
		return nil, syscall.ENOSPC
	}
	return f.FS.Create(name, category)
}

func TestFlushReturnsOnAFullDisk(t *testing.T) {
	fs := &fullFS{FS: vfs.NewMem()}
	c := open(t, fs)
	defer closeChecked(t, c)
	series := testSeries(100)
	if err := c.Put(series); err != nil {
		t.Fatal(err)
	}
	fs.full.Store(true)
	if err := c.Flush(); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrDamaged) {
		t.Fatalf("Flush on a full disk: %v", err)
	}
	fs.full.Store(false)
	// An attempt of pebble's own may still have met the full disk.
	var err error
	for range 100 {
		if err = c.Flush(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := modelOf(series).compare(c); err != nil || c.Generation() != 1 {
		t.Fatalf("%v, generation %d", err, c.Generation())
	}
}
