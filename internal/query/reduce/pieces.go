package reduce

import "dalmatiner/internal/codec/chunk"

// Pieces is a series that is looked at in pieces.
type Pieces interface {
	// Aggregate fills dst with the aggregates of step slots each, from one on.
	Aggregate(from, step int64, dst []chunk.Header) error

	// Each gives the words of n slots from one on to take, in their order.
	Each(from, n int64, take func(words []uint64, from int64)) error
}

// Take takes so many slots of the open span, whose aggregates are h: where they rise by these,
// else by those of smaller pieces, and in the end slot by slot.
func (r *Growth) Take(of Pieces, h *chunk.Header, from, slots int64) error {
	switch {
	case h.Count == 0:
		return nil
	case h.Rises:
		r.Rising(h.First, h.Last, from+int64(h.FirstOff), from+int64(h.LastOff), int64(h.Count))
		return nil
	}
	size := pieceOf(slots)
	if size == 0 {
		return of.Each(from, slots, r.Words)
	}
	for past := from + slots; from < past; {
		one, n := min(size-from%size, past-from), int64(1)
		if one == size {
			n = min((past-from)/size, mostPieces)
		}
		list := make([]chunk.Header, n)
		if err := of.Aggregate(from, one, list); err != nil {
			return err
		}
		if err := r.takeAll(of, list, from, one); err != nil {
			return err
		}
		from += one * n
	}
	return nil
}

// takeAll takes pieces of so many slots each. Those behind each other that are looked at slot by
// slot are read at once.
func (r *Growth) takeAll(of Pieces, list []chunk.Header, from, slots int64) error {
	for len(list) > 0 {
		n := 1
		for pieceOf(slots) == 0 && n < len(list) && falls(&list[0]) && falls(&list[n]) {
			n++
		}
		all, err := slots*int64(n), error(nil)
		if n > 1 {
			err = of.Each(from, all, r.Words)
		} else {
			err = r.Take(of, &list[0], from, all)
		}
		if err != nil {
			return err
		}
		list, from = list[n:], from+all
	}
	return nil
}

// falls reports whether aggregates do not tell what a counter grew by.
func falls(h *chunk.Header) bool { return h.Count > 0 && !h.Rises }

// mostPieces is of how many pieces the aggregates are asked for at once.
const mostPieces = chunk.MaxRollup / chunk.Slots

// pieceOf returns the slots of the pieces that so many slots are looked at in: those that a store
// has aggregates of. 0 stands for one by one.
func pieceOf(slots int64) int64 {
	for _, size := range []int64{chunk.MaxRollup, chunk.Slots} {
		if slots >= 2*size {
			return size
		}
	}
	return 0
}
