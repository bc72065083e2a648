package flushtest

import (
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk is a file system on which operations fail while a rule says so, with so many free bytes.
type Disk struct {
	vfs.FS
	Free    atomic.Uint64 // bytes
	failing string        // below which something fails
	rule    atomic.Pointer[func(errorfs.Op) error]
}

func newDisk() *Disk {
	d := &Disk{}
	d.Free.Store(1 << 40)
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if rule := d.rule.Load(); rule != nil {
			return (*rule)(op)
		}
		return nil
	}))
	return d
}

// GetDiskUsage says how much is free.
func (d *Disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.Free.Load()}, nil
}

// Fail makes what is written below a path fail: creating and writing files, or syncing and renaming
// them. how is io, full, sync, rename or remove.
func (d *Disk) Fail(path, how string) {
	writes := []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt,
		errorfs.OpFilePreallocate}
	kinds, err := writes, error(syscall.EIO)
	switch how {
	case "full":
		err = syscall.ENOSPC
	case "sync":
		kinds = []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
	case "rename":
		kinds = []errorfs.OpKind{errorfs.OpRename}
	case "remove":
		kinds = []errorfs.OpKind{errorfs.OpRemove}
	}
	rule := func(op errorfs.Op) error {
		if slices.Contains(kinds, op.Kind) && strings.HasPrefix(op.Path, path) {
			return err
		}
		return nil
	}
	d.failing = path
	d.rule.Store(&rule)
}

// Mend makes the disk as it was.
func (d *Disk) Mend() {
	d.failing = ""
	d.rule.Store(nil)
	d.Free.Store(1 << 40)
}

// Failing reports whether something below a path fails.
func (d *Disk) Failing(path string) bool { return strings.HasPrefix(d.failing, path) }
