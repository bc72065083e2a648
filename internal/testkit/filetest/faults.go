package filetest

import (
	"strings"
	"sync/atomic"

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
