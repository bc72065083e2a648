package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// frameHeader is the number of bytes before the payload of a frame.
const frameHeader = 4

// ErrIncomplete is returned by ParseFrame when src ends inside a frame.
var ErrIncomplete = errors.New("the frame is not complete")

// readStep bounds what ReadFrame allocates ahead of the bytes that arrived.
const readStep = 64 << 10

// AppendFrame appends payload as a frame: its length as a big-endian u32, then itself.
func AppendFrame(dst, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(dst, payload...)
}

// BeginFrame appends room for the length of a frame. The caller appends the payload to out
// and then calls EndFrame with mark. That saves the copy which AppendFrame makes.
func BeginFrame(dst []byte) (out []byte, mark int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

// EndFrame writes the length of the frame that BeginFrame began at mark, and that ends with
// dst, into dst.
func EndFrame(dst []byte, mark int) {
	binary.BigEndian.PutUint32(dst[mark:], uint32(len(dst)-mark-frameHeader))
}

// ParseFrame splits the first frame from src: its payload, and what is behind it. The error
// is ErrIncomplete if src ends inside the frame, and wraps ErrTooLarge if the payload is
// longer than limit bytes. rest is src after an error.
func ParseFrame(src []byte, limit int) (payload, rest []byte, err error) {
	if len(src) < frameHeader {
		return nil, src, ErrIncomplete
	}
	n := binary.BigEndian.Uint32(src)
	if err := checkFrame(n, limit); err != nil {
		return nil, src, err
	}
	if uint64(len(src)-frameHeader) < uint64(n) {
		return nil, src, ErrIncomplete
	}
	end := frameHeader + int(n)
	return src[frameHeader:end:end], src[end:], nil
}

// FrameSize returns the length of the frame that src begins with, its header included, or as far
// as it is known: what src has, and at least the header.
func FrameSize(src []byte) int {
	if len(src) < frameHeader {
		return frameHeader
	}
	return frameHeader + int(binary.BigEndian.Uint32(src))
}

// ReadFrame reads one frame from r and returns its payload, in the memory of buf or, if that
// is too small, in new memory that grows as the payload arrives. The content of buf is
// overwritten. A caller that reads several frames passes the last payload as the next buf.
// Nothing beyond the frame is read.
//
// The error is io.EOF if r ends before the frame. It wraps io.ErrUnexpectedEOF if r ends
// inside the frame, and ErrTooLarge if the payload is longer than limit bytes. Other errors
// are those of r.
func ReadFrame(r io.Reader, buf []byte, limit int) ([]byte, error) {
	if cap(buf) < frameHeader {
		buf = make([]byte, 0, 512)
	}
	head := buf[:frameHeader]
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if err := checkFrame(size, limit); err != nil {
		return nil, err
	}
	n := int(size)
	buf = buf[:0]
	for len(buf) < n {
		step := min(n-len(buf), max(readStep, len(buf)))
		have := len(buf)
		if cap(buf) < have+step {
			grown := make([]byte, have, have+step)
			copy(grown, buf)
			buf = grown
		}
		buf = buf[:have+step]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("frame of %d bytes: %w", n, err)
		}
	}
	return buf, nil
}

// isText reports whether the bytes of a length are printable letters.
func isText(n uint32) bool {
	for _, b := range binary.BigEndian.AppendUint32(nil, n) {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return true
}

func checkFrame(n uint32, limit int) error {
	if uint64(n) > uint64(limit) && isText(n) {
		return fmt.Errorf("%w: a frame of %d bytes, which are the letters %q: this port takes the "+
			"binary protocol; lines of Graphite go to graphite.addr, syslog to syslog.addr, HTTP to "+
			"http.addr", ErrTooLarge, n, binary.BigEndian.AppendUint32(nil, n))
	}
	if uint64(n) > uint64(limit) {
		return fmt.Errorf("%w: a frame of %d bytes, the limit is %d: split the request", ErrTooLarge, n,
			limit)
	}
	return nil
}
