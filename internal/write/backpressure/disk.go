package backpressure

import "fmt"

const (
	// flushReserve is what a flush leaves free on the disk: room for a new file
	// of the log, the MANIFEST and the catalogue's own records.
	flushReserve = 8 << 20

	// identityCost is what a new series costs in the segment and the catalogue,
	// with a name of usual length.
	identityCost = 256
)

// Free returns the free bytes of the disk. A file system that cannot say is
// taken at its word: a write will fail.
func (c *Control) Free() (free int64, known bool) {
	u, err := c.o.FS.GetDiskUsage(c.o.Dir)
	return int64(u.AvailBytes), err == nil
}

// FreeDisk returns the free bytes that the last look at the disk found.
func (c *Control) FreeDisk() int64 { return c.freeDisk.Load() }

// DiskFull reports whether points are refused because the disk is nearly full.
func (c *Control) DiskFull() bool { return c.diskFull.Load() }

// SetUnwritten notes whether the MANIFEST had no room for the last edit.
func (c *Control) SetUnwritten(unwritten bool) { c.unwritten.Store(unwritten) }

// diskForFlush is the free disk that a flush wants, at most.
func (c *Control) diskForFlush() int64 {
	return c.sealed.Load() + c.late.Load() + c.o.NewSeries()*identityCost +
		min(flushReserve, c.o.MinFree)
}

// CheckFlush refuses a flush that would fill the disk up: the log could
// not be written meanwhile, and that would end the node. Everything stays in
// memory and in the log.
func (c *Control) CheckFlush() error {
	free, known := c.Free()
	if need := c.diskForFlush(); known && free < need {
		return fmt.Errorf("flush: it needs up to %d bytes and %d are free: make space; nothing is "+
			"lost, it is tried again every second", need, free)
	}
	return nil
}

// CheckDisk refuses points before the disk is full, or too full for the next
// flush, and takes them again when there is space. It is called every tick: a
// fast sender writes a small storage.min_free full in less than a second.
func (c *Control) CheckDisk() {
	free, known := c.Free()
	need := max(c.o.MinFree, c.diskForFlush())
	full := c.unwritten.Load()
	if known {
		c.freeDisk.Store(free)
		full = full || free < need
	}
	if c.diskFull.Swap(full) != full {
		if full {
			c.o.Logger.Warn("points are refused: the disk is nearly full", "free", free,
				"storage.min_free", c.o.MinFree, "for the next flush", need)
			c.MakeRoom() // who waits for a flush is refused
		} else {
			c.o.Logger.Info("points are taken again: the disk has space", "free", free)
		}
	}
}
