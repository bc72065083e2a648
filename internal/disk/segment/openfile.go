package segment

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"syscall"

	"dalmatiner/internal/disk/blockcache"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// openFile is the file of one reader. It reads ranges of it, and what the disk does not
// give it names as damage. All behind number is under the lock of Files.
type openFile struct {
	path   string
	files  *Files
	number uint32 // among those of files

	file    vfs.File      // nil while it is not open
	opening bool          // by one of the reads, for all
	reads   int           // under way
	at      *list.Element // in idle, when it is open and not being read
	closed  bool          // for good
}

// size returns the size of the file. known says that its footer was read before, and that
// the file has been there.
func (f *openFile) size(known bool) (int64, error) {
	file, err := f.files.take(f)
	if err != nil && (known || errors.Is(err, syscall.EIO)) {
		return 0, f.notOpened(err, 0, footerSize, partFooter)
	} else if err != nil {
		return 0, fmt.Errorf("segment: open %s: %w", f.path, err)
	}
	defer f.files.endRead(f)
	stat, err := file.Stat()
	if errors.Is(err, syscall.EIO) {
		return 0, f.readError(0, footerSize, partFooter, "tell its size", err)
	}
	if err != nil {
		return 0, fmt.Errorf("segment: stat %s: %w", f.path, err)
	}
	return stat.Size(), nil
}

// readAt fills dst from offset. Damage is a file that ends early, a range that the
// device cannot read (EIO), or a file missing since it was first opened. Everything
// else is still served.
func (f *openFile) readAt(dst []byte, offset int64, part string) error {
	file, err := f.files.take(f)
	if err != nil {
		return f.notOpened(err, offset, len(dst), part)
	}
	n, err := file.ReadAt(dst, offset)
	f.files.endRead(f)
	switch {
	case n == len(dst):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return f.damage(offset, len(dst), part, fmt.Sprintf("the file ends after %d of these bytes", n))
	case errors.Is(err, syscall.EIO):
		return f.readError(offset, len(dst), part, "read it", err)
	default:
		return fmt.Errorf("segment: read %d bytes at offset %d of %s: %w", len(dst), offset, f.path, err)
	}
}

// notOpened is the error of a read whose file could not be opened again.
func (f *openFile) notOpened(err error, offset int64, length int, part string) error {
	switch {
	case oserror.IsNotExist(err):
		return f.damage(offset, length, part, "the file is gone")
	case errors.Is(err, syscall.EIO):
		return f.readError(offset, length, part, "open it", err)
	}
	return fmt.Errorf("segment: open %s: %w", f.path, err)
}

// damage is a range of the file that is not what was written.
func (f *openFile) damage(offset int64, length int, part, detail string) *DamageError {
	return &DamageError{
		File:   f.path,
		Offset: offset,
		Length: int64(length),
		Part:   part,
		Detail: detail,
	}
}

// readError is a range that the device does not give now.
func (f *openFile) readError(offset int64, length int, part,
	doing string, cause error) *DamageError {
	e := f.damage(offset, length, part, "the device cannot "+doing+": "+cause.Error())
	e.Cause = cause
	return e
}

// block returns the key of a data block of the reader.
func (f *openFile) block(i int) blockcache.Key { return blockcache.KeyOf(f.number, i) }
