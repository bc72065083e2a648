// Package diskfile reads files of disk images, raw ones and qcow2, refuses those of other forms
// with the command that converts them, and writes raw ones with holes. Source: QEMU's
// docs/interop/qcow2.txt.
package diskfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrLength is the error of an image that is not as long as was said.
var ErrLength = errors.New("the image has not the length that was said")

// Disk is a disk image that is read.
type Disk struct {
	Size int64 // of the disk
	io.ReaderAt
	file *os.File
}

// Close closes the file.
func (d *Disk) Close() error { return d.file.Close() }

// Open opens a file: qcow2 if it begins so, else raw. Files of other forms are ErrRefused, and the
// error has the command that converts them; those of this one that are damaged are ErrDamaged.
func Open(path string) (*Disk, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	d, err := open(f)
	if err == nil {
		return d, nil
	}
	var of *refusal
	if errors.As(err, &of) {
		err = &refusal{of.why, of.command, path}
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
}

func open(f *os.File) (*Disk, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	d := &Disk{Size: info.Size(), ReaderAt: f, file: f}
	head := make([]byte, len(magic))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if isQcow2(head) {
		q, err := openQcow2(f)
		if err != nil {
			return nil, err
		}
		d.Size, d.ReaderAt = q.size, q
	}
	return d, d.foreign()
}

// foreign refuses a disk whose first or last bytes are those of something else.
func (d *Disk) foreign() error {
	first, last := make([]byte, min(d.Size, FirstBytes)), make([]byte, min(d.Size, LastBytes))
	if _, err := d.ReadAt(first, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := d.ReadAt(last, d.Size-int64(len(last))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return Foreign(first, last)
}

// block is what is written at once, and left out where it has no other bytes than 0.
const block = 64 << 10

// Write writes a raw file, which is there only when all of the disk has come: size bytes, behind
// which sum says whether they are the right ones.
func Write(path string, size int64, from io.Reader, sum func() error) (err error) {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err == nil {
			err = os.Rename(part, path)
		} else {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	if err := f.Truncate(size); err != nil {
		return err
	}
	if err := Fill(f, size, from); err != nil {
		return err
	}
	if err := sum(); err != nil {
		return err
	}
	return f.Sync()
}

// Fill writes size bytes into a file of zeros, and leaves out what has no other bytes. ErrLength if
// from has less or more.
func Fill(f io.WriterAt, size int64, from io.Reader) error {
	buf, zeros := make([]byte, block), make([]byte, block)
	for at := int64(0); at < size; {
		b := buf[:min(block, size-at)]
		if n, err := io.ReadFull(from, b); err != nil {
			return fmt.Errorf("%w: it ends after %d of %d bytes: %w", ErrLength, at+int64(n), size, err)
		}
		if !bytes.Equal(b, zeros[:len(b)]) {
			if _, err := f.WriteAt(b, at); err != nil {
				return err
			}
		}
		at += int64(len(b))
	}
	if n, err := io.ReadFull(from, buf[:1]); n > 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it is longer than the %d bytes that were announced", ErrLength, size)
	}
	return nil
}
