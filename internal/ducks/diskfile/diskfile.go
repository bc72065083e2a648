// Package diskfile reads files of disk images: raw ones and qcow2, and writes raw ones with holes. It is the one package
// that imports lima-vm/go-qcow2reader. Source: QEMU's docs/interop/qcow2.txt.
package diskfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	qcow2reader "github.com/lima-vm/go-qcow2reader"
	"github.com/lima-vm/go-qcow2reader/image"
	"github.com/lima-vm/go-qcow2reader/image/qcow2"
)

// ErrRefused is the error of a file that names others: what it says would be read from wherever it says.
var ErrRefused = errors.New("it is not taken")

// ErrLength is the error of an image that is not as long as was said.
var ErrLength = errors.New("the image has not the length that was said")

// Disk is a disk image that is read.
type Disk struct {
	Size int64 // of the disk
	io.ReaderAt
	close func() error
}

// Close closes the file.
func (d *Disk) Close() error { return d.close() }

// The head of qcow2, and where in it other files are named.
const (
	magic         = "QFI\xfb"
	headBytes     = 80
	backingAt     = 8  // 8 bytes: where the name of the backing file is; 0: there is none
	featuresAt    = 72 // 8 bytes, from version 3 on: incompatible features
	versionAt     = 4
	bitsAt        = 20 // 4 bytes: the bits of a cluster
	tableSizeAt   = 36 // 4 bytes: entries of the first table
	tableAt       = 40 // 8 bytes: where that is
	externalData  = 1 << 2
	mostDiskBytes = 1 << 50
)

// Open opens a file: qcow2 if it begins so, else raw.
func Open(path string) (*Disk, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	d, err := open(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return d, nil
}

func open(f *os.File) (*Disk, error) {
	head := make([]byte, headBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.HasPrefix(head[:n], []byte(magic)) {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		return &Disk{Size: info.Size(), ReaderAt: f, close: f.Close}, nil
	}
	if n < headBytes {
		return nil, errors.New("it begins as qcow2 and is too short")
	}
	if binary.BigEndian.Uint64(head[backingAt:]) != 0 {
		return nil, fmt.Errorf("%w: it has a backing file: convert it with qemu-img convert first", ErrRefused)
	}
	if binary.BigEndian.Uint32(head[versionAt:]) > 2 && binary.BigEndian.Uint64(head[featuresAt:])&externalData != 0 {
		return nil, fmt.Errorf("%w: its data is in another file: convert it with qemu-img convert first", ErrRefused)
	}
	if err := plausible(f, head); err != nil {
		return nil, err
	}
	q, err := qcow2reader.OpenWithType(f, qcow2.Type)
	if err != nil {
		return nil, err
	}
	if err := readable(q); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return &Disk{Size: q.Size(), ReaderAt: q, close: func() error {
		if err := q.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
		return nil
	}}, nil
}

// plausible refuses a head by which a small file would take much memory. The bounds are those of QEMU.
func plausible(f *os.File, head []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	bits, entries, at := binary.BigEndian.Uint32(head[bitsAt:]), binary.BigEndian.Uint32(head[tableSizeAt:]), binary.BigEndian.Uint64(head[tableAt:])
	if size := uint64(info.Size()); bits < 9 || bits > 21 || entries > 4<<20 || at > size || uint64(entries)*8 > size-at {
		return fmt.Errorf("as qcow2 it has clusters of 2^%d bytes and a table of %d entries at %d, in %d bytes", bits, entries, at, size)
	}
	return nil
}

func readable(q image.Image) error {
	if err := q.Readable(); err != nil {
		return err
	}
	if s := q.Size(); s <= 0 || s > mostDiskBytes {
		return fmt.Errorf("a disk of %d bytes", s)
	}
	return nil
}

// block is what is written at once, and left out where it has no other bytes than 0.
const block = 64 << 10

// Write writes a raw file, which is there only when all of the disk has come: size bytes, behind which sum says whether they
// are the right ones.
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

// Fill writes size bytes into a file of zeros, and leaves out what has no other bytes. ErrLength if from has less or more.
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
