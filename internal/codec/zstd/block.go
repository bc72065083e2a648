package zstd

import (
	"encoding/binary"
	"errors"

	"dalmatiner/internal/codec/fields"
)

// The first byte of a block says how its content is stored.
const (
	Plain  = 0 // as it is
	Packed = 1 // uvarint plain │ uvarint length of the rest │ plain bytes │ the rest in zstd
)

// ErrBlock is the error for bytes that are no block.
var ErrBlock = errors.New("the stored form of the block is none, or it is cut short")

// AppendBlock appends content in the shortest of its forms. Its first plain bytes may be random,
// so that they stand outside of the frame, unless they are shorter within. Without an encoder
// nothing is compressed.
func AppendBlock(dst, content []byte, plain int, enc *Encoder) []byte {
	start := len(dst)
	dst = append(append(dst, Plain), content...)
	if enc == nil {
		return dst
	}
	for {
		end := len(dst)
		dst = append(dst, Packed)
		dst = binary.AppendUvarint(dst, uint64(plain))
		dst = binary.AppendUvarint(dst, uint64(len(content)-plain))
		dst = append(dst, content[:plain]...)
		dst = enc.Append(dst, content[plain:])
		if shorter := dst[end:]; len(shorter) < end-start {
			dst = append(dst[:start], shorter...)
		} else {
			dst = dst[:end]
		}
		if plain == 0 {
			return dst
		}
		plain = 0
	}
}

// Content returns the content of a block, of at most limit bytes: a part of src, or
// what it decompresses to, in dst, which is grown as needed and returned as well.
func Content(dst, src []byte, limit int) (content, buf []byte, err error) {
	if len(src) == 0 {
		return nil, dst, ErrBlock
	}
	form, src := src[0], src[1:]
	switch {
	case form == Plain && len(src) <= limit:
		return src, dst, nil
	case form != Packed:
		return nil, dst, ErrBlock
	}
	r := fields.Reader{Src: src}
	plain := int(r.UpTo(uint64(limit)))
	length := plain + int(r.UpTo(uint64(limit-plain)))
	front := r.Take(plain)
	if r.Bad {
		return nil, dst, ErrBlock
	}
	if cap(dst) < length {
		dst = make([]byte, length)
	}
	dst = dst[:length]
	copy(dst, front)
	if err := Decode(dst[plain:], r.Src); err != nil {
		return nil, dst, err
	}
	return dst, dst, nil
}
