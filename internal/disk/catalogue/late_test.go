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

// A device of which one operation, or each from one on, fails while the catalogue opens:
// an error, never the end of the process, and nothing that was durable is lost by it.
func TestADeviceThatFailsLateInAnOpen(t *testing.T) {
	step := int64(2)
	if testing.Short() {
		step = 9
	}
	for _, ever := range []bool{false, true} {
		for n := int64(0); ; n += step {
			origin, m, generation := filledFS(t)
			var left atomic.Int64
			var met atomic.Bool
			left.Store(n)
			files := errorfs.Wrap(origin, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if at := left.Add(-1); op.Kind != errorfs.OpFileClose && (at == -1 || ever && at < 0) {
					met.Store(true)
					return syscall.EIO
				}
				return nil
			}))
			c, err := Open(files, testDir, slog.New(slog.DiscardHandler))
			if err == nil {
				left.Store(1 << 40)
				err = c.Close() // where it has failed it says so
			}
			if err != nil && !errors.Is(err, syscall.EIO) {
				t.Errorf("after %d operations: %v", n, err)
			}
			checkDamaged(t, "a late failure", origin, m, generation)
			if left.Load() >= 0 && !met.Load() {
				break
			}
		}
	}
}

// A panic of pebble while it opens is an error like that of damage: what has the catalogue
// goes on, and it can be opened again at once.
func TestAPanicInAnOpen(t *testing.T) {
	for path, at := range map[string]errorfs.OpKind{".log": errorfs.OpCreate, ".sst": errorfs.OpStat} {
		origin, m, _ := filledFS(t)
		var on atomic.Bool
		on.Store(true)
		files := errorfs.Wrap(origin, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if on.Load() && strings.Contains(op.Path, path) && op.Kind == at {
				panic(divide(1, strings.Count(op.Path, "\x00")))
			}
			return nil
		}))
		logger := slog.New(slog.DiscardHandler)
		c, err := Open(files, testDir, logger)
		if c != nil || !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "divide by zero") {
			t.Fatalf("%v: %v", at, err)
		}
		on.Store(false)
		if c, err = Open(files, testDir, logger); err != nil {
			t.Fatalf("%v: opened again: %v", at, err)
		}
		if err := errors.Join(m.compare(c), c.Close()); err != nil {
			t.Errorf("%v: %v", at, err)
		}
	}
}

func divide(a, b int) int { return a / b }
