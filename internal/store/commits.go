package store

import (
	"sync"

	"dalmatiner/internal/wal"
)

// commits is the log, and the commit lock. That is held shared from the append of a record
// until what it stands for is done, such as its row in the account, and exclusively for a
// snapshot of all that: a flush that ends above a record, and so lets the log forget it,
// has what it stands for.
type commits struct {
	sync.RWMutex
	log  *wal.Log     // set before the store is in use
	room func() error // says whether the log has room for a record of anything but points
}

// Define appends a record and calls apply with its position.
func (c *commits) Define(rec []byte, apply func(lsn wal.LSN)) error {
	c.RLock()
	defer c.RUnlock()
	lsn, err := c.log.Append(rec)
	if err == nil {
		apply(lsn)
	}
	return err
}

// Delete appends the record of a deletion of series. The lock of flushes is held. The error
// wraps coordinator.ErrDiskFull where the log has no room.
func (c *commits) Delete(rec []byte, twice bool) (wal.LSN, error) {
	if err := c.room(); err != nil {
		return 0, err
	}
	if twice {
		return c.log.AppendTwice(rec)
	}
	return c.log.Append(rec)
}

// change appends a record and applies the change it stands for. The error wraps
// coordinator.ErrDiskFull where the log has no room.
func (c *commits) change(rec []byte, apply func()) error {
	if err := c.room(); err != nil {
		return err
	}
	return c.Define(rec, func(wal.LSN) { apply() })
}

// deletion is change for what must not come back where the log is damaged.
func (c *commits) deletion(rec []byte, apply func()) error {
	if err := c.room(); err != nil {
		return err
	}
	c.RLock()
	defer c.RUnlock()
	_, err := c.log.AppendTwice(rec)
	if err == nil {
		apply()
	}
	return err
}
