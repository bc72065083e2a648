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
	kinds := map[string]errorfs.OpKind{"create": errorfs.OpCreate, "write": errorfs.OpFileWrite, "sync": errorfs.OpFileSync,
		"sync of data": errorfs.OpFileSyncData, "directory": errorfs.OpFileSync, "remove": errorfs.OpRemove, "close": errorfs.OpFileClose}
	met := 0
	for name, kind := range kinds {
		for _, running := range []bool{false, true} {
			origin, m, generation := filled(t)
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
				met += failing(t, name, c, m)
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

// failing writes to a catalogue until it fails, or some times, and returns 1 if it
// failed.
func failing(t *testing.T, name string, c *Catalogue, m model) int {
	t.Helper()
	series := testSeries(400)
	for i := range 5 { // the same again
		err := errors.Join(c.Put(series[i*50:][:50]), c.Flush())
		if (err == nil) != (c.Failed() == nil) || err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: %v, %v", name, err, c.Failed())
		}
		if err == nil {
			continue
		}
		for _, err := range []error{c.Put(series[:1]), c.Flush(), c.DeleteBucket(1), m.compare(c), c.Checkpoint("elsewhere")} {
			if err == nil || !errors.Is(err, c.Failed()) {
				t.Errorf("%s: behind the failure: %v", name, err)
			}
		}
		return 1
	}
	return 0
}
