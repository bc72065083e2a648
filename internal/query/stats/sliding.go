package stats

// Sliding makes the sums of the last Size numbers of a sequence, NaN among them passed over. A
// sum is joined from those of the current block from its start, and of the block before it to
// its end: nothing is ever subtracted, so an infinity leaves with its window. It holds
// SlidingBytes for each of Size numbers.
type Sliding struct {
	Size int

	head   Sum       // of the current block so far
	block  []float64 // its numbers
	behind []Sum     // of the block before, from each position to its end
}

// SlidingBytes is the memory of a number of a Sliding: itself and a sum.
const SlidingBytes = 8 + 56

// Take adds a number and returns the sum of the window that ends with it.
func (s *Sliding) Take(v float64) Sum {
	if s.block == nil {
		s.block = make([]float64, 0, s.Size)
	}
	s.block = append(s.block, v)
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
	if s.behind == nil {
		s.behind = make([]Sum, s.Size)
	}
	var last Sum
	for i := s.Size - 1; i >= 0; i-- {
		var sum Sum
		sum.Add(s.block[i])
		sum.Join(&last)
		s.behind[i], last = sum, sum
	}
	s.block, s.head = s.block[:0], Sum{}
}
