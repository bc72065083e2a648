package catalogue

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A start on a disk without room reads the catalogue; writes fail for want of
// room, and succeed when there is some, without another start.
func TestAStartWithoutRoomReads(t *testing.T) {
	kinds := map[string]func(op errorfs.Op) bool{
		"nothing can be made": func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite ||
				op.Kind == errorfs.OpFilePreallocate
		},
		"names, and no bytes": func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite },
	}
	for name, full := range kinds {
		t.Run(name, func(t *testing.T) {
			origin, m, generation := filledFS(t)
			var on atomic.Bool
			on.Store(true)
			c := open(t, errorfs.Wrap(origin, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if on.Load() && full(op) {
					return syscall.ENOSPC
				}
				return nil
			})))
			check := func(when string) {
				t.Helper()
				if err := m.compare(c); err != nil || c.Generation() != generation {
					t.Errorf("%s: generation %d, want %d, %v", when, c.Generation(), generation, err)
				}
			}
			check("without room")
			series := testSeries(500)
			for range 2 {
				for _, err := range []error{c.Put(series), c.DeleteBucket(1), c.Checkpoint("elsewhere")} {
					if !errors.Is(err, syscall.ENOSPC) {
						t.Errorf("a write without room: %v", err)
					}
				}
				check("behind writes that failed")
			}
			if err := errors.Join(c.Failure(), c.Flush()); err != nil {
				t.Errorf("nothing was put, and %v", err)
			}
			on.Store(false)
			if err := errors.Join(c.Put(series), c.Flush()); err != nil {
				t.Fatalf("with room again: %v", err)
			}
			m.put(series)
			generation++
			check("with room")
			closeChecked(t, c)
			c = open(t, origin)
			check("at the next start")
			closeChecked(t, c)
		})
	}
}
