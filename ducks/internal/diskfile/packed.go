package diskfile

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// Packed is the content coding of disks that cross a network: in it zeros take next to nothing.
const Packed = "zstd"

// Pack returns what compresses into w until it is closed.
func Pack(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(mostWindow/2))
}

// Unpack returns what Pack was given, of bytes that may be anything else.
func Unpack(r io.Reader) (io.ReadCloser, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}
