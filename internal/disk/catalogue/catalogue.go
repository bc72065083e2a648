// Package catalogue keeps the identities of all series on disk, so that a start need not
// read every segment. Every flush of the store writes to it, and a start reads it once. It
// is the only package that uses pebble as a database.
//
// Every identity is in the WAL or in a segment as well. So the catalogue needs no log of its
// own, and a catalogue that does not open is set aside and rebuilt. DESIGN.md has the
// records.
package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"dalmatiner/internal/host/durable"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrDamaged is wrapped by errors that the content of the directory causes. The remedy is
// SetAside, Open, and Put of every identity in the WAL and in segments.
var ErrDamaged = errors.New("catalogue is damaged")

const (
	// formatVersion is pinned so that an update of pebble does not change the
	// files. It is the first one with a checksum in the footer of a table.
	formatVersion = pebble.FormatTableFormatV6

	// memTableSize bounds what Put holds in memory. A flush of the store brings
	// a few thousand identities of some 100 bytes; only a first start brings
	// more, and then a table per 4 MiB is cheap.
	memTableSize = 4 << 20

	// cacheSize is small because the only reader is Load, which reads every
	// block once.
	cacheSize = 1 << 20

	blockSize = 32 << 10 // pebble has 4; names resemble each other, and Load reads them all

	// maxOpenFiles bounds the file descriptors: 64 tables hold well over a million series.
	maxOpenFiles = 64

	// Memory is about the most memory, in bytes, that an open catalogue takes: a table being filled,
	// one being written, the cache, a batch, and a block together with its stored form.
	Memory = 2*memTableSize + cacheSize + batchSize + 2*blockColumns*longKey

	// batchSize is where Put commits, so that a large Put needs no large batch.
	batchSize = 256 << 10
)

// Catalogue is an open catalogue. Its methods may be called concurrently, but for Close,
// which must come last.
type Catalogue struct {
	dir      string
	db       *pebble.DB
	lock     *pebble.Lock
	readOnly bool
	failed   chan error            // the last error of a background write
	broken   atomic.Pointer[error] // see Failure
	gone     atomic.Bool           // then nothing is written any more
	unsynced atomic.Pointer[error] // why a directory of the checkpoint under way is not on disk
	closing  chan struct{}         // closed by Close
	reopen   func() error          // opens to write what could only be opened to read; nil = it is
	dbMu     sync.RWMutex          // held to read by what reads db beside reopen

	namesUnread atomic.Bool // see NamesUnread

	mu         sync.Mutex
	dirty      bool            // written to since the last Flush
	behind     <-chan struct{} // closed when pebble has done the Flush that failed; nil = none has
	generation uint64
	noted      bool   // the files say that there is a catalogue
	found      uint64 // see FoundMark
}

// Open opens the catalogue in dir, or begins an empty one if dir has none. It locks dir
// against other processes. A new dir survives a crash if its parent does.
//
// The error wraps ErrDamaged if the files are not those of a catalogue. It does not if
// another process holds dir or the system refuses to open files.
//
// On a full disk Open gives a catalogue that can only be read. Each call that writes then
// tries first to open it for writing, and fails until there is room.
func Open(files vfs.FS, dir string, logger *slog.Logger) (*Catalogue, error) {
	if err := makeDir(files, dir); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(dir, files)
	if err != nil {
		return nil, fmt.Errorf("catalogue: lock %s, is another process using it? %w", dir, err)
	}
	c := &Catalogue{dir: dir, lock: lock, failed: make(chan error, 1), closing: make(chan struct{})}
	if err := c.open(files, logger); err != nil && !c.openToRead(files, logger, err) {
		return nil, errors.Join(err, lock.Close())
	}
	return c, nil
}

