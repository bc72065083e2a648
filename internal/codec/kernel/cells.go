package kernel

import "encoding/binary"

// Lay lays words over cells, which are at least as many: a cell takes its word
// unless that is 0, or a stale marker and the cell holds a value. It returns how many
// words are 0, how many of the others the cells had already, and how many met another word.
func Lay(cells, words []uint64) (unset, same, other int) {
	cells = cells[:len(words)]
	done := 0
	done, unset, same, other = lay(cells, words)
	for i, w := range words[done:] {
		switch cell := &cells[done+i]; {
		case w == 0:
			unset++
		case *cell == 0:
			*cell = w
		case *cell == w:
			same++
		default:
			if w != stale {
				*cell = w
			}
			other++
		}
	}
	return unset, same, other
}

// IntBits combines words: tags has bits in its upper byte unless all are integers,
// and then the lower 56 of bits are those of all magnitudes together, of a negative
// integer those of its complement.
func IntBits(words []uint64) (tags, bits uint64) {
	tags, bits, done := intBits(words)
	for _, w := range words[done:] {
		tags |= w ^ intTag
		bits |= w ^ uint64(int64(w<<8)>>63)
	}
	return tags, bits
}

// Zigzags writes the zigzag of each integer of words, little-endian in 1, 2 or 4
// bytes, to dst, which is no shorter. Of one that does not fit the upper bytes are
// lost.
func Zigzags(dst []byte, words []uint64, bytes int) {
	dst = dst[:bytes*len(words)]
	done := zigzags(dst, words, bytes)
	words, dst = words[done:], dst[bytes*done:]
	switch bytes {
	case 1:
		for i, w := range words {
			dst[i] = byte(zigzag(w))
		}
	case 2:
		for i, w := range words {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(zigzag(w)))
		}
	case 4:
		for i, w := range words {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(zigzag(w)))
		}
	default:
		panic("kernel: zigzags take 1, 2 or 4 bytes")
	}
}

// zigzag maps the 56-bit integer of a word to a small unsigned one. For other words
// the result means nothing.
func zigzag(w uint64) uint64 {
	v := int64(w<<8) >> 8
	return uint64(v<<1 ^ v>>63)
}
