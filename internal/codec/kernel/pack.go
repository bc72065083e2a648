package kernel

import "encoding/binary"

// Pack writes values as fields of width bits, 1 to 64, which no value exceeds, one
// behind the other and the lowest bits first. Whole 64-bit words go to out, stride
// bytes apart; the bits that fill none are returned.
func Pack(out []byte, stride int, values []uint64, width uint) (rest uint64) {
	if words := len(values) * int(width) >> 6; words > 0 && len(out) < (words-1)*stride+8 {
		panic("kernel: fields outside of their bytes")
	}
	rest, done := pack(out, stride, values, width)
	return packGo(out, stride, values, width, rest, done)
}

// packGo goes on behind the first done values, of which rest fills no word.
func packGo(out []byte, stride int, values []uint64, width uint, rest uint64, done int) uint64 {
	n := uint(done) * width
	at := int(n>>6) * stride
	n &= 63
	for _, v := range values[done:] {
		rest |= v << (n & 63)
		n += width
		if n >= 64 {
			binary.LittleEndian.PutUint64(out[at:], rest)
			at += stride
			n -= 64
			rest = v >> (width - n)
		}
	}
	return rest
}
