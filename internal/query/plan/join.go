package plan

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"dalmatiner/internal/model/metric"
)

// A float sum of many series needs an order, too. It is that of their hashes, joined
// as the tree of the first bits of these: two halves, their halves, down to one of
// 4096 parts, in which they are added up one after the other. The series of a
// partition are a node of the tree however many partitions there are, so that what
// its owner adds up is what a single node does.

const (
	joinBits = 12 // as many partitions as there can be
	// OneByOne is the split of what is joined in the order it stands in, behind all of
	// a tree.
	OneByOne uint8 = joinBits + 1
)

// joinOrder puts the nodes of series into the order of a combination whose result does
// not depend on it but for rounding, and returns their splits: between two neighbours,
// the level of the tree where they part. What was made of several metrics comes last,
// in the order it stands in.
func joinOrder(nodes []*Node, inputs []Series) []uint8 {
	type input struct {
		high, low uint64
		of        int
	}
	list := make([]input, 0, len(inputs)) // of one metric
	for i, s := range inputs {
		if s.id != 0 {
			id := metric.Series(s.id, s.Key)
			list = append(list, input{binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]), i})
		}
	}
	slices.SortFunc(list, func(a, b input) int {
		if a.high != b.high {
			return cmp.Compare(a.high, b.high)
		}
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.of, b.of))
	})
	splits := make([]uint8, len(inputs))
	for i, in := range list {
		nodes[i] = inputs[in.of].Of
		if i > 0 {
			splits[i] = uint8(bits.Len64((in.high ^ list[i-1].high) >> (64 - joinBits)))
		}
	}
	n := len(list)
	for _, s := range inputs {
		if s.id == 0 {
			nodes[n], splits[n] = s.Of, OneByOne
			n++
		}
	}
	return splits
}
