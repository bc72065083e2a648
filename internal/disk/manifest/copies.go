package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/durable"
)

// read reads both copies, the second one first: beside an open Manifest the first
// is then never behind. Its error is one that says nothing about the files.
func (m *Manifest) read() (first, second *image, err error) {
	var copies [2]*image
	for i := len(names) - 1; i >= 0; i-- {
		c := &image{name: names[i]}
		c.data, err = m.readFile(names[i])
		switch {
		case errors.Is(err, os.ErrNotExist):
			c.missing = true
		case errors.Is(err, syscall.EIO):
			c.unread, c.data = err, nil
		case err != nil:
			return nil, nil, err
		}
		copies[i] = c
	}
	if copies[0].unread != nil && (copies[1].unread != nil || copies[1].missing) {
		return nil, nil, copies[0].unread
	}
	if copies[1].unread != nil && copies[0].missing {
		return nil, nil, copies[1].unread
	}
	return copies[0], copies[1], nil
}

func (m *Manifest) readFile(name string) ([]byte, error) {
	f, err := m.fs.Open(m.path(name), vfs.SequentialReadsOption)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// reopen opens the copies for appending and makes them and their names durable:
// what stands in the page cache only must not vanish after it was acted upon.
func (m *Manifest) reopen() error {
	m.closeFiles()
	for i, name := range names {
		f, err := m.fs.OpenReadWrite(m.path(name), vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		m.files[i] = f
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return durable.SyncDir(m.fs, m.dir)
}

// writeAgain writes a copy over itself. What an earlier process could not fsync the
// kernel holds for written, and every later fsync leaves it out. That may be the last
// edit of the second copy: it is not begun before the first one has the edit, and
// copies that differ are replaced.
func (m *Manifest) writeAgain(i int, data []byte) error {
	_, err := m.files[i].WriteAt(slices.Clone(data), 0) // a vfs.File may change what it is given
	if durable.IsFull(err) {
		// A file system that writes elsewhere what is written again.
		m.logger.Warn("manifest: no room to write the copy again", "file", m.path(names[i]), "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	return m.files[i].Sync()
}

func (m *Manifest) closeFiles() {
	for i, f := range m.files {
		if f != nil {
			_ = f.Close() // every edit in it was synced
		}
		m.files[i] = nil
	}
}

// setAside gives a copy a second name in lost+found, the first free one. It stays
// what it is: copies are replaced, not changed.
func (m *Manifest) setAside(file string) (string, error) {
	lost := m.path(lostDir)
	if err := m.fs.MkdirAll(lost, 0o755); err != nil {
		return "", err
	}
	for i := 1; ; i++ {
		name := m.fs.PathJoin(lost, fmt.Sprintf("%s.%d", file, i))
		if _, err := m.fs.Stat(name); err == nil {
			continue
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		err := m.fs.Link(m.path(file), name)
		if errors.Is(err, os.ErrNotExist) {
			return "", nil // it is missing
		}
		if err != nil && !durable.IsFull(err) {
			err = vfs.Copy(m.fs, m.path(file), name) // a file system without links
		}
		if err != nil {
			return "", err
		}
		if err := durable.SyncDir(m.fs, lost); err != nil {
			return "", err
		}
		return name, durable.SyncDir(m.fs, m.dir)
	}
}

// writeTemp writes a snapshot beside each copy. A failure of it leaves the copies
// as they are.
func (m *Manifest) writeTemp() (size int64, err error) {
	data := m.encodeSnapshot()
	if n := len(data) - headerSize - frameSize; n > editLimit {
		return 0, fmt.Errorf("snapshot of %d bytes: the limit is %d", n, editLimit)
	}
	for _, name := range names {
		if err := m.writeFile(m.path(name+tempSuffix), data); err != nil {
			return 0, fmt.Errorf("%s: %w", name+tempSuffix, err)
		}
	}
	return int64(len(data)), nil
}

func (m *Manifest) writeFile(path string, data []byte) error {
	f, err := m.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	n, err := f.Write(slices.Clone(data)) // a vfs.File may change what it is given
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// swap gives the snapshots their names, in the given order, each durable before
// the next. After a failure it is not known which files a restart will find.
func (m *Manifest) swap(size int64, order []int) error {
	m.closeFiles()
	for _, i := range order {
		if err := m.fs.Rename(m.path(names[i]+tempSuffix), m.path(names[i])); err != nil {
			return err
		}
		if err := durable.SyncDir(m.fs, m.dir); err != nil {
			return err
		}
	}
	m.size, m.snapshot, m.retry = size, size, 0
	return m.reopen()
}

// writeAnew replaces copies that are not whole and equal, and keeps the damaged
// ones in lost+found.
func (m *Manifest) writeAnew() (kept []string, err error) {
	size, err := m.writeTemp()
	if err != nil {
		return nil, err
	}
	for len(m.keep) > 0 {
		name, err := m.setAside(m.keep[0])
		if err != nil {
			return kept, fmt.Errorf("%s: keep it in %s: %w", m.keep[0], lostDir, err)
		}
		if name != "" {
			kept = append(kept, name)
		}
		m.keep = m.keep[1:]
	}
	if err := m.swap(size, m.renew); err != nil {
		return kept, err
	}
	m.renew = nil
	return kept, nil
}
