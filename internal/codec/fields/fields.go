// Package fields reads the fields of an encoding one after the other, off bytes that may be
// damaged.
package fields

import "encoding/binary"

// Reader reads fields from the front of Src. The first malformed field sets Bad and leaves
// nothing to read: all fields from it on are zero, or empty. So the owner may read a whole
// record and look at Bad once, as long as what it allocates and how often it loops is bounded
// by what it read.
type Reader struct {
	Src []byte // what is left
	Bad bool   // a field was malformed
}

// Check makes the present field malformed unless it is ok: for owners that know more of its
// values.
func (r *Reader) Check(ok bool) {
	if !ok {
		r.fail()
	}
}

func (r *Reader) fail() { r.Src, r.Bad = nil, true }

// IsDone reports whether all of Src was read and no field was malformed.
func (r *Reader) IsDone() bool { return len(r.Src) == 0 && !r.Bad }

// U8 reads a byte.
func (r *Reader) U8() byte {
	if len(r.Src) == 0 {
		r.Bad = true
		return 0
	}
	b := r.Src[0]
	r.Src = r.Src[1:]
	return b
}

// U64 reads 8 bytes, the lowest first.
func (r *Reader) U64() uint64 {
	if b := r.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uvarint reads what binary.AppendUvarint appends.
func (r *Reader) Uvarint() uint64 {
	if len(r.Src) > 0 && r.Src[0] < 0x80 {
		v := uint64(r.Src[0])
		r.Src = r.Src[1:]
		return v
	}
	return r.uvarint()
}

// uvarint is Uvarint of any length.
func (r *Reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.Src)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.Src = r.Src[n:]
	return v
}

// UpTo reads as Uvarint does. A larger number than most is malformed.
func (r *Reader) UpTo(most uint64) uint64 {
	v := r.Uvarint()
	if v > most {
		r.fail()
		return 0
	}
	return v
}

// Varint reads what binary.AppendVarint appends.
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// Take returns the next n bytes, as a part of Src. Fewer, or a negative n, are malformed.
func (r *Reader) Take(n int) []byte {
	if uint(n) > uint(len(r.Src)) {
		r.fail()
		return nil
	}
	b := r.Src[:n:n]
	r.Src = r.Src[n:]
	return b
}

// Bytes reads a length, as Uvarint does, and returns so many bytes, as a part of Src. A length
// of more than most, or than is left, is malformed.
func (r *Reader) Bytes(most int) []byte {
	return r.Take(int(r.UpTo(uint64(min(most, len(r.Src))))))
}

// Rest returns all that is left, as a part of Src.
func (r *Reader) Rest() []byte {
	b := r.Src
	r.Src = nil
	return b
}
