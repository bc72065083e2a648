package pool

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const xfsMagic = 0x58465342

// reflink is a pool of files that share extents.
type reflink struct{ directory }

func openReflink(dir string) (*reflink, error) {
	d, err := openDirectory(dir, "", xfsMagic,
		"it is not on xfs, which reflink: needs: make one with mkfs.xfs")
	if err != nil {
		return nil, err
	}
	p := &reflink{d}
	left, err := entries(filepath.Join(dir, makingDir))
	for _, n := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, makingDir, n)))
	}
	if err != nil {
		return nil, err
	}
	return p, p.try()
}

// try reports whether files can be cloned.
func (p *reflink) try() error {
	tmp, err := p.making()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	one := filepath.Join(tmp, "one")
	if err := os.WriteFile(one, make([]byte, 4096), 0o600); err != nil {
		return err
	}
	if err := cloneFile(one, filepath.Join(tmp, "two")); err != nil {
		return fmt.Errorf("pool %s: files cannot be cloned: make the file system with mkfs.xfs -m "+
			"reflink=1: %w", p.dir, err)
	}
	return nil
}

// cloneFile makes a file with all extents of another one, on disk. What was written to that one
// counts.
func cloneFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
	return errors.Join(err, dst.Sync(), dst.Close())
}

// make lets fill make a file, and gives it its path.
func (p *reflink) make(path string, fill func(made string) error) error {
	tmp, err := p.making()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	made := filepath.Join(tmp, "disk")
	if err := fill(made); err != nil {
		return err
	}
	return put(made, path)
}

func (p *reflink) Create(_ context.Context, image string, size int64) error {
	if err := errors.Join(p.fresh(p.image(image), image), checkSize(size)); err != nil {
		return err
	}
	return p.make(p.image(image), func(made string) error { return writeEmpty(made, size) })
}

// writeEmpty makes a file of zeros that takes no space.
func writeEmpty(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

func (p *reflink) Freeze(_ context.Context, image string, as Snapshot) error {
	if err := errors.Join(p.there(p.image(image), image),
		p.fresh(p.snapshot(as), as.Image, as.Name)); err != nil {
		return err
	}
	return p.make(p.snapshot(as), func(made string) error {
		if err := cloneFile(p.image(image), made); err != nil {
			return err
		}
		var id [16]byte
		_, _ = rand.Read(id[:]) // it never fails
		return seal(made, id)
	})
}

// idName is the attribute with the id of a snapshot, by which Receive finds what a stream begins
// with.
const idName = "user.ducks.id"

// seal makes a file a snapshot.
func seal(path string, id [16]byte) error {
	if err := unix.Setxattr(path, idName, id[:], 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o400), f.Sync(), f.Close())
}

func idOf(path string) (id [16]byte, err error) {
	n, err := unix.Getxattr(path, idName, id[:])
	if err == nil && n != len(id) {
		err = errors.New("it is damaged")
	}
	if err != nil {
		err = fmt.Errorf("the id of %s: %w", path, err)
	}
	return id, err
}

func (p *reflink) Clone(_ context.Context, of Snapshot, image string) error {
	if err := errors.Join(p.there(p.snapshot(of), of.Image, of.Name),
		p.fresh(p.image(image), image)); err != nil {
		return err
	}
	return p.make(p.image(image), func(made string) error { return cloneFile(p.snapshot(of), made) })
}

func (p *reflink) Rollback(_ context.Context, image string, to Snapshot) error {
	if err := errors.Join(p.there(p.image(image), image),
		p.there(p.snapshot(to), to.Image, to.Name)); err != nil {
		return err
	}
	tmp, err := p.making()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	made := filepath.Join(tmp, "disk")
	if err := cloneFile(p.snapshot(to), made); err != nil {
		return err
	}
	return exchange(made, p.image(image))
}

func (p *reflink) Delete(_ context.Context, image string) error {
	if err := p.there(p.image(image), image); err != nil {
		return err
	}
	return errors.Join(os.Remove(p.image(image)), SyncDir(filepath.Join(p.dir, imagesDir)))
}

