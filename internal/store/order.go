package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// inOrder returns the positions of the chunks by bucket, series id and number.
// The chunks of a series stand in all by ascending number.
//
// It is a radix sort by the first 32 bits of the id, then a look at equal ones:
// a comparison sort of a million chunks took a twelfth of the time of ingest.
func inOrder(all []encoded) []uint32 {
	byBucket := make(map[uint32][]uint64)
	for i := range all {
		top := binary.BigEndian.Uint32(all[i].id[:])
		byBucket[all[i].bucket] = append(byBucket[all[i].bucket], uint64(top)<<32|uint64(i))
	}
	out := make([]uint32, 0, len(all))
	for _, bucket := range slices.Sorted(maps.Keys(byBucket)) {
		keys := byBucket[bucket]
		radixSort(keys)
		settleTies(keys, all)
		for _, k := range keys {
			out = append(out, uint32(k))
		}
	}
	return out
}

// radixSort sorts keys stably by their upper 32 bits.
func radixSort(keys []uint64) {
	const digit, size = 11, 1 << 11
	from, to := keys, make([]uint64, len(keys))
	for shift := 32; shift < 64; shift += digit {
		var starts [size]int
		for _, k := range from {
			starts[k>>shift&(size-1)]++
		}
		sum := 0
		for d, n := range starts {
			starts[d] = sum
			sum += n
		}
		for _, k := range from {
			d := k >> shift & (size - 1)
			to[starts[d]] = k
			starts[d]++
		}
		from, to = to, from
	}
	copy(keys, from) // three passes: from is the other buffer
}

// settleTies orders runs of keys with the same upper bits by the whole id and
// the number.
func settleTies(keys []uint64, all []encoded) {
	for i := 0; i < len(keys); {
		j := i + 1
		for j < len(keys) && keys[j]>>32 == keys[i]>>32 {
			j++
		}
		if j-i > 1 {
			slices.SortFunc(keys[i:j], func(a, b uint64) int {
				x, y := &all[uint32(a)], &all[uint32(b)]
				return cmp.Or(bytes.Compare(x.id[:], y.id[:]), cmp.Compare(x.number, y.number))
			})
		}
		i = j
	}
}
