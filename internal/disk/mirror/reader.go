package mirror

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/zstd"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
)

// window is how much of a copy is read at a time.
const window = 1 << 20

// Place is where a copy is not what was written.
type Place struct {
	File   string // the path of the copy below the data directory
	Offset int64
	Bytes  int64 // 0 where the copy as a whole is meant
	Reason string
}

// String is one line, without the name of the file.
func (p *Place) String() string {
	if p.Bytes == 0 {
		return p.Reason
	}
	return fmt.Sprintf("%d bytes at offset %d: %s", p.Bytes, p.Offset, p.Reason)
}

// Report is what reading a file found.
type Report struct {
	Entries int64   // of what either copy has
	Bytes   int64   // read from both copies
	Bad     []Place // of single copies; what both had there is lost, all else is not

	// Lost is true where both copies lack the same, LostEntries how many entries of that; -1
	// where nothing tells. Unread says that a device could not give some of it, which may pass.
	Lost        bool
	LostEntries int64
	Unread      bool
}

// IsWhole reports whether both copies are what was written.
func (r *Report) IsWhole() bool { return len(r.Bad) == 0 && !r.Lost }

// LostText says how much of a file of a kind both copies lack.
func (r *Report) LostText(kind manifest.FileKind) string {
	what := "changes of tags"
	if kind == manifest.TagBase {
		what = "series with their tags"
	}
	if r.LostEntries < 0 {
		return "an unknown number of " + what
	}
	return fmt.Sprintf("%d %s", r.LostEntries, what)
}

// bad reports whether anything is wrong with one copy.
func (r *Report) bad(path string) bool {
	for i := range r.Bad {
		if r.Bad[i].File == path {
			return true
		}
	}
	return false
}

// copyReader reads one copy.
type copyReader struct {
	path string // below the data directory
	f    vfs.File
	size int64
	sum  uint32
	over bool // nothing more can be read

	buf []byte // of the file, from
	at  int64
}

// reader reads a file.
type reader struct {
	of     origin.Directory
	file   *manifest.File
	copies []*copyReader
	report Report
	buf    []byte
}

func (r *reader) bad(c *copyReader, at, n int64, reason string) {
	r.report.Bad = append(r.report.Bad, Place{c.path, at, n, reason})
}

// Read calls fn for every item of a committed file below the data directory dir, which has the id
// of, in order. Each block comes from whichever copy has it. The item is valid during the call. The
// error is that of fn, or says nothing about the file, or wraps ErrFormat.
func Read(fs vfs.FS, dir string, of origin.Directory, f *manifest.File,
	fn func(item []byte) error) (Report, error) {
	var content []byte
	return walk(fs, dir, of, f, func(r *reader, h *frame, stored []byte) error {
		src, buf, err := zstd.Content(content, stored, zstd.MaxLength)
		content = buf
		if bad := wellFormed(src, h.items); err != nil || bad {
			for _, c := range r.copies {
				r.bad(c, 0, 0, fmt.Sprintf("block %d is malformed", h.number))
			}
			r.lose(int64(h.entries))
			return nil
		}
		for len(src) > 0 {
			n, size := binary.Uvarint(src)
			item := src[size : size+int(n)]
			src = src[size+int(n):]
			if err := fn(item); err != nil {
				return err
			}
		}
		r.report.Entries += int64(h.entries)
		return nil
	})
}

// wellFormed reports whether the content of a block is not so many items.
func wellFormed(src []byte, items uint32) (bad bool) {
	for len(src) > 0 {
		n, size := binary.Uvarint(src)
		if size <= 0 || n > uint64(len(src)-size) || items == 0 {
			return true
		}
		src = src[size+int(n):]
		items--
	}
	return items != 0
}

// Describe returns what the copies of a file say of it that no MANIFEST names. Whole is false
// where none of them says it, or none has an end: the sizes are 0 then.
func Describe(fs vfs.FS, dir string, of origin.Directory, n manifest.FileName) (f manifest.File,
	whole bool, err error) {
	for i, path := range datadir.FilePaths(n) {
		copied, openErr := fs.Open(fs.PathJoin(dir, path))
		if openErr != nil {
			if !oserror.IsNotExist(openErr) && !errors.Is(openErr, syscall.EIO) {
				err = openErr
			}
			continue
		}
		header := make([]byte, headerSize)
		_, readErr := copied.ReadAt(header, 0)
		if err := copied.Close(); err != nil {
			return f, false, err
		}
		in, found, number, headErr := parseHeader(header)
		if errors.Is(headErr, ErrFormat) {
			return f, false, headErr
		}
		if readErr == nil && headErr == nil && number == i && found.Name() == n && in == of {
			f, whole = found, true
			break
		}
	}
	if !whole {
		return f, false, err
	}
	f.Items = math.MaxInt64 // unknown
	ended := false
	report, err := walk(fs, dir, of, &f, func(r *reader, h *frame, _ []byte) error {
		r.report.Entries += int64(h.entries)
		return nil
	})
	ended = err == nil && !report.Lost
	f.Items, f.Bytes = report.Entries, 0
	for _, path := range datadir.FilePaths(n) {
		if stat, err := fs.Stat(fs.PathJoin(dir, path)); err == nil {
			f.Bytes = max(f.Bytes, stat.Size())
		}
	}
	return f, ended, err
}

