package wire

import "encoding/binary"

// reader takes fields off the front of src. After the first field that src
// does not hold it only sets short and returns zeros, so that a decoder checks
// once at its end.
type reader struct {
	src   []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if r.short || len(r.src) < n {
		r.short = true
		return nil
	}
	b := r.src[:n:n]
	r.src = r.src[n:]
	return b
}

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) b8() []byte  { return r.take(int(r.u8())) }
func (r *reader) b16() []byte { return r.take(int(r.u16())) }

// rest takes everything that is left.
func (r *reader) rest() []byte { return r.take(len(r.src)) }

func appendB16(dst, b []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(b)))
	return append(dst, b...)
}

func flagByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