func (c *Catalogue) open(files vfs.FS, logger *slog.Logger) error {
	used, err := hasTables(files, c.dir)
	if err != nil {
		return fmt.Errorf("catalogue: list %s: %w", c.dir, err)
	}
	names, err := sortedList(files, c.dir)
	if err != nil {
		return fmt.Errorf("catalogue: list %s: %w", c.dir, err)
	}
	if err := checkListed(files, c.dir, names); err != nil {
		return c.openError(err)
	}
	log := debugLogger{logger}
	cache := pebble.NewCache(cacheSize)
	defer cache.Unref()
	compactions := newCompactions()
	o := &pebble.Options{
		FS:                 void{files, c.dir, &c.gone, c.fail, c.noteUnsynced},
		Lock:               c.lock,
		Cache:              cache,
		MemTableSize:       memTableSize,
		MaxOpenFiles:       maxOpenFiles,
		FormatMajorVersion: formatVersion,
		DisableWAL:         true,
		DisableTableStats:  true,
		ReadOnly:           c.readOnly,
		// Tables without the file that lists them would otherwise be taken for
		// leavings and removed, and the catalogue be empty without an error.
		ErrorIfNotExists: used,
		Logger:           log,
		EventListener:    c.events(log),
	}
	o.Experimental.CompactionScheduler = compactions
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockSize
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.ZstdCompression }
	}
	c.db, err = openPebble(c.dir, o)
	if err == nil && c.Failure() != nil {
		err = errors.Join(c.Failure(), c.db.Close())
	}
	if err != nil {
		return c.openError(err)
	}
	c.generation, c.noted, err = c.readGeneration()
	c.found = c.mark()
	if err == nil && !c.noted && !c.readOnly {
		err = c.note()
	}
	if err != nil {
		return errors.Join(err, c.db.Close())
	}
	compactions.begin()
	return nil
}

// openPebble is pebble.Open with a panic as an error: where a device fails at the end of an
// open, pebble may use what it has closed already. By then it has given back its memory
// and the lock. What panics in a goroutine of pebble's own cannot be caught.
func openPebble(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, fmt.Errorf("pebble panicked: %v", r)
			o.Logger.Errorf("%v\n%s", err, debug.Stack())
		}
	}()
	return pebble.Open(dir, o)
}

// note notes that there is a catalogue, of generation 0. What cannot be written now, for
// want of room, is by a later Flush.
func (c *Catalogue) note() error {
	if err := c.flush(c.generation); err != nil {
		if failed := c.Failure(); failed != nil {
			return c.openError(failed)
		}
		c.dirty = true
	}
	return nil
}

// fail notes that pebble could not write its MANIFEST, or what it has written is damaged.
func (c *Catalogue) fail(err error) {
	err = fmt.Errorf("catalogue: %s has failed and takes no more changes: %w; the next start "+
		"rebuilds it from the segments and the log", c.dir, err)
	c.broken.CompareAndSwap(nil, &err)
	c.gone.Store(true)
}

// Failure returns why the catalogue can no longer be written, nil while it can. After a
// failure nobody knows what its files hold, every call that can fail returns this error, and
// the catalogue is only to be closed. The remedy, at the next start, is that for ErrDamaged.
func (c *Catalogue) Failure() error {
	if p := c.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// backoff is the pause before pebble tries a failed background write again,
// which it does at once and without end.
const backoff = 100 * time.Millisecond

// events keeps pebble from ending the process for damage in a table, which Load
// reports, and notes failures of background writes for Flush. pebble holds its
// lock during the pause; writes are refused meanwhile (catchUp), and there are no
// reads beside Load.
func (c *Catalogue) events(log debugLogger) *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			select {
			case c.failed <- err:
				log.Errorf("background write: %v", err)
			default: // one is noted, and logged, already
			}
			select {
			case <-c.closing:
			case <-time.After(backoff):
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) { log.Errorf("%s", info) },
	}
}

