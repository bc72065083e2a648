package catalogue

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// However the MANIFEST of pebble or its marker cannot be written, while the
// catalogue opens or afterwards: nothing ends or hangs, everything says so, and what
// was durable before is there afterwards, or is said to be lost.
func TestAManifestThatCannotBeWritten(t *testing.T) {
	kinds := map[string]errorfs.OpKind{"create": errorfs.OpCreate, "write": errorfs.OpFileWrite,
		"sync":         errorfs.OpFileSync,
		"sync of data": errorfs.OpFileSyncData, "directory": errorfs.OpFileSync,
		"remove": errorfs.OpRemove, "close": errorfs.OpFileClose}
	met := 0
	for name, kind := range kinds {
		for _, running := range []bool{false, true} {
			origin, m, generation := filledFS(t)
			var on atomic.Bool
			files := errorfs.Wrap(origin, errorfs.InjectorFunc(func(op errorfs.Op) error {
				vital := strings.Contains(op.Path, "/MANIFEST-") || strings.Contains(op.Path, "/marker.")
				if name == "directory" {
					vital = strings.HasSuffix(op.Path, testDir)
				}
				if on.Load() && vital && op.Kind == kind {
					return syscall.EIO
				}
				return nil
			}))
			on.Store(!running)
			c, err := Open(files, testDir, slog.New(slog.DiscardHandler))
			if err == nil {
				on.Store(true)
				met += writeUntilFailure(t, name, c, m)
				_ = c.Close() // it has failed
			} else if met++; !errors.Is(err, ErrDamaged) || !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: %v", name, err)
			}
			on.Store(false)
			checkDamaged(t, name, origin, m, generation)
		}
	}
	if met < 6 {
		t.Errorf("%d of the failures were met", met)
	}
}

// writeUntilFailure writes to a catalogue until it fails, or some times, and returns 1 if it
// failed.
func writeUntilFailure(t *testing.T, name string, c *Catalogue, m model) int {
	t.Helper()
	series := testSeries(400)
	for i := range 5 { // the same again
		err := errors.Join(c.Put(series[i*50:][:50]), c.Flush())
		if (err == nil) != (c.Failure() == nil) || err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: %v, %v", name, err, c.Failure())
		}
		if (err == nil) == (c.Mark() == MarkLost) {
			t.Fatalf("%s: %v, and the mark is %d", name, err, c.Mark())
		}
		if err == nil {
			continue
		}
		for _, err := range []error{c.Put(series[:1]), c.Flush(), c.DeleteBucket(1), m.compare(c),
			c.Checkpoint("elsewhere")} {
			if err == nil || !errors.Is(err, c.Failure()) {
				t.Errorf("%s: behind the failure: %v", name, err)
			}
		}
		return 1
	}
	return 0
}

// However a checkpoint cannot be written, the error is the checkpoint's: the catalogue
// goes on, and the next checkpoint is whole.
func TestACheckpointThatCannotBeWritten(t *testing.T) {
	const to = "checkpoint"
	for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync,
		errorfs.OpFileSyncData,
		errorfs.OpOpenDir, errorfs.OpFileClose, errorfs.OpRename, errorfs.OpLink} {
		for nth := range int64(16) {
			origin, m, _ := filledFS(t)
			var left atomic.Int64
			files := errorfs.Wrap(origin, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if strings.Contains(op.Path, to) && op.Kind == kind && left.Add(-1) == 0 {
					return syscall.EIO
				}
				return nil
			}))
			c, err := Open(files, testDir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			left.Store(nth + 1)
			err = c.Checkpoint(to)
			met := left.Load() <= 0
			if failed := c.Failure(); failed != nil {
				t.Fatalf("%v %d: %v", kind, nth, failed)
			}
			if err == nil && met && kind != errorfs.OpFileClose {
				t.Errorf("%v %d: no error", kind, nth)
			}
			left.Store(0)
			if err := errors.Join(c.Put(testSeries(3)), c.Flush(), m.compare(c), c.Checkpoint(to+"2"),
				c.Close()); err != nil {
				t.Errorf("%v %d: behind the failure: %v", kind, nth, err)
			}
			if c, err = Open(origin, to+"2", slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(m.compare(c), c.Close()); err != nil {
				t.Errorf("%v %d: the next checkpoint: %v", kind, nth, err)
			}
			if !met {
				break
			}
		}
	}
}
