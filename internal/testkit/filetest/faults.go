package filetest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Faults is a file system, FS, in which operations fail while a rule says so.
type Faults struct {
	FS   vfs.FS
	rule atomic.Pointer[func(errorfs.Op) error]
}

// NewFaults returns a file system over another one. It has no rule yet.
func NewFaults(fs vfs.FS) *Faults {
	f := &Faults{}
	f.FS = errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if rule := f.rule.Load(); rule != nil {
			return (*rule)(op)
		}
		return nil
	}))
	return f
}

// Set has operations end with the error that the rule returns for them.
func (f *Faults) Set(rule func(errorfs.Op) error) { f.rule.Store(&rule) }

// Clear takes the rule away.
func (f *Faults) Clear() { f.rule.Store(nil) }

// Fail makes operations of the kinds on paths that contain part fail.
func (f *Faults) Fail(part string, kinds ...errorfs.OpKind) {
	f.Set(func(op errorfs.Op) error {
		for _, k := range kinds {
			if op.Kind == k && strings.Contains(op.Path, part) {
				return errorfs.ErrInjected
			}
		}
		return nil
	})
}

// CloneAt keeps what a crash would leave before the n-th operation from now on, and returns what
// gives that; nil while there were fewer. Compactions of the catalogue count in goroutines of their
// own.
func (f *Faults) CloneAt(mem *vfs.MemFS, n int) (kept func() *vfs.MemFS) {
	var mu sync.Mutex
	var clone *vfs.MemFS
	count := 0
	f.Set(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.ReadOrWrite() != errorfs.OpIsRead {
			if count++; count == n {
				clone = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50,
					RNG: rand.New(rand.NewPCG(uint64(n), 1))})
			}
		}
		return nil
	})
	return func() *vfs.MemFS {
		mu.Lock()
		defer mu.Unlock()
		return clone
	}
}

// BadStart is a rule for a file whose beginning the device cannot read.
func BadStart(file string) func(errorfs.Op) error {
	return func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, file) && op.Offset == 0 {
			return syscall.EIO
		}
		return nil
	}
}
