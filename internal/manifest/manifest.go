package manifest

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/durable"
)

// The names of the files in the data directory.
const (
	fileName = "MANIFEST"
	tempName = "MANIFEST.tmp"
	lostDir  = "lost+found"
)

// rewriteSize is the size from which on a file is replaced by a snapshot, if
// it is also more than twice as large as the last one: it is read in a few ms,
// and a rewrite is rare enough not to show.
const rewriteSize = 4 << 20

// ErrClosed is returned for a manifest that was closed.
var ErrClosed = errors.New("manifest: closed")

// Manifest is an open MANIFEST. Its methods may be called by many goroutines.
type Manifest struct {
	fs     vfs.FS
	dir    string
	logger *slog.Logger
	limit  int64

	mu       sync.Mutex
	f        vfs.File
	size     int64  // of the file
	snapshot int64  // size of its snapshot
	retry    int64  // no rewrite below this size: the last one failed
	number   uint64 // of the last edit
	state    State
	err      error
	buf      []byte
}

// Open reads dir/MANIFEST and returns the state, which is the caller's, and
// what was wrong with the file. It makes the directory and the file where there
// is none. A torn end is cut off; a damaged file is copied to lost+found and
// replaced by what could be read (see State.Suspect). The errors are failed I/O and ErrFormat.
// logger may be nil.
func Open(fs vfs.FS, dir string, logger *slog.Logger) (*Manifest, *State, Report, error) {
	return open(fs, dir, logger, rewriteSize)
}

func open(fs vfs.FS, dir string, logger *slog.Logger, limit int64) (*Manifest, *State, Report, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	m := &Manifest{fs: fs, dir: dir, logger: logger, limit: limit}
	var l loader
	if err := m.open(&l); err != nil {
		if m.f != nil {
			_ = m.f.Close() // the first error is the one that matters
		}
		return nil, nil, l.report, fmt.Errorf("manifest: %s: %w", m.path(fileName), err)
	}
	for _, p := range l.report.Torn {
		logger.Info("manifest: torn end cut off", "place", p.String())
	}
	for _, p := range l.report.Damaged {
		logger.Error("manifest: damaged", "place", p.String(), "copy", l.report.SetAside)
	}
	return m, m.state.clone(), l.report, nil
}

func (m *Manifest) open(l *loader) error {
	if err := m.fs.MkdirAll(m.dir, 0o755); err != nil {
		return err
	}
	data, err := m.read()
	switch {
	case errors.Is(err, os.ErrNotExist):
		l.report.Created = true
		l.state.Suspect = true
	case err != nil:
		return err
	default:
		if err := l.load(data); err != nil {
			return err
		}
	}
	m.state, m.number = l.state, l.number
	if len(l.report.Damaged) > 0 {
		if l.report.SetAside, err = m.setAside(); err != nil {
			return fmt.Errorf("copy to %s: %w", lostDir, err)
		}
	}
	if l.report.Created || len(l.report.Damaged)+len(l.report.Torn) > 0 {
		if err := m.writeTemp(); err != nil {
			return err
		}
		return m.swap()
	}
	if err := m.fs.Remove(m.path(tempName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	m.size = int64(len(data))
	m.snapshot = int64(len(m.encodeSnapshot()))
	return m.reopen()
}

func (m *Manifest) path(elem ...string) string {
	return m.fs.PathJoin(append([]string{m.dir}, elem...)...)
}

func (m *Manifest) read() ([]byte, error) {
	f, err := m.fs.Open(m.path(fileName), vfs.SequentialReadsOption)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// reopen opens the file for appending and makes it and its name durable: what
// stands in the page cache only must not vanish after it was acted upon.
func (m *Manifest) reopen() error {
	f, err := m.fs.OpenReadWrite(m.path(fileName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	m.f = f
	if err := f.Sync(); err != nil {
		return err
	}
	return durable.SyncDir(m.fs, m.dir)
}

// setAside copies the file to lost+found under the first free name.
func (m *Manifest) setAside() (string, error) {
	lost := m.path(lostDir)
	if err := m.fs.MkdirAll(lost, 0o755); err != nil {
		return "", err
	}
	for i := 1; ; i++ {
		name := m.fs.PathJoin(lost, fmt.Sprintf("%s.%d", fileName, i))
		if _, err := m.fs.Stat(name); err == nil {
			continue
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if err := vfs.Copy(m.fs, m.path(fileName), name); err != nil {
			return "", err
		}
		if err := durable.SyncDir(m.fs, lost); err != nil {
			return "", err
		}
		return name, durable.SyncDir(m.fs, m.dir)
	}
}

func (m *Manifest) encodeSnapshot() []byte {
	return appendRecord(appendHeader(nil), m.number+1, m.state.snapshot())
}

// writeTemp writes a snapshot beside the file. A failure of it leaves the file
// as it is.
func (m *Manifest) writeTemp() error {
	data := m.encodeSnapshot()
	if n := len(data) - headerSize - frameSize; n > EditLimit {
		return fmt.Errorf("snapshot of %d bytes: the limit is %d", n, EditLimit)
	}
	size := int64(len(data))
	f, err := m.fs.Create(m.path(tempName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	n, err := f.Write(data)
	if err == nil && int64(n) < size {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", tempName, err)
	}
	m.snapshot = size
	return nil
}

// swap gives the snapshot its name. After a failure it is not known which of
// the two files a restart will find.
func (m *Manifest) swap() error {
	if err := m.fs.Rename(m.path(tempName), m.path(fileName)); err != nil {
		return err
	}
	if m.f != nil {
		old := m.f
		m.f = nil
		if err := old.Close(); err != nil {
			return err
		}
	}
	m.size = m.snapshot
	m.retry = 0
	m.number++
	return m.reopen()
}

// Commit appends an edit and fsyncs it: when it returns nil the edit is
// permanent. After any error but a refusal of the edit itself it is not known
// whether it is, and the manifest has failed for good: the owner must stop and
// open it again. Commit keeps no slice of e.
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
	if size-frameSize > EditLimit {
		return fmt.Errorf("manifest: edit of %d bytes: the limit is %d; split it", size-frameSize, EditLimit)
	}
	n, err := m.f.WriteAt(m.buf, m.size)
	if err == nil && int64(n) < size {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = m.f.SyncData()
	}
	if err != nil {
		return m.fail(fmt.Errorf("edit %d: %w", m.number+1, err))
	}
	m.size += size
	m.number++
	m.state.apply(&e)
	if m.size > max(m.limit, m.retry) && m.size > 2*m.snapshot {
		return m.rewrite()
	}
	return nil
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
	return nil
}

// rewrite replaces the file by a snapshot. The edits are durable before it, so
// that a snapshot that cannot be written is no error yet.
func (m *Manifest) rewrite() error {
	snapshot := m.snapshot
	if err := m.writeTemp(); err != nil {
		m.snapshot, m.retry = snapshot, m.size+m.limit
		m.logger.Warn("manifest: the file keeps growing until it can be rewritten", "bytes", m.size, "err", err)
		return nil
	}
	if err := m.swap(); err != nil {
		return m.fail(fmt.Errorf("rewrite: %w", err))
	}
	return nil
}

func (m *Manifest) fail(cause error) error {
	m.err = fmt.Errorf("manifest: %s has failed and takes no more edits until a restart: %w", m.path(fileName), cause)
	m.logger.Error("manifest: failed", "err", cause)
	return m.err
}

// Close closes the file; every edit was made permanent by its Commit.
func (m *Manifest) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = ErrClosed
	}
	if m.f == nil {
		return nil
	}
	f := m.f
	m.f = nil
	return f.Close()
}
