package stats

// Sliding makes the sums of the last Size numbers of a sequence, NaN among them passed over. A
// sum is joined from those of the current block from its start, and of the block before it to
// its end: nothing is ever subtracted, so an infinity leaves with its window. It holds at most
// two Sums for each of Size numbers, and of each that came.
type Sliding struct {
	Size int

	head   Sum   // of the current block so far
	block  []Sum // of its numbers, each alone
	behind []Sum // of the block before, from each position to its end
}

// Take adds a number and returns the sum of the window that ends with it.
func (s *Sliding) Take(v float64) Sum {
	var one Sum
	one.Add(v)
	s.block = append(s.block, one)
	s.head.Add(v)
	sum := s.head
	if n := len(s.block); n < len(s.behind) {
		sum = s.behind[n]
		sum.Join(&s.head)
	}
	if len(s.block) == s.Size {
		s.turn()
	}
	return sum
}

// turn begins a new block.
func (s *Sliding) turn() {
	s.behind, s.block, s.head = s.block, s.behind[:0], Sum{}
	for i := len(s.behind) - 2; i >= 0; i-- {
		s.behind[i].Join(&s.behind[i+1])
	}
}
