package flush

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// chunkOrder puts the chunks of one bucket in order. It holds scratch memory and is
// not for concurrent use.
type chunkOrder struct {
	keys, other []uint64
}

// of returns the positions of the chunks by series id and number, each as the lower
// half of a key. They are valid until the next call. The chunks of a series stand in
// all by ascending number.
//
// It is a radix sort by the first 32 bits of the id, then a look at equal ones:
// a comparison sort of a million chunks took a twelfth of the time of ingest.
func (o *chunkOrder) of(all []Chunk) []uint64 {
	n := len(all)
	o.keys, o.other = slices.Grow(o.keys[:0], n)[:n], slices.Grow(o.other[:0], n)[:n]
	for i := range all {
		o.keys[i] = uint64(binary.BigEndian.Uint32(all[i].ID[:]))<<32 | uint64(i)
	}
	o.radixSort()
	settleTies(o.keys, all)
	return o.keys
}

// radixSort sorts the keys stably by their upper 32 bits.
func (o *chunkOrder) radixSort() {
	const digit, size = 11, 1 << 11
	for shift := 32; shift < 64; shift += digit {
		var starts [size]int
		for _, k := range o.keys {
			starts[k>>shift&(size-1)]++
		}
		sum := 0
		for d, n := range starts {
			starts[d] = sum
			sum += n
		}
		for _, k := range o.keys {
			d := k >> shift & (size - 1)
			o.other[starts[d]] = k
			starts[d]++
		}
		o.keys, o.other = o.other, o.keys
	}
}

// settleTies orders runs of keys with the same upper bits by the whole id and
// the number.
func settleTies(keys []uint64, all []Chunk) {
	for i := 0; i < len(keys); {
		j := i + 1
		for j < len(keys) && keys[j]>>32 == keys[i]>>32 {
			j++
		}
		if j-i > 1 {
			slices.SortFunc(keys[i:j], func(a, b uint64) int {
				x, y := &all[uint32(a)], &all[uint32(b)]
				return cmp.Or(bytes.Compare(x.ID[:], y.ID[:]), cmp.Compare(x.Number, y.Number))
			})
		}
		i = j
	}
}
