package manifest

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/host/durable"
)

// FirstName and SecondName are the two copies in the data directory, in the order
// in which they are written.
const (
	FirstName  = "MANIFEST"
	SecondName = "MANIFEST.2"

	tempSuffix = ".tmp"
	lostDir    = "lost+found"
)

var names = [2]string{FirstName, SecondName}

// rewriteSize is the size from which on the copies are replaced by a snapshot, if
// they are also more than twice as large as the last one: one is read in a few ms,
// and a rewrite is rare enough not to show.
const rewriteSize = 4 << 20

// Errors that callers branch on.
var (
	ErrClosed = errors.New("manifest: closed")

	// ErrUnwritten is wrapped by the error of a Commit on a full disk: the edit does
	// not count, after a crash neither. It may be tried again.
	ErrUnwritten = errors.New("the edit was not written")
)

// Manifest is the open MANIFEST, in two copies. Its methods may be called by many
// goroutines.
type Manifest struct {
	fs     vfs.FS
	dir    string
	logger *slog.Logger
	limit  int64

	mu       sync.Mutex
	files    [2]vfs.File // nil before the first rewrite of a start that found the disk full
	renew    []int       // copies to be written anew before the next edit, in this order,
	keep     []string    // and those of them that are damaged
	size     int64       // of each
	snapshot int64       // size of its snapshot
	retry    int64       // no rewrite below this size: the last one failed
	number   uint64      // of the last edit
	state    State
	err      error
	buf      []byte
}

// Open reads both copies in dir, which has the id of, and returns the state, which is the caller's,
// and what was wrong with them. It makes the directory and the copies where there are
// none. Copies that are not whole and equal are written anew before it returns, a
// damaged one is kept in lost+found (see State.Suspect); on a full disk that waits for the next
// Commit. The errors are failed I/O and ErrFormat. logger may be nil.
func Open(fs vfs.FS, dir string, of origin.Directory, logger *slog.Logger) (*Manifest, *State,
	Report, error) {
	return open(fs, dir, of, logger, rewriteSize)
}

func open(fs vfs.FS, dir string, of origin.Directory, logger *slog.Logger, limit int64) (*Manifest,
	*State, Report, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	m := &Manifest{fs: fs, dir: dir, logger: logger, limit: limit}
	l := loader{of: of}
	if err := m.open(&l); err != nil {
		m.closeFiles() // the first error is the one that matters
		return nil, nil, l.report, fmt.Errorf("manifest: %s: %w", m.path(FirstName), err)
	}
	for _, p := range l.report.Torn {
		logger.Info("manifest: torn end cut off", "place", p.String())
	}
	for _, p := range l.report.Damaged {
		logger.Error("manifest: damaged", "place", p.String(), "kept", l.report.SetAside)
	}
	for _, what := range l.report.Lost {
		logger.Error("manifest: edits are lost in both copies; the segments say what they held", "lost",
			what)
	}
	if l.report.Deferred != nil {
		logger.Error("manifest: the copies are written anew when the disk has room", "err",
			l.report.Deferred)
	}
	return m, m.state.clone(), l.report, nil
}

