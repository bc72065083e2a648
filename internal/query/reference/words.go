package reference

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// A word is a point in memory (docs/protocol.md, "Points, names, slots"): 0 is unset.
// With a top byte of 1 it is an integer of 56 bits, with one of 4 or more a float: the
// bits rotated right by one, the top bit turned over.
const unset = 0

func isFloat(w uint64) bool { return w>>56 >= 4 }

func whole(w uint64) int64 { return int64(w<<8) >> 8 }

func number(w uint64) float64 {
	if isFloat(w) {
		return math.Float64frombits(bits.RotateLeft64(w^1<<63, 1))
	}
	return float64(whole(w))
}

// partsOf cuts a key, each part of which has its length before it.
func partsOf(key []byte) []string {
	parts := []string{}
	for len(key) > 0 {
		n := 1 + int(key[0])
		parts = append(parts, string(key[1:n]))
		key = key[n:]
	}
	return parts
}

// identity is what a series is known by on every node: the hash of its bucket and key.
type identity struct {
	high, low uint64
	known     bool // it is one metric
}

func identityOf(bucket uint64, key []byte) identity {
	h := xxh3.Hash128(append(binary.BigEndian.AppendUint64(nil, bucket), key...))
	return identity{high: h.Hi, low: h.Lo, known: true}
}