func (p *reflink) DeleteSnapshot(_ context.Context, s Snapshot) error {
	if err := p.there(p.snapshot(s), s.Image, s.Name); err != nil {
		return err
	}
	return errors.Join(os.Remove(p.snapshot(s)), SyncDir(filepath.Join(p.dir, snapshotsDir)))
}

func (p *reflink) Limits() bool { return false }

func (p *reflink) Limit(context.Context, string, int64) error {
	return fmt.Errorf("a limit of one image on xfs: %w", ErrUnsupported)
}

// reflinkKind begins a stream. In it are the size (8 bytes), the id of the snapshot that it begins
// with (16, zeros for none) and of the one that it makes (16), then spans, ascending: offset (8),
// length (8), 1 for zeros and 0 for data (1), and the data. A span of length 0 is the last one.
const reflinkKind = "ducks-r1"

const (
	reflinkHeader = 8 + 16 + 16
	spanHeader    = 8 + 8 + 1
)

// plan returns where a snapshot differs from another one.
func (p *reflink) plan(from, to Snapshot) (f *os.File, list []span, header []byte, err error) {
	if err := p.there(p.snapshot(to), to.Image, to.Name); err != nil {
		return nil, nil, nil, err
	}
	if f, err = os.Open(p.snapshot(to)); err != nil {
		return nil, nil, nil, err
	}
	header, list, err = p.compare(from, f)
	if err != nil {
		_ = f.Close()
		return nil, nil, nil, err
	}
	return f, list, header, nil
}

func (p *reflink) compare(from Snapshot, to *os.File) (header []byte, list []span, err error) {
	b, size, err := extentsOf(to)
	if err != nil {
		return nil, nil, err
	}
	toID, err := idOf(to.Name())
	if err != nil {
		return nil, nil, err
	}
	header = binary.BigEndian.AppendUint64(nil, uint64(size))
	if from == (Snapshot{}) {
		return append(append(header, make([]byte, 16)...), toID[:]...), differences(nil, b, size), nil
	}
	if err := p.there(p.snapshot(from), from.Image, from.Name); err != nil {
		return nil, nil, err
	}
	base, err := os.Open(p.snapshot(from))
	if err != nil {
		return nil, nil, err
	}
	defer base.Close()
	a, baseSize, err := extentsOf(base)
	if err == nil && baseSize != size {
		err = fmt.Errorf("%v and %s: disks of different sizes", from, filepath.Base(to.Name()))
	}
	if err != nil {
		return nil, nil, err
	}
	fromID, err := idOf(base.Name())
	return append(append(header, fromID[:]...), toID[:]...), differences(a, b, size), err
}

func (p *reflink) Delta(_ context.Context, from, to Snapshot) (n int64, err error) {
	f, list, _, err := p.plan(from, to)
	if err != nil {
		return 0, err
	}
	for _, s := range list {
		if !s.zero {
			n += s.length
		}
	}
	return n, f.Close()
}

