package catalogue

import (
	"errors"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/durable"
)

// openToRead opens, on a disk without room for pebble's next MANIFEST, what there
// is: a start serves reads then. Every write tries to open the catalogue to write
// first, so that it is whole again when there is room. It returns false if the
// cause is another one, or if there is nothing to read.
func (c *Catalogue) openToRead(files vfs.FS, logger *slog.Logger, cause error) bool {
	if !durable.IsFull(cause) {
		return false
	}
	if err := c.openAs(true, files, logger); err != nil {
		return false
	}
	c.reopen = func() error {
		c.dbMu.Lock()
		defer c.dbMu.Unlock()
		err := c.db.Close()
		c.db = nil
		if err == nil {
			err = c.openAs(false, files, logger)
		}
		if durable.IsFull(err) {
			return errors.Join(err, c.openAs(true, files, logger))
		}
		return err
	}
	logger.Error("catalogue: no room to open it to write: it is read, and opened again by the next "+
		"flush", "dir", c.dir, "err", cause)
	return true
}

// openAs opens pebble to read or to write, whatever an earlier attempt noted. An
// error that is final is one of the catalogue: see Failure.
func (c *Catalogue) openAs(readOnly bool, files vfs.FS, logger *slog.Logger) error {
	c.readOnly = readOnly
	c.broken.Store(nil)
	c.gone.Store(false)
	err := c.open(files, logger)
	if err == nil {
		return nil
	}
	c.db = nil
	if !durable.IsFull(err) {
		c.fail(err)
	}
	return err
}

// makeWritable ends the state that openToRead begins, if there is room by now.
// c.mu is held.
func (c *Catalogue) makeWritable() error {
	if c.reopen == nil {
		return nil
	}
	err := c.reopen()
	if err == nil || !durable.IsFull(err) || c.db == nil {
		if err != nil {
			c.fail(err)
		}
		c.reopen = nil
	}
	return err
}
