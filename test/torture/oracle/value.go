package oracle

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Kind is the shape of a series' values. Every write has a number; the value is
// computed from the series and that number, so that most values exist only once
// and an old or foreign one is recognized.
type Kind uint8

const (
	Counted Kind = iota // series and number in one integer
	Decimal             // two decimals, a float
	Random              // 55 random bits
	Slow                // changes every 64 writes
	Small               // 0 to 999
	kinds
)

// mix spreads the bits of x (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const integer = 1 << 56

// word is the point on the wire of write n of series id.
func word(k Kind, id, n uint32) uint64 {
	switch k {
	case Decimal:
		v := float64(int64(id)*100_000_000+int64(n)) / 100
		return bits.RotateLeft64(math.Float64bits(v), -1) ^ 1<<63
	case Random:
		return integer | mix(uint64(id)<<32|uint64(n))>>9
	case Slow:
		return integer | uint64(id)<<32 | uint64(n>>6)
	case Small:
		return integer | mix(uint64(id)<<32|uint64(n))%1000
	default:
		return integer | uint64(id)<<32 | uint64(n)
	}
}

// Number is the value of a point as a query shows it.
func Number(w uint64) float64 {
	if w>>56 >= 4 {
		return math.Float64frombits(bits.RotateLeft64(w^1<<63, 1))
	}
	return float64(int64(w<<8) >> 8)
}

// timestamp is the timestamp sent with write n of series id: somewhere in its slot.
func timestamp(b *Bucket, slot int64, id, n uint32) uint64 {
	width := uint64(b.Resolution) * 1e6
	return uint64(slot)*width + mix(uint64(n)<<32|uint64(id))%width
}

// appendPoint appends write n as it goes over the wire.
func (s *Series) appendPoint(dst []byte, slot int64, n uint32) []byte {
	dst = binary.BigEndian.AppendUint64(dst, word(s.Kind, s.ID, n))
	if s.Bucket.HPTS {
		dst = binary.BigEndian.AppendUint64(dst, timestamp(s.Bucket, slot, s.ID, n))
	}
	return dst
}
