// Package zstd compresses blocks of files. It stands around github.com/klauspost/compress/zstd,
// so that one place decides on level, memory and limits: no goroutine is started, equal bytes
// compress to equal bytes, and nothing is decompressed beyond the length that the caller allows.
package zstd

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// MaxLength is the longest block that is compressed, in bytes.
const MaxLength = 1 << 20

var errLength = errors.New("zstd: the block does not have the length that it says")

// Encoder compresses. It holds some MiB of scratch memory, and is not for concurrent use.
type Encoder struct {
	enc   *zstd.Encoder
	quick *zstd.Encoder
	tried []byte
}

// encoders are those that were released: their tables of 5 MiB take longer to make than a small
// file to compress.
var encoders = sync.Pool{New: func() any {
	return &Encoder{enc: newEncoder(zstd.SpeedBetterCompression), quick: newEncoder(zstd.SpeedDefault)}
}}

// NewEncoder returns an Encoder, which may be one that was released.
func NewEncoder() *Encoder { return encoders.Get().(*Encoder) }

// Release lets another caller have e, which must not be used any more.
func (e *Encoder) Release() { encoders.Put(e) }

// NewQuickEncoder returns an Encoder for what is soon written again: it takes a third of the time.
func NewQuickEncoder() *Encoder {
	enc := newEncoder(zstd.SpeedFastest)
	return &Encoder{enc: enc, quick: enc}
}

func newEncoder(level zstd.EncoderLevel) *zstd.Encoder {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level),
		zstd.WithWindowSize(64<<10), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true),
		// without it, quick levels give bytes up in which nothing repeats
		zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return enc
}

// Append appends src, of at most MaxLength bytes, in compressed form to dst.
func (e *Encoder) Append(dst, src []byte) []byte { return e.enc.EncodeAll(src, dst) }

const (
	// shrinksBy is the share of its bytes that a quick compression has to save.
	shrinksBy = 200
	// shrinksMin bytes are needed for a quick compression to tell anything.
	shrinksMin = 1 << 10
)

// Shrinks reports whether src looks as if Append made it shorter, or is short. Where it is false,
// that took a tenth of the time of Append.
func (e *Encoder) Shrinks(src []byte) bool {
	if len(src) < shrinksMin {
		return true
	}
	e.tried = e.quick.EncodeAll(src, e.tried[:0])
	return len(e.tried) < len(src)-len(src)/shrinksBy
}

// decoders is shared by all callers, as a decoder has some ten KiB of tables that mean nothing
// from one block to the next.
var decoders = sync.Pool{New: func() any {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxLength), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return dec
}}

// Decode decompresses src into all of dst, and nothing beyond. A block of another length is an
// error, and so are bytes that Append did not make.
func Decode(dst, src []byte) error {
	dec := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(dec)
	out, err := dec.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	if len(out) != len(dst) {
		return errLength
	}
	return nil
}
