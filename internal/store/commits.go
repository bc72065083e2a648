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
	return c.commit(rec, false, apply)
}

// Delete appends the record of a deletion of series. The lock of flushes is held. The error
// wraps coordinator.ErrDiskFull where the log has no room.
func (c *commits) Delete(rec []byte, twice bool) (wal.LSN, error) {
	if err := c.room(); err != nil {
		return 0, err
	}
	return c.append(rec, twice)
}

// change appends a record and applies the change it stands for. The error wraps
// coordinator.ErrDiskFull where the log has no room.
func (c *commits) change(rec []byte, apply func()) error {
	if err := c.room(); err != nil {
		return err
	}
	return c.commit(rec, false, func(wal.LSN) { apply() })
}

// deletion is change for what must not come back where the log is damaged.
func (c *commits) deletion(rec []byte, apply func()) error {
	if err := c.room(); err != nil {
		return err
	}
	return c.commit(rec, true, func(wal.LSN) { apply() })
}

// commit appends a record and calls apply, in one moment of a flush.
func (c *commits) commit(rec []byte, twice bool, apply func(lsn wal.LSN)) error {
	c.RLock()
	defer c.RUnlock()
	lsn, err := c.append(rec, twice)
	if err == nil {
		apply(lsn)
	}
	return err
}

// append appends a record, with twice such that damage in one place does not take it.
func (c *commits) append(rec []byte, twice bool) (wal.LSN, error) {
	if twice {
		return c.log.AppendTwice(rec)
	}
	return c.log.Append(rec)
}
