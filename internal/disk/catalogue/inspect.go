package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"dalmatiner/internal/disk/segment"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Damage is a file of a catalogue that is not what was written.
type Damage struct {
	File string // its base name, or that of the directory if no single file is to blame
	Err  error  // what is wrong with it
}

// Checkpoint makes dir, which must not exist, a catalogue of its own that holds what the
// last Flush made durable. Its tables are hard links where the file system has them. Other
// calls that change the catalogue wait meanwhile.
func (c *Catalogue) Checkpoint(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.Failure(); err != nil {
		return err
	}
	if err := c.makeWritable(); err != nil {
		return err
	}
	c.unsynced.Store(nil)
	err := c.db.Checkpoint(dir)
	if p := c.unsynced.Load(); p != nil {
		err = errors.Join(err, *p)
	}
	if err != nil {
		return fmt.Errorf("catalogue: checkpoint of %s in %s: %w", c.dir, dir, err)
	}
	return c.Failure()
}

func (c *Catalogue) noteUnsynced(err error) { c.unsynced.CompareAndSwap(nil, &err) }

// Inspect reads every block of the catalogue in dir, which no process may have open. pebble
// may write to dir unless files refuses changes. It calls fn for identities as Load does.
//
// It returns the mark, as FoundMark does, and the files that are damaged. With damage fn may
// have seen only a part. Without a catalogue the mark is 0 and nothing is damaged. The error
// is that of fn.
func Inspect(files vfs.FS, dir string, logger *slog.Logger, fn func(segment.Series) error) (
	mark uint64, found []Damage, err error) {
	if _, err := files.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	found = inspectTables(files, dir)
	c := &Catalogue{dir: dir, failed: make(chan error, 1), closing: make(chan struct{})}
	if c.lock, err = pebble.LockDirectory(dir, files); err != nil {
		return 0, append(found, Damage{files.PathBase(dir), err}), nil
	}
	c.readOnly = true
	if err := c.open(files, logger); err != nil {
		_ = c.lock.Close() // it was only read
		if used, lerr := hasTables(files, dir); errors.Is(err, pebble.ErrDBDoesNotExist) && !used &&
			lerr == nil {
			return 0, found, nil // Open makes one
		}
		return 0, append(found, Damage{files.PathBase(dir), err}), nil
	}
	found = c.listedDamage(found)
	var failed error
	err = c.Load(func(s segment.Series) error {
		failed = fn(s)
		return failed
	})
	if failed == nil && err != nil {
		found, err = append(found, Damage{files.PathBase(dir), err}), nil
	}
	if cerr := c.Close(); cerr != nil && failed == nil {
		found = append(found, Damage{files.PathBase(dir), cerr})
	}
	return c.found, found, err
}

// listedDamage leaves out the damage in tables that the catalogue does not list: a
// crash leaves such a table half written.
func (c *Catalogue) listedDamage(found []Damage) []Damage {
	if len(found) == 0 {
		return nil
	}
	levels, err := c.db.SSTables()
	if err != nil {
		return found
	}
	names := make(map[string]bool)
	for _, tables := range levels {
		for i := range tables {
			names[tables[i].FileNum.String()+".sst"] = true
		}
	}
	return slices.DeleteFunc(found, func(d Damage) bool { return !names[d.File] })
}

// inspectTables verifies the checksum of every block of every table.
func inspectTables(files vfs.FS, dir string) (found []Damage) {
	names, err := files.List(dir)
	if err != nil {
		return []Damage{{files.PathBase(dir), err}}
	}
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		if err := inspectTable(files, files.PathJoin(dir, name)); err != nil {
			found = append(found, Damage{name, err})
		}
	}
	return found
}

func inspectTable(files vfs.FS, path string) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{})
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}
