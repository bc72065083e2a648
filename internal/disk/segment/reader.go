package segment

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/buckets"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Reader reads one segment. Its methods may be called concurrently, but for Close, which must
// come after every other call has returned.
//
// A method that meets damage goes on with the blocks that are intact, and at its end returns
// all DamageErrors joined: Damages lists them. Without the directory nothing can be found, so
// damage to it, or to the footer, is all that is returned. Any other error ends a method at
// once.
type Reader struct {
	file openFile
	foot atomic.Pointer[footer]

	loading sync.Mutex // held while the directory is read, so that it is read once
	dir     atomic.Pointer[directory]
}

// Open opens a finished segment and reads its footer, no more. Its file counts for no limit,
// and no data blocks are kept in memory. The caller closes the Reader. The error holds a
// *DamageError if the footer is damaged or missing, and wraps ErrFormat if the file has
// another format.
func Open(fs vfs.FS, path string) (*Reader, error) { return NewFiles(fs, 1, 0).Open(path) }

// Open is the function Open for a Reader that shares the limit of open files and the memory
// for data blocks.
func (c *Files) Open(path string) (*Reader, error) {
	r := &Reader{file: openFile{path: path, files: c, number: c.number.Add(1)}}
	if err := r.readFooter(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// UnreadReader returns a Reader for a segment whose footer the device does not give now. That is no
// damage of the segment: every call tries to read the footer first, and returns the failure
// (ReadFailed) until that succeeds. Until then Info is that of a segment that may hold
// anything.
func (c *Files) UnreadReader(path string) *Reader {
	r := &Reader{file: openFile{path: path, files: c, number: c.number.Add(1)}}
	r.foot.Store(&footer{unread: true, info: Info{
		Chunks:     1,
		Series:     1,
		Identities: 1,
		MinChunk:   math.MinInt64,
		MaxChunk:   math.MaxInt64,
	}})
	return r
}

// footer is what is known of the footer.
func (r *Reader) footer() *footer { return r.foot.Load() }

func (r *Reader) readFooter() error {
	size, err := r.file.size(r.footer() != nil)
	if err != nil {
		return err
	}
	tail := make([]byte, min(size, footerSize))
	if err := r.file.readAt(tail, size-int64(len(tail)), partFooter); err != nil {
		return err
	}
	foot, err := parseFooter(tail, r.file.path, size)
	if err == nil {
		r.foot.Store(&foot)
	}
	return err
}

// Info returns what the footer says.
func (r *Reader) Info() Info { return r.footer().info }

// Origin returns which file of which directory it says it is.
func (r *Reader) Origin() origin.File { return r.footer().origin }

// Close closes the file and frees what is in memory of it. No other call may be under way or
// follow.
func (r *Reader) Close() error {
	r.dir.Store(nil)
	if r.file.files.blocks != nil {
		r.file.files.blocks.Drop(r.file.number)
	}
	return r.file.files.close(&r.file)
}

// IndexBytes returns the memory of the part of the index that is loaded, in bytes.
func (r *Reader) IndexBytes() int64 {
	if d := r.dir.Load(); d != nil {
		return d.bytes()
	}
	return 0
}

// DropIndex frees the index. Calls under way keep what they have until they return, and the
// next look-up loads again what it needs.
func (r *Reader) DropIndex() { r.dir.Store(nil) }

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
	if err := r.file.readAt(raw, foot.dirOff, partDirectory); err != nil {
		return nil, err
	}
	damage := DamageError{
		File:   r.file.path,
		Offset: foot.dirOff,
		Length: int64(len(raw)),
		Part:   partDirectory,
	}
	if crc := blockCRC(raw, foot.dirOff); crc != foot.dirCRC {
		damage.Want, damage.Got = foot.dirCRC, crc
		return nil, &damage
	}
	d, err := parseDirectory(raw, &r.file, foot)
	if err != nil {
		damage.Detail = err.Error()
		return nil, &damage
	}
	r.dir.Store(d)
	return d, nil
}

// IdentityBytes returns the bytes that all identities take in memory, for Writer.Reserve. It
// reads them, as they are packed in the file. What cannot be read counts as nothing.
func (r *Reader) IdentityBytes() (n int64) {
	d, err := r.directory()
	if err != nil {
		return 0
	}
	var s scratch
	for i := r.footer().first(kindSeries); i < r.footer().first(kindSeries+1); i++ {
		if names, err := d.names(&s, i); err == nil {
			n += int64(len(names))
		}
	}
	return n
}

// Series calls fn for every identity, in the order in which they were added. The Key is valid
// during the call only. An error of fn ends the walk and is returned as it is.
func (r *Reader) Series(fn func(Series) error) error {
	return r.records(kindSeries, func(src []byte) ([]byte, error, error) {
		s, rest, err := parseSeries(src)
		if err != nil {
			return nil, nil, err
		}
		return rest, fn(s), nil
	})
}

// Buckets returns the properties of the buckets, in the order in which they were added. If
// blocks are damaged, it returns the buckets of the others and the error.
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
	var s scratch
	for i := r.footer().first(k); i < r.footer().first(k+1); i++ {
		read := d.names
		if k != kindSeries {
			read = func(s *scratch, i int) ([]byte, error) { return d.readBlock(s, i, k) }
		}
		payload, err := read(&s, i)
		if err != nil {
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
				_ = found.add(d.malformed(i, k, bad.Error()))
				break
			}
			payload = rest
		}
	}
	return found.err()
}
