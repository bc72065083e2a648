package manifest

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

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
	if l.of.IsKnown() {
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
	if last, any := second.lastNumber(); any && last == l.number && len(second.bad) == 0 &&
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
			return notWrittenError(err)
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
			return notWrittenError(err)
		}
	}
	for i, f := range m.files {
		n, err := f.WriteAt(m.buf, m.size)
		if i == 0 && durable.IsFull(err) && int64(n) < size {
			m.renew = []int{0, 1} // a piece of the record stands there, which is a tear
			return notWrittenError(err)
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

func notWrittenError(err error) error {
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

// IsDeleted reports whether the deletion of a bucket is committed.
func (m *Manifest) IsDeleted(bucket uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.IsDeleted(bucket)
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
