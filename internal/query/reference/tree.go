package reference

import (
	"math"
	"math/big"
)

// The sum of slots that are read is that of integers, exactly, and of floats, which are
// added up in one order: 60 slots of a lane, 12 lanes of a chunk, 10 chunks, 12 of
// these, the span. All of them begin at multiples of their size.
var nodes = []int64{120 * 720, 10 * 720, 720}

// part is what is added up of some slots: with gaps filled, from the first set
// slot to the last.
type part struct {
	whole       *big.Int
	float       float64
	first, last int64
	word        uint64
}

func firstWord(words []uint64) uint64 {
	for _, w := range words {
		if w != unset {
			return w
		}
	}
	return unset
}

// sumOfSpan returns the sum of the slots from from on, and the word that is
// carried on; carry is what comes from before.
func sumOfSpan(words []uint64, from int64, carry uint64) (sum float64, next uint64) {
	all := part{whole: new(big.Int)}
	p := add(words, from, nodes)
	if p == nil {
		all.copies(carry, int64(len(words)))
		return all.value(), carry
	}
	all.copies(carry, p.first-from)
	behind := from + int64(len(words)) - 1 - p.last
	p.copies(p.word, behind)
	all.whole.Add(all.whole, p.whole)
	all.float += p.float
	return all.value(), p.word
}

// copies adds n copies of a word at once.
func (p *part) copies(w uint64, n int64) {
	switch {
	case n == 0 || w == unset:
	case isFloat(w):
		product := number(w) * float64(n)
		p.float += product
	default:
		p.whole.Add(p.whole, new(big.Int).Mul(big.NewInt(whole(w)), big.NewInt(n)))
	}
}

func (p *part) value() float64 {
	whole, _ := new(big.Float).SetInt(p.whole).Float64()
	return whole + p.float
}

func add(words []uint64, from int64, sizes []int64) (all *part) {
	if len(sizes) == 0 {
		return addChunk(words, from)
	}
	for len(words) > 0 {
		begin := from - from%sizes[0]
		if begin > from {
			begin -= sizes[0] // before slot 0
		}
		n := min(begin+sizes[0]-from, int64(len(words)))
		p := add(words[:n], from, sizes[1:])
		words, from = words[n:], from+n
		if p == nil {
			continue
		}
		if all == nil {
			all = p
			continue
		}
		all.copies(all.word, p.first-all.last-1)
		all.whole.Add(all.whole, p.whole)
		all.float += p.float
		all.last, all.word = p.last, p.word
	}
	return all
}

// addChunk adds up slots of one chunk.
func addChunk(words []uint64, from int64) *part {
	first, last := -1, -1
	for i, w := range words {
		if w != unset {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return nil
	}
	p := part{whole: new(big.Int), first: from + int64(first), last: from + int64(last)}
	var lanes [12]float64
	for i, w := range words[first : last+1] {
		if w != unset {
			p.word = w
		}
		if isFloat(p.word) {
			lanes[(p.first+int64(i))%720/60] += number(p.word)
		} else {
			p.copies(p.word, 1)
		}
	}
	for _, l := range lanes {
		p.float += l
	}
	if math.IsNaN(p.float) {
		p.float = math.NaN()
	}
	return &p
}
