package pool

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// A stream is frames: a length of 4 bytes, big-endian, 1 to maxFrame, and so many bytes. Length 0
// ends it, with the SHA-256 of all that came before. In front is what kind of pool wrote it.
const maxFrame = 1 << 20

// frames writes a stream.
type frames struct {
	to  io.Writer
	sum hash.Hash
}

// newFrames begins a stream of a kind of pool, which has eight letters.
func newFrames(to io.Writer, kind string) (*frames, error) {
	f := &frames{to: to, sum: sha256.New()}
	return f, f.put([]byte(kind))
}

func (f *frames) put(b []byte) error {
	_, _ = f.sum.Write(b) // it never fails
	_, err := f.to.Write(b)
	return err
}

// Write writes frames.
func (f *frames) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), maxFrame)]
		if err := f.put(binary.BigEndian.AppendUint32(nil, uint32(len(part)))); err != nil {
			return n, err
		}
		if err := f.put(part); err != nil {
			return n, err
		}
		n, p = n+len(part), p[len(part):]
	}
	return n, nil
}

// end ends the stream.
func (f *frames) end() error {
	if err := f.put(make([]byte, 4)); err != nil {
		return err
	}
	_, err := f.to.Write(f.sum.Sum(nil))
	return err
}

// unframed reads what was written into a stream. At its end it returns io.EOF if the sum is right,
// else ErrStream.
type unframed struct {
	from io.Reader
	sum  hash.Hash
	left uint32 // of the frame
	err  error
}

func newUnframed(from io.Reader, kind string) (*unframed, error) {
	u := &unframed{from: from, sum: sha256.New()}
	got := make([]byte, len(kind))
	if err := u.read(got); err != nil {
		return nil, err
	}
	if !bytes.Equal(got, []byte(kind)) {
		return nil, fmt.Errorf("it begins with %q, not with %q: %w", got, kind, ErrStream)
	}
	return u, nil
}

// read reads all of dst, or says that the stream is damaged.
func (u *unframed) read(dst []byte) error {
	if _, err := io.ReadFull(u.from, dst); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("it ends early: %w", ErrStream)
		}
		return err
	}
	_, _ = u.sum.Write(dst) // it never fails
	return nil
}

// Read implements io.Reader.
func (u *unframed) Read(dst []byte) (int, error) {
	for u.err == nil && u.left == 0 {
		u.err = u.next()
	}
	if u.err != nil || len(dst) == 0 {
		return 0, u.err
	}
	dst = dst[:min(len(dst), int(u.left))]
	if u.err = u.read(dst); u.err != nil {
		return 0, u.err
	}
	u.left -= uint32(len(dst))
	return len(dst), nil
}

// next reads the length of a frame, or the end.
func (u *unframed) next() error {
	var length [4]byte
	if err := u.read(length[:]); err != nil {
		return err
	}
	u.left = binary.BigEndian.Uint32(length[:])
	if u.left > maxFrame {
		return fmt.Errorf("a frame of %d bytes: %w", u.left, ErrStream)
	}
	if u.left > 0 {
		return nil
	}
	want := u.sum.Sum(nil)
	got := make([]byte, len(want))
	if err := u.read(got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("its sum is wrong: %w", ErrStream)
	}
	return io.EOF
}
