package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync/atomic"
)

// The kinds of frames.
const (
	kindData  = 1 // bytes of the caller
	kindAlive = 2 // empty: the node is there, though it has nothing to say
)

const (
	headerSize = 9 // length, kind, checksum

	// keptBuffer is what a buffer keeps while its connection is idle.
	keptBuffer = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errFrame is wrapped by the errors of bytes that are not a frame.
var errFrame = errors.New("damaged frame")

// appendHeader appends the header of a frame.
func appendHeader(dst []byte, kind byte, body []byte) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	dst = append(dst, kind)
	return binary.BigEndian.AppendUint32(dst, checksum(dst[at:], body))
}

// checksum covers the length and the kind as well: a frame of another length is another frame.
func checksum(head, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body)
}

// frames reads frames into one buffer, which the next frame overwrites.
type frames struct {
	src  *bufio.Reader
	most int // bytes of a body
	head [headerSize]byte
	body []byte
	held *atomic.Int64 // bytes of both buffers, for Stats
}

func newFrames(src io.Reader, most, buffer int, held *atomic.Int64) *frames {
	held.Store(int64(buffer))
	return &frames{src: bufio.NewReaderSize(src, buffer), most: most, held: held}
}

// next returns the next frame. Its length is checked before room for it is made.
func (f *frames) next() (kind byte, body []byte, err error) {
	head := &f.head
	if _, err := io.ReadFull(f.src, head[:]); err != nil {
		return 0, nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	kind = head[4]
	switch {
	case kind != kindData && kind != kindAlive, kind == kindAlive && length > 0:
		return 0, nil, fmt.Errorf("%w: kind %d with %d bytes", errFrame, kind, length)
	case length > int64(f.most):
		return 0, nil, fmt.Errorf("%w: %d bytes are more than %d", errFrame, length, f.most)
	}
	f.fit(int(length))
	if _, err := io.ReadFull(f.src, f.body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	if checksum(head[:5], f.body) != binary.BigEndian.Uint32(head[5:]) {
		return 0, nil, fmt.Errorf("%w: checksum", errFrame)
	}
	return kind, f.body, nil
}

// fit makes the body as long as a frame. A large buffer goes with the first empty frame, so an idle
// connection does not keep it.
func (f *frames) fit(length int) {
	if length == 0 && cap(f.body) > keptBuffer {
		f.body = nil
	}
	if length > cap(f.body) {
		f.body = make([]byte, length, min(f.most, max(length, 2*cap(f.body))))
	}
	f.body = f.body[:length]
	f.held.Store(int64(f.src.Size() + cap(f.body)))
}

// wholeFrames counts the frames that lie wholly within the first n bytes of a batch, and returns
// where the last of them ends.
func wholeFrames(batch []byte, n int) (count, end int) {
	for end+headerSize <= n {
		next := end + headerSize + int(binary.BigEndian.Uint32(batch[end:]))
		if next > n {
			break
		}
		count, end = count+1, next
	}
	return count, end
}
