package logrecord

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"dalmatiner/internal/codec/kernel"
)

// The forms of the cells of a record: integers that all fit one, two or four
// bytes as zigzag, else the words. A log of raw words would cost more in the
// page cache than all the rest of the way of a point.
const (
	cells8  = 1
	cells16 = 2
	cells32 = 4
	cells64 = 8
)

const intTag = uint64(1) << 56 // of a word that is an integer

// appendCells appends words in the smallest form that holds them all.
func appendCells(dst []byte, words []uint64) []byte {
	form := cellForm(words)
	dst = append(dst, byte(form))
	at := len(dst)
	dst = slices.Grow(dst, len(words)*form)[:at+len(words)*form]
	out := dst[at:]
	if form != cells64 {
		kernel.Zigzags(out, words, form)
		return dst
	}
	for _, w := range words {
		binary.LittleEndian.PutUint64(out, w)
		out = out[8:]
	}
	return dst
}

// cellForm returns the smallest form for words. An integer and its complement
// have zigzags of the same length, so the bits of all magnitudes together tell
// it.
func cellForm(words []uint64) int {
	tags, all := kernel.IntBits(words)
	if tags>>56 != 0 {
		return cells64
	}
	switch n := bits.Len64(all&(1<<56-1)) + 1; { // and the sign
	case n <= 8:
		return cells8
	case n <= 16:
		return cells16
	case n <= 32:
		return cells32
	}
	return cells64
}

// unzigzag undoes what kernel.Zigzags does.
func unzigzag(z uint64) uint64 {
	v := z>>1 ^ -(z & 1)
	return intTag | v&(1<<56-1)
}

// cellCount returns how many words the cells of a record hold; ok is false
// when they are malformed.
func cellCount(cells []byte) (n int, ok bool) {
	if len(cells) == 0 {
		return 0, false
	}
	form := int(cells[0])
	switch form {
	case cells8, cells16, cells32, cells64:
		n = (len(cells) - 1) / form
		return n, n*form == len(cells)-1 && n <= MaxPoints
	}
	return 0, false
}

// ParseCells appends the words of Record.Cells to dst. Other bytes may make it panic.
func ParseCells(dst []uint64, cells []byte) []uint64 {
	form, cells := int(cells[0]), cells[1:]
	at, n := len(dst), len(cells)/form
	dst = slices.Grow(dst, n)[:at+n]
	out := dst[at:]
	switch form {
	case cells8:
		for i, c := range cells[:len(out)] {
			out[i] = unzigzag(uint64(c))
		}
	case cells16:
		for ; len(out) >= 4; out, cells = out[4:], cells[8:] {
			four := binary.LittleEndian.Uint64(cells)
			out[0] = unzigzag(four & 0xffff)
			out[1] = unzigzag(four >> 16 & 0xffff)
			out[2] = unzigzag(four >> 32 & 0xffff)
			out[3] = unzigzag(four >> 48)
		}
		for i := range out {
			out[i] = unzigzag(uint64(binary.LittleEndian.Uint16(cells[2*i:])))
		}
	case cells32:
		for i := range out {
			out[i] = unzigzag(uint64(binary.LittleEndian.Uint32(cells[4*i:])))
		}
	default:
		for i := range out {
			out[i] = binary.LittleEndian.Uint64(cells[8*i:])
		}
	}
	return dst
}
