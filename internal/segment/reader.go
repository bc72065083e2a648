package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"syscall"

	"dalmatiner/internal/buckets"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Reader reads one segment. All methods but Close may be called concurrently;
// Close must come after every other call has returned.
//
// A method that meets damage goes on with the blocks that are intact and
// returns all DamageErrors joined at its end; Damages lists them. Any other
// error ends it at once.
type Reader struct {
	path   string
	files  *Files
	number uint32 // among those of files
	file   openFile
	foot   atomic.Pointer[footer]

	loading sync.Mutex // held while the directory is read, so that it is read once
	dir     atomic.Pointer[directory]
}

// Open opens a finished segment by itself and reads its footer, no more. The
// error is or wraps a *DamageError if the file is torn, and wraps ErrFormat if it
// has another format.
func Open(fs vfs.FS, path string) (*Reader, error) { return NewFiles(fs, 1, 0).Open(path) }

// Open is the function Open for a reader that shares the limit of open files.
func (c *Files) Open(path string) (*Reader, error) {
	r := &Reader{path: path, files: c, number: c.number.Add(1), file: openFile{path: path}}
	if err := r.readFooter(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Later is Open for a segment whose footer the device does not give now, which is
// no damage of it: every call tries to read it first, and returns the failure
// (ReadFailed) until that succeeds. Info is that of a segment that may hold
// anything.
func (c *Files) Later(path string) *Reader {
	r := &Reader{path: path, files: c, number: c.number.Add(1), file: openFile{path: path}}
	r.foot.Store(&footer{unread: true, info: Info{Chunks: 1, Series: 1, Identities: 1, MinChunk: math.MinInt64, MaxChunk: math.MaxInt64}})
	return r
}

// footer is what is known of the footer.
func (r *Reader) footer() *footer { return r.foot.Load() }

func (r *Reader) readFooter() error {
	size, err := r.size()
	if err != nil {
		return err
	}
	tail := make([]byte, min(size, footerSize))
	if err := r.readAt(tail, size-int64(len(tail)), partFooter); err != nil {
		return err
	}
	foot, err := parseFooter(tail, r.path, size)
	if err == nil {
		r.foot.Store(&foot)
	}
	return err
}

func (r *Reader) size() (int64, error) {
	f, err := r.files.take(&r.file)
	if known := r.footer() != nil; err != nil && (known || errors.Is(err, syscall.EIO)) {
		return 0, r.notOpened(err, 0, footerSize, partFooter)
	} else if err != nil {
		return 0, fmt.Errorf("segment: open %s: %w", r.path, err)
	}
	defer r.files.done(&r.file)
	stat, err := f.Stat()
	if errors.Is(err, syscall.EIO) {
		return 0, r.unread(0, footerSize, partFooter, "tell its size", err)
	}
	if err != nil {
		return 0, fmt.Errorf("segment: stat %s: %w", r.path, err)
	}
	return stat.Size(), nil
}

// Info returns what the footer says.
func (r *Reader) Info() Info { return r.footer().info }

// Close closes the file. No other call may be under way or follow.
func (r *Reader) Close() error {
	r.dir.Store(nil)
	if r.files.blocks != nil {
		r.files.blocks.drop(r.number)
	}
	return r.files.close(&r.file)
}

// IndexBytes is the memory the loaded part of the index takes, in bytes.
func (r *Reader) IndexBytes() int64 {
	if d := r.dir.Load(); d != nil {
		return d.bytes()
	}
	return 0
}

// DropIndex frees the loaded index. Calls under way keep theirs until they
// return; the next look-up loads again.
func (r *Reader) DropIndex() { r.dir.Store(nil) }

// readAt fills dst from offset. A file that ends early is damage, and so is a
// range that the device cannot read (EIO), or a file that is gone since it was
// opened first: what else there is is served.
func (r *Reader) readAt(dst []byte, offset int64, part string) error {
	f, err := r.files.take(&r.file)
	if err != nil {
		return r.notOpened(err, offset, len(dst), part)
	}
	n, err := f.ReadAt(dst, offset)
	r.files.done(&r.file)
	switch {
	case n == len(dst):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return r.damage(offset, len(dst), part, fmt.Sprintf("the file ends after %d of these bytes", n))
	case errors.Is(err, syscall.EIO):
		return r.unread(offset, len(dst), part, "read it", err)
	default:
		return fmt.Errorf("segment: read %d bytes at offset %d of %s: %w", len(dst), offset, r.path, err)
	}
}

// notOpened is the error of a read whose file could not be opened again.
func (r *Reader) notOpened(err error, offset int64, length int, part string) error {
	switch {
	case oserror.IsNotExist(err):
		return r.damage(offset, length, part, "the file is gone")
	case errors.Is(err, syscall.EIO):
		return r.unread(offset, length, part, "open it", err)
	}
	return fmt.Errorf("segment: open %s: %w", r.path, err)
}

// damage is a range of the file that is not what was written.
func (r *Reader) damage(offset int64, length int, part, detail string) *DamageError {
	return &DamageError{File: r.path, Offset: offset, Length: int64(length), Part: part, Detail: detail}
}

// unread is a range that the device does not give now.
func (r *Reader) unread(offset int64, length int, part, doing string, cause error) *DamageError {
	e := r.damage(offset, length, part, "the device cannot "+doing+": "+cause.Error())
	e.Cause = cause
	return e
}

// directory returns the loaded directory, or loads it. An error is not kept:
// the next call tries again.
func (r *Reader) directory() (*directory, error) {
	if d := r.dir.Load(); d != nil {
		return d, nil
	}
	r.loading.Lock()
	defer r.loading.Unlock()
	if d := r.dir.Load(); d != nil {
		return d, nil
	}
	if r.footer().unread {
		if err := r.readFooter(); err != nil {
			return nil, err
		}
	}
	foot := r.footer()
	raw := make([]byte, foot.dirLen()) // at most the size of the file
	if err := r.readAt(raw, foot.dirOff, partDirectory); err != nil {
		return nil, err
	}
	damage := DamageError{File: r.path, Offset: foot.dirOff, Length: int64(len(raw)), Part: partDirectory}
	if crc := blockCRC(raw, foot.dirOff); crc != foot.dirCRC {
		damage.Want, damage.Got = foot.dirCRC, crc
		return nil, &damage
	}
	d, err := parseDirectory(raw, foot)
	if err != nil {
		damage.Detail = err.Error()
		return nil, &damage
	}
	r.dir.Store(d)
	return d, nil
}

// check verifies block i, of kind k, which is src with its CRC, and returns its
// payload.
func (r *Reader) check(d *directory, i int, k kind, src []byte) ([]byte, error) {
	payload := src[:len(src)-crcSize]
	want, got := binary.LittleEndian.Uint32(src[len(payload):]), blockCRC(payload, d.offset(i))
	if want != got {
		return nil, &DamageError{File: r.path, Offset: d.offset(i), Length: int64(len(src)),
			Want: want, Got: got, Part: k.String()}
	}
	return payload, nil
}

// malformed is the error for block i, whose CRC is right and content is not.
func (r *Reader) malformed(d *directory, i int, k kind, detail string) error {
	return r.damage(d.offset(i), int(d.offset(i+1)-d.offset(i)), k.String(), detail)
}

// readBlock reads and verifies block i into dst, which is grown as needed, and
// returns the payload, a part of dst.
func (r *Reader) readBlock(dst []byte, d *directory, i int, k kind) (payload, buf []byte, err error) {
	n := int(d.offset(i+1) - d.offset(i))
	if cap(dst) < n {
		dst = make([]byte, n)
	}
	dst = dst[:n]
	if err := r.readAt(dst, d.offset(i), k.String()); err != nil {
		return nil, dst, err
	}
	payload, err = r.check(d, i, k, dst)
	return payload, dst, err
}

// leaf returns leaf i, from memory or from the file. It stays in memory unless
// the caller lends a buffer for it.
func (r *Reader) leaf(d *directory, i int, lent *[]byte) (leaf, error) {
	if l := d.leaves[i].Load(); l != nil {
		return *l, nil
	}
	var buf []byte
	if lent != nil {
		buf = *lent
	}
	block := r.footer().first(kindLeaf) + i
	payload, buf, err := r.readBlock(buf, d, block, kindLeaf)
	if lent != nil {
		*lent = buf
	}
	if err != nil {
		return nil, err
	}
	l, err := parseLeaf(payload)
	if err != nil {
		return nil, r.malformed(d, block, kindLeaf, err.Error())
	}
	if lent == nil && d.leaves[i].CompareAndSwap(nil, &l) {
		d.loaded.Add(int64(cap(buf)))
	}
	return l, nil
}

// IdentityBytes returns the size of all identities, which is what Writer.Reserve
// needs to take them over. It is 0 where the directory cannot be read.
func (r *Reader) IdentityBytes() int64 {
	d, err := r.directory()
	if err != nil {
		return 0
	}
	f := r.footer()
	return d.offset(f.first(kindSeries+1)) - d.offset(f.first(kindSeries))
}

// Series calls fn for every identity in the order they were added. The key is
// valid during the call.
func (r *Reader) Series(fn func(Series) error) error {
	return r.records(kindSeries, func(src []byte) ([]byte, error, error) {
		s, rest, err := parseSeries(src)
		if err != nil {
			return nil, nil, err
		}
		return rest, fn(s), nil
	})
}

// Buckets returns the buckets in the order they were added. If blocks are damaged it returns the buckets of the others and the
// error.
func (r *Reader) Buckets() ([]buckets.Info, error) {
	var all []buckets.Info
	err := r.records(kindBucket, func(src []byte) ([]byte, error, error) {
		b, rest, err := parseBucket(src)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, b)
		return rest, nil, nil
	})
	return all, err
}

// records walks the blocks of a section. next takes one record off src and
// returns the rest, the error of the visitor, and the error of the record.
func (r *Reader) records(k kind, next func(src []byte) (rest []byte, stop, bad error)) error {
	d, err := r.directory()
	if err != nil {
		return err
	}
	var found damages
	var buf, payload []byte
	for i := r.footer().first(k); i < r.footer().first(k+1); i++ {
		if payload, buf, err = r.readBlock(buf, d, i, k); err != nil {
			if err := found.add(err); err != nil {
				return err
			}
			continue
		}
		for len(payload) > 0 {
			rest, stop, bad := next(payload)
			if stop != nil {
				return stop
			}
			if bad != nil {
				_ = found.add(r.malformed(d, i, k, bad.Error()))
				break
			}
			payload = rest
		}
	}
	return found.err()
}