// Origin returns which file of which directory the copy at path says it is; ok is false where it
// does not say. The error wraps ErrFormat, or is that of the file system.
func Origin(fs vfs.FS, path string) (of origin.File, ok bool, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return of, false, err
	}
	defer f.Close()
	header := make([]byte, headerSize)
	if n, err := f.ReadAt(header, 0); n < headerSize && (err == nil || errors.Is(err, io.EOF)) {
		return of, false, nil
	} else if n < headerSize {
		return of, false, err
	}
	in, file, _, err := parseHeader(header)
	if errors.Is(err, errHeader) {
		return of, false, nil
	}
	return origin.File{Directory: in, Number: file.Seq}, err == nil, err
}

// walk gives every block to each.
func walk(fs vfs.FS, dir string, of origin.Directory, f *manifest.File,
	each func(r *reader, h *frame, stored []byte) error) (Report, error) {
	r := &reader{of: of, file: f}
	err := r.open(fs, dir)
	if err == nil {
		err = r.blocks(each)
	}
	for _, c := range r.copies {
		if c.f != nil {
			err = errors.Join(err, c.f.Close())
		}
	}
	return r.report, err
}

func (r *reader) open(fs vfs.FS, dir string) error {
	for i, path := range datadir.FilePaths(r.file.Name()) {
		c := &copyReader{path: path}
		r.copies = append(r.copies, c)
		f, err := fs.Open(fs.PathJoin(dir, path))
		switch {
		case oserror.IsNotExist(err):
			r.bad(c, 0, 0, "the file is missing")
			c.over = true
			continue
		case errors.Is(err, syscall.EIO):
			r.noteReadError(c, 0, 0, err)
			c.over = true
			continue
		case err != nil:
			return err
		}
		c.f = f
		stat, err := f.Stat()
		if err != nil {
			return err
		}
		c.size = stat.Size()
		// What the header must be is known.
		header := appendHeader(nil, r.of, r.file, i)
		c.sum = binary.LittleEndian.Uint32(header[headerSize-4:])
		got, err := c.read(0, headerSize)
		if err != nil {
			if err = r.noteFailure(c, 0, headerSize, err); err != nil {
				return err
			}
			continue
		}
		if !bytes.Equal(got, header) {
			if _, _, _, err := parseHeader(got); errors.Is(err, ErrFormat) {
				return fmt.Errorf("%s: %w", path, err)
			}
			r.bad(c, 0, headerSize, "damaged header")
		}
	}
	return nil
}

// errShort says that a copy ends too soon.
var errShort = errors.New("the file ends in front of its end")

// noteFailure notes what a copy could not give. The error says nothing about the file.
func (r *reader) noteFailure(c *copyReader, at, n int64, err error) error {
	switch {
	case errors.Is(err, errShort):
		c.over = true
		r.bad(c, at, max(c.size-at, 1), "the file is cut short")
	case errors.Is(err, syscall.EIO):
		r.noteReadError(c, at, n, err)
	default:
		return err
	}
	return nil
}

func (r *reader) noteReadError(c *copyReader, at, n int64, err error) {
	r.report.Unread = true
	r.bad(c, at, n, "it cannot be read: "+err.Error())
}

// read returns bytes of the copy, which are valid until the next call.
func (c *copyReader) read(at, n int64) ([]byte, error) {
	if at+n > c.size {
		return nil, errShort
	}
	if at < c.at || at+n > c.at+int64(len(c.buf)) {
		size := min(max(window, n), c.size-at)
		if int64(cap(c.buf)) < size {
			c.buf = make([]byte, size)
		}
		c.buf, c.at = c.buf[:size], at
		got, err := c.f.ReadAt(c.buf, at)
		if errors.Is(err, syscall.EIO) && size > n { // what is behind may be what fails
			c.buf, size = c.buf[:n], n
			got, err = c.f.ReadAt(c.buf, at)
		}
		if int64(got) < size {
			c.buf = c.buf[:0]
			if err == nil || errors.Is(err, io.EOF) {
				err = errShort
			}
			return nil, err
		}
	}
	return c.buf[at-c.at:][:n], nil
}

