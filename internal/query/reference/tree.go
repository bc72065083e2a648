package reference

import (
	"math"
	"math/big"
)

// The sum of slots is the exact sum of their integers and the sum of their floats.
// Floats are added up in one order: 60 slots of a lane, 12 lanes of a chunk, 10 chunks,
// 12 of these, the span. All of them begin at multiples of their size. The sum of each
// is that of its children with what rounding took from it, rounded once (Neumaier's
// sum).
var nodes = []int64{120 * 720, 10 * 720, 720}

// part is what is added up of some slots: of those that are set.
type part struct {
	whole *big.Int
	float neumaier
}

type neumaier struct{ sum, lost float64 }

func (n *neumaier) add(v float64) {
	sum := n.sum + v
	big, small := n.sum, v
	if math.Abs(small) > math.Abs(big) {
		big, small = small, big
	}
	n.lost += (big - sum) + small
	n.sum = sum
}

func (n *neumaier) value() float64 {
	if n.sum-n.sum != 0 {
		return n.sum
	}
	return n.sum + n.lost
}

// sumOfSpan returns the sum of the slots from from on. One of them is set.
func sumOfSpan(words []uint64, from int64) float64 {
	p := add(words, from, nodes)
	whole, _ := new(big.Float).SetInt(p.whole).Float64()
	return whole + p.float.value()
}

// add adds up slots as the children of a node; nil where none is set.
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
		switch {
		case p == nil:
			continue
		case all == nil:
			all = &part{whole: new(big.Int)}
		}
		all.whole.Add(all.whole, p.whole)
		all.float.add(p.float.value())
	}
	return all
}

// addChunk adds up slots of one chunk, lane by lane.
func addChunk(words []uint64, from int64) *part {
	p := part{whole: new(big.Int)}
	var lanes [12]neumaier
	set := 0
	for i, w := range words {
		switch {
		case w == unset:
			continue
		case isFloat(w):
			lanes[(from+int64(i))%720/60].add(number(w))
		default:
			p.whole.Add(p.whole, big.NewInt(whole(w)))
		}
		set++
	}
	if set == 0 {
		return nil
	}
	for _, l := range lanes {
		p.float.add(l.value())
	}
	return &p
}