func (m *Manifest) open(l *loader) error {
	if err := m.fs.MkdirAll(m.dir, 0o755); err != nil && !durable.IsFull(err) {
		return err
	}
	first, second, err := m.read()
	if err != nil {
		return err
	}
	if err := l.load(first, second); err != nil {
		return err
	}
	m.state, m.number = l.state, l.number
	if l.of.Known() {
		m.state.Directory = l.of
	}
	if !l.report.differ && len(l.report.Damaged)+len(l.report.Torn)+len(l.report.Lost) == 0 {
		m.size = int64(len(first.data))
		m.snapshot = int64(len(m.encodeSnapshot()))
		for _, name := range names {
			if err := m.fs.Remove(m.path(name + tempSuffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		if err := m.reopen(); err != nil {
			return err
		}
		return m.writeAgain(1, second.data)
	}
	// The copy from which the state was read stays until the other one has it.
	m.renew = []int{1, 0}
	if last, any := second.last(); any && last == l.number && len(second.bad) == 0 &&
		second.tail == nil {
		m.renew = []int{0, 1}
	}
	for _, p := range l.report.Damaged {
		if !slices.Contains(m.keep, p.File) {
			m.keep = append(m.keep, p.File)
		}
	}
	l.report.SetAside, err = m.writeAnew()
	if durable.IsFull(err) && !l.report.Created {
		l.report.Deferred = err
		return nil
	}
	return err
}

func (m *Manifest) path(elem ...string) string {
	return m.fs.PathJoin(append([]string{m.dir}, elem...)...)
}

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

// Commit appends an edit to both copies and fsyncs each: when it returns nil the
// edit is permanent. After any error but a refusal of the edit itself and
// ErrUnwritten it is not known whether it is, and the manifest has failed for good: the
// owner must stop and open it again. Commit keeps no slice of e.
func (m *Manifest) Commit(e Edit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	e.reset = false
	if err := m.check(&e); err != nil {
		return err
	}
	m.buf = appendRecord(m.buf[:0], m.number+1, &e)
	size := int64(len(m.buf))
	if size-frameSize > editLimit {
		return fmt.Errorf("manifest: edit of %d bytes: the limit is %d; split it", size-frameSize,
			editLimit)
	}
	if m.renew != nil {
		if _, err := m.writeAnew(); durable.IsFull(err) {
			return unwritten(err)
		} else if err != nil {
			return m.fail(fmt.Errorf("writing the copies anew: %w", err))
		}
	}
	if err := m.append(); err != nil {
		return err
	}
	m.size += size
	m.number++
	m.state.apply(&e)
	if m.size > max(m.limit, m.retry) && m.size > 2*m.snapshot {
		return m.rewrite()
	}
	return nil
}

// append writes the record in buf to both copies. Both have the room for it before
// either is written: a record in one of them would count after a crash.
func (m *Manifest) append() error {
	size := int64(len(m.buf))
	for _, f := range m.files {
		// Not every file system can: there a full disk shows in the writes.
		if err := f.Preallocate(m.size, size); durable.IsFull(err) {
			return unwritten(err)
		}
	}
	for i, f := range m.files {
		n, err := f.WriteAt(m.buf, m.size)
		if i == 0 && durable.IsFull(err) && int64(n) < size {
			m.renew = []int{0, 1} // a piece of the record stands there, which is a tear
			return unwritten(err)
		}
		if err == nil && int64(n) < size {
			err = io.ErrShortWrite
		}
		if err == nil {
			err = f.SyncData()
		}
		if err != nil {
			return m.fail(fmt.Errorf("edit %d in %s: %w", m.number+1, names[i], err))
		}
	}
	return nil
}

func unwritten(err error) error {
	return fmt.Errorf("manifest: %w: %w: make space, it is tried again", ErrUnwritten, err)
}

// Settle takes the edit that a start makes of what it found, as a snapshot in place
// of both copies. On a full disk it is not permanent yet: the edit counts, and stands in front of
// the next one that is committed. The errors are those of Commit.
func (m *Manifest) Settle(e Edit) (permanent bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return false, m.err
	}
	e.reset = false
	if err := m.check(&e); err != nil {
		return false, err
	}
	m.state.apply(&e)
	m.number++
	if m.renew == nil {
		m.renew = []int{0, 1}
	}
	if _, err := m.writeAnew(); durable.IsFull(err) {
		return false, nil
	} else if err != nil {
		return false, m.fail(fmt.Errorf("settling what the start found: %w", err))
	}
	return true, nil
}

// check refuses an edit that would hide a committed segment.
func (m *Manifest) check(e *Edit) error {
	removed := make(map[uint64]bool, len(e.RemoveSegments))
	for _, seq := range e.RemoveSegments {
		removed[seq] = true
	}
	for _, s := range e.AddSegments {
		if m.state.HasSegment(s.Seq) && !removed[s.Seq] {
			return fmt.Errorf("manifest: segment %d is committed already", s.Seq)
		}
	}
	return m.checkFiles(e)
}

// rewrite replaces the copies by a snapshot. The edits are durable before it, so
// that a snapshot that cannot be written is no error yet.
func (m *Manifest) rewrite() error {
	size, err := m.writeTemp()
	if err != nil {
		m.retry = m.size + m.limit
		m.logger.Warn("manifest: the file keeps growing until it can be rewritten", "bytes", m.size,
			"err", err)
		return nil
	}
	if err := m.swap(size, []int{0, 1}); durable.IsFull(err) {
		m.renew = []int{0, 1} // old copies and new ones say the same
	} else if err != nil {
		return m.fail(fmt.Errorf("rewrite: %w", err))
	}
	return nil
}

// State returns the sum of all edits that were committed. It is the caller's.
func (m *Manifest) State() *State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.clone()
}

// Deleted reports whether the deletion of a bucket is committed.
func (m *Manifest) Deleted(bucket uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Deleted(bucket)
}

// WriteTo writes both copies, as one snapshot, into another directory, which
// exists, and returns what they say. The caller makes their names durable.
func (m *Manifest) WriteTo(dir string) (*State, error) {
	m.mu.Lock()
	data, state := m.encodeSnapshot(), m.state.clone()
	m.mu.Unlock()
	for _, name := range names {
		if err := m.writeFile(m.fs.PathJoin(dir, name), data); err != nil {
			return nil, fmt.Errorf("manifest: %s: %w", m.fs.PathJoin(dir, name), err)
		}
	}
	return state, nil
}

func (m *Manifest) fail(cause error) error {
	m.err = fmt.Errorf("manifest: %s has failed and takes no more edits until a restart: %w",
		m.path(FirstName), cause)
	m.logger.Error("manifest: failed", "err", cause)
	return m.err
}

// Close closes the copies; every edit was made permanent by its Commit.
func (m *Manifest) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = ErrClosed
	}
	m.closeFiles()
	return nil
}