// errDamaged says that there is no whole block.
var errDamaged = errors.New("damaged")

// block returns the block at an offset. stored is valid until the next call.
func (c *copyReader) block(at int64) (h frame, stored []byte, err error) {
	head, err := c.read(at, frameSize)
	if err != nil {
		return h, nil, err
	}
	if h, err = parseFrame(head); err != nil {
		return h, nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	all, err := c.read(at, frameSize+int64(h.stored))
	if errors.Is(err, errShort) && at+frameSize+int64(h.stored) > c.size {
		return h, nil, fmt.Errorf("%w: a block of %d bytes, of which the file has %d", errDamaged,
			h.stored, c.size-at-frameSize)
	}
	if err != nil {
		return h, nil, err
	}
	stored = all[frameSize:]
	want := binary.LittleEndian.Uint32(all[frameSize-4:])
	if got := sum(c.sum, all[:frameSize-4], stored); got != want {
		return h, nil, fmt.Errorf("%w: checksum %08x, computed %08x", errDamaged, want, got)
	}
	return h, stored, nil
}

// blocks gives all blocks that either copy has to each.
func (r *reader) blocks(each func(r *reader, h *frame, stored []byte) error) error {
	at, number, entries := int64(headerSize), uint32(0), uint64(0)
	for {
		h, stored, ok, err := r.readFromEither(at, number)
		if err != nil {
			return err
		}
		if !ok {
			next, n, found, err := r.search(at+1, number)
			if err != nil {
				return err
			}
			if !found {
				r.missingEnd(entries)
				return nil
			}
			r.lose(int64(n.first - entries))
			at, number, entries = next, n.number, n.first
			continue
		}
		if h.end {
			r.checkEnd(at + frameSize)
			return nil
		}
		if err := each(r, &h, stored); err != nil {
			return err
		}
		at += frameSize + int64(h.stored)
		number, entries = number+1, entries+uint64(h.entries)
	}
}

// readFromEither reads a block from both copies and returns it from one that has it.
func (r *reader) readFromEither(at int64, number uint32) (h frame, stored []byte,
	ok bool, err error) {
	for _, c := range r.copies {
		if c.over {
			continue
		}
		n, data, err := c.block(at)
		if err == nil && n.number != number {
			err = fmt.Errorf("%w: block %d in place of %d", errDamaged, n.number, number)
		}
		switch {
		case err == nil:
			r.report.Bytes += frameSize + int64(n.stored)
			if !ok {
				h, ok = n, true
				r.buf = append(r.buf[:0], data...)
			}
		case errors.Is(err, errDamaged):
			r.bad(c, at, frameSize, err.Error())
		default:
			if err := r.noteFailure(c, at, frameSize, err); err != nil {
				return h, nil, false, err
			}
		}
	}
	return h, r.buf, ok, nil
}

// search looks in both copies for the next whole block behind one that is lost.
func (r *reader) search(from int64, number uint32) (at int64, h frame, found bool, err error) {
	for _, c := range r.copies {
		if c.over {
			continue
		}
		for off := from; off+frameSize <= c.size && (!found || off < at); {
			src, err := c.read(off, min(window, c.size-off))
			if errors.Is(err, syscall.EIO) {
				off += 4 << 10
				continue
			}
			if err != nil {
				return 0, h, false, err
			}
			i := nextMark(src)
			if i < 0 {
				off += max(int64(len(src))-3, 1)
				continue
			}
			off += int64(i)
			n, _, blockErr := c.block(off)
			if blockErr == nil && n.number >= number && (!found || off < at) {
				at, h, found = off, n, true
				break
			}
			off++
		}
	}
	return at, h, found, nil
}

// nextMark returns where the next block may begin, -1 for nowhere.
func nextMark(src []byte) int {
	i, j := bytes.Index(src, blockMark[:]), bytes.Index(src, endMark[:])
	if i < 0 || j >= 0 && j < i {
		return j
	}
	return i
}

// lose notes entries that neither copy has.
func (r *reader) lose(entries int64) {
	r.report.Lost = true
	if r.report.LostEntries >= 0 {
		r.report.LostEntries += entries
	}
}

// missingEnd ends a file of which neither copy has the end.
func (r *reader) missingEnd(entries uint64) {
	switch n := r.file.Items; {
	case n == math.MaxInt64:
		r.report.Lost, r.report.LostEntries = true, -1
	case int64(entries) < n:
		r.lose(n - int64(entries))
	}
}

// checkEnd looks whether anything stands behind the end, which is at an offset.
func (r *reader) checkEnd(at int64) {
	for _, c := range r.copies {
		if !c.over && c.size > at {
			r.bad(c, at, c.size-at, "bytes behind the end")
		}
	}
}