// openError tells what the files cause from what the system refuses.
func (c *Catalogue) openError(err error) error {
	refused := durable.IsFull(err)
	for _, refusal := range []error{fs.ErrPermission, syscall.EROFS, syscall.EMFILE, syscall.ENFILE,
		syscall.ENOMEM} {
		refused = refused || errors.Is(err, refusal)
	}
	if refused {
		return fmt.Errorf("catalogue: open %s: %w", c.dir, err)
	}
	return c.damageError("open", err)
}

func (c *Catalogue) damageError(doing string, err error) error {
	return fmt.Errorf("%w: %s %s: %w; set it aside, it is rebuilt from the WAL and the segments",
		ErrDamaged, doing, c.dir, err)
}

// readError wraps an error of a read.
func (c *Catalogue) readError(doing string, err error) error {
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, syscall.EIO) || errors.Is(err, errRecord) {
		return c.damageError(doing, err)
	}
	return fmt.Errorf("catalogue: %s %s: %w", doing, c.dir, err)
}

// catchUp waits, when an earlier Flush has failed, for the end of pebble's next
// attempt at it. Writes are refused until one succeeds: pebble would hold them,
// without end, when its memory is full. c.mu is held.
func (c *Catalogue) catchUp() error {
	if err := c.Failure(); err != nil {
		return err
	}
	if err := c.makeWritable(); err != nil {
		return err
	}
	if c.behind == nil {
		return nil
	}
	select {
	case <-c.behind:
	default:
		select {
		case <-c.behind:
		case err := <-c.failed:
			return fmt.Errorf("catalogue: flush %s, tried again: %w", c.dir, err)
		}
	}
	c.behind = nil
	return nil
}

// Flush makes all changes so far durable and raises the generation by one. If nothing has
// changed since the last Flush it does nothing. After an error the caller may call it again,
// unless Failure says why: nothing is lost from memory.
func (c *Catalogue) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.Failure(); err != nil || !c.dirty {
		return err
	}
	if err := c.catchUp(); err != nil {
		return err
	}
	if err := c.flush(c.generation + 1); err != nil {
		return err
	}
	c.generation++
	c.dirty = false
	return nil
}

// flush writes what pebble has in memory, and the generation.
func (c *Catalogue) flush(generation uint64) error {
	if err := c.db.Set(generationKey(), appendGeneration(nil, generation), pebble.NoSync); err != nil {
		return fmt.Errorf("catalogue: write to %s: %w", c.dir, err)
	}
	select {
	case <-c.failed: // of an earlier attempt
	default:
	}
	flushed, err := c.db.AsyncFlush()
	if err != nil {
		return fmt.Errorf("catalogue: flush %s: %w", c.dir, err)
	}
	// pebble tries a failed flush again without end; the caller decides that.
	select {
	case <-flushed:
	case err := <-c.failed:
		c.behind = flushed
		return errors.Join(c.Failure(), fmt.Errorf("catalogue: flush %s: %w", c.dir, err))
	}
	if err := c.Failure(); err != nil {
		return err
	}
	c.noted = true
	return nil
}

// Generation returns how often Flush has written since the catalogue was new. Its owner
// notes it after a Flush. A catalogue that opens with a lower generation than the one noted
// has lost that Flush, though no file is visibly damaged. It is set aside like a damaged one.
func (c *Catalogue) Generation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.generation
}

// readGeneration returns the generation, and whether one is noted.
func (c *Catalogue) readGeneration() (n uint64, noted bool, err error) {
	v, closer, err := c.db.Get(generationKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, c.readError("read", err)
	}
	n, err = parseGeneration(v)
	if err := errors.Join(err, closer.Close()); err != nil {
		return 0, false, c.readError("read", err)
	}
	return n, true, nil
}

// Close closes the catalogue and unlocks its directory. What was changed since the last
// Flush may be lost.
func (c *Catalogue) Close() error {
	close(c.closing)
	if c.db == nil {
		return c.lock.Close()
	}
	return errors.Join(c.db.Close(), c.lock.Close())
}