func (p *reflink) Send(ctx context.Context, from, to Snapshot, w io.Writer) error {
	f, list, header, err := p.plan(from, to)
	if err != nil {
		return err
	}
	defer f.Close()
	return sendSpans(ctx, w, reflinkKind, header, f, func(do func(s span) error) error {
		for _, s := range list {
			if err := do(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// sendSpans writes a stream of a kind: its header, then the spans of a file for which each calls
// do.
func sendSpans(ctx context.Context, w io.Writer, kind string, header []byte, f *os.File,
	each func(do func(s span) error) error) error {
	out, err := newFrames(w, kind)
	if err != nil {
		return err
	}
	if _, err := out.Write(header); err != nil {
		return err
	}
	buf := make([]byte, maxFrame)
	err = each(func(s span) error {
		if err := writeSpan(out, s); err != nil || s.zero {
			return err
		}
		_, err := io.CopyBuffer(out, contextReader{ctx, io.NewSectionReader(f, s.offset, s.length)}, buf)
		return err
	})
	if err == nil {
		err = writeSpan(out, span{}) // the end
	}
	if err != nil {
		return err
	}
	return out.end()
}

// writeSpan writes what stands before the data of a span.
func writeSpan(out io.Writer, s span) error {
	h := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(s.offset)),
		uint64(s.length))
	kind := byte(0)
	if s.zero {
		kind = 1
	}
	_, err := out.Write(append(h, kind))
	return err
}

// contextReader reads until a context ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

func (p *reflink) Receive(ctx context.Context, as Snapshot, r io.Reader) error {
	if err := p.fresh(p.snapshot(as), as.Image, as.Name); err != nil {
		return err
	}
	in, err := newUnframed(contextReader{ctx, r}, reflinkKind)
	if err != nil {
		return err
	}
	size, from, id, err := readHeader(in)
	if err != nil {
		return err
	}
	return p.make(p.snapshot(as), func(made string) error {
		if err := p.begin(made, size, from); err != nil {
			return err
		}
		f, err := os.OpenFile(made, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(apply(f, size, in), f.Sync(), f.Close()); err != nil {
			return err
		}
		return seal(made, id)
	})
}

// readHeader reads what a stream begins with.
func readHeader(in io.Reader) (size int64, from, id [16]byte, err error) {
	header := make([]byte, reflinkHeader)
	if _, err := io.ReadFull(in, header); err != nil {
		return 0, from, id, early(err)
	}
	if size = int64(binary.BigEndian.Uint64(header)); checkSize(size) != nil {
		err = fmt.Errorf("%w: %w", checkSize(size), ErrStream)
	}
	return size, [16]byte(header[8:]), [16]byte(header[24:]), err
}

// begin makes the file to which the spans of a stream are written.
func (p *reflink) begin(made string, size int64, from [16]byte) error {
	if from == ([16]byte{}) {
		return writeEmpty(made, size)
	}
	names, err := entries(filepath.Join(p.dir, snapshotsDir))
	for _, n := range names {
		path := filepath.Join(p.dir, snapshotsDir, n)
		if id, err := idOf(path); err != nil || id != from {
			continue
		}
		if info, err := os.Stat(path); err != nil || info.Size() != size {
			return fmt.Errorf("%s has another size than the stream: %w", n, errors.Join(err, ErrStream))
		}
		return cloneFile(path, made)
	}
	return errors.Join(err, fmt.Errorf("the snapshot that the stream begins with, %x: %w", from,
		ErrUnknown))
}

// apply writes the spans of a stream to a file of a size.
func apply(f *os.File, size int64, in io.Reader) error {
	h := make([]byte, spanHeader)
	buffer := make([]byte, maxFrame)
	for at := int64(0); ; {
		if _, err := io.ReadFull(in, h); err != nil {
			return early(err)
		}
		s := span{int64(binary.BigEndian.Uint64(h)), int64(binary.BigEndian.Uint64(h[8:])), h[16] == 1}
		switch {
		case s.length == 0: // what follows is the sum
			if n, err := in.Read(buffer[:1]); n != 0 || !errors.Is(err, io.EOF) {
				return errors.Join(err, fmt.Errorf("something follows its end: %w", ErrStream))
			}
			return nil
		case h[16] > 1 || s.length < 0 || s.offset < at || s.offset > size-s.length:
			return fmt.Errorf("a span of %d bytes at %d of %d: %w", s.length, s.offset, size, ErrStream)
		}
		at = s.offset + s.length
		if s.zero {
			if err := zero(f, s.offset, s.length); err != nil {
				return err
			}
			continue
		}
		n, err := io.CopyBuffer(io.NewOffsetWriter(f, s.offset), io.LimitReader(in, s.length), buffer)
		if err == nil && n < s.length {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return early(err)
		}
	}
}

// punch makes a hole in a file.
func punch(f *os.File, offset, length int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset,
		length)
}

// zero makes zeros of a part of a file: a hole, where its file system has such.
func zero(f *os.File, offset, length int64) error {
	err := punch(f, offset, length)
	for none := make([]byte, maxFrame); errors.Is(err, unix.EOPNOTSUPP) && length > 0; {
		n := min(length, int64(len(none)))
		if _, err := f.WriteAt(none[:n], offset); err != nil {
			return err
		}
		if offset, length = offset+n, length-n; length == 0 {
			err = nil
		}
	}
	return err
}

// early says of an end in the middle that the stream is damaged.
func early(err error) error {
	if errors.Is(err, ErrStream) || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("it ends early: %w", ErrStream)
}
