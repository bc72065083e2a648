package stats

// Slide is the sum over the last numbers of a sequence, as many as a block has. It is made of the
// sums of the current block from its start, and of the block before it to its end: nothing is ever
// subtracted, so errors do not add up and an infinity leaves with its window.
type Slide struct {
	head   float64   // sum of the current block so far
	block  []float64 // its numbers
	behind []float64 // sums of the block before, from each position to its end
}

// Take adds a number and returns the sum of the window that ends with it. A
// block has at most that many.
func (s *Slide) Take(v float64, most int64) float64 {
	if s.block == nil {
		s.block = make([]float64, 0, most)
	}
	s.block = append(s.block, v)
	s.head += v
	if n := len(s.block); n < len(s.behind) {
		return s.behind[n] + s.head
	}
	return s.head
}

// Turn begins a new block.
func (s *Slide) Turn() {
	s.behind, s.block = s.block, s.behind[:0]
	for i := len(s.behind) - 2; i >= 0; i-- {
		s.behind[i] += s.behind[i+1]
	}
	s.head = 0
}
