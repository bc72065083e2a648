//go:build amd64 && !purego

package kernel

import "math/bits"

// narrowPlan is what the loops of FoldNarrow need of a list. A window of a lane are four
// fields, or two groups, and becomes a word of four cells of 16 bits: fields as they
// are, of each group the remainder and the quotient of a power of the base. A cell of a
// group holds half of its digits, the first one more where their number is odd. All
// that is done to every cell stands here once for each of the four.
type narrowPlan struct {
	pick           uint64 // bits of the window that the bytes of the cells begin with
	keep           uint64
	base, baseLast uint64 // of the prediction; Last: where the cell has as many digits
	onesLast       uint64
	// what divides a group: x*recip >> 32+shift; 2^16 less the divisor
	recip, more, shift          uint64
	digit, inverse, inverseLast uint64 // what divides a cell: x*inverse >> 16+inverseShift
	inverseShift                uint64
}

const (
	cells     = 4
	eachCell  = 0x0001_0001_0001_0001
	evenCells = 0x0000_0001_0000_0001 // and both halves of a word
	// Of the bytes of a word: where they begin in their cell, or half, and which field or
	// group of the window that is.
	cellBytes   = 0x0800_0800_0800_0800
	fieldOfByte = 0x0303_0202_0101_0000
	halfBytes   = 0x1810_0800_1810_0800
	groupOfByte = 0x0101_0101_0000_0000

	cellLimit = 1 << 15 // what the values of a lane stay below, counted from its start
)

// windows is how many windows a lane has, by the size of its groups.
var windows = [...]int{1: MaxLane / 4, 2: MaxLane / 4, 3: MaxLane / 6, 5: MaxLane / 10,
	6: MaxLane / 12}

// plan fills in n and returns the width of a window, or false.
func (n *narrowPlan) plan(g *Groups, p Prediction) (step uint, ok bool) {
	step = cells * g.Width
	width, most := uint64(g.Width), uint64(1)<<(g.Width&63)-1 // of a field
	switch {
	case p.Order > 1 || g.Size == 1 && g.Width > 15 || g.Size > 1 && (p.Order == 0 || g.Size == 4):
		return 0, false
	case g.Size == 1:
		n.pick, n.keep = cellBytes+width*fieldOfByte, most*eachCell
	default:
		step /= 2
		n.pick, n.keep = halfBytes+width*groupOfByte, most*evenCells
		if most, ok = n.divide(g); !ok {
			return 0, false
		}
	}
	if p.Order == 0 {
		n.base = p.Base // added at the end, as the starts are
		return step, true
	}
	base := int64(p.Base)
	if base <= -cellLimit || base >= cellLimit || MaxLane*(int64(most)+max(base, -base)) >= cellLimit {
		return 0, false
	}
	n.base = uint64(uint16(base)) * eachCell
	n.baseLast, n.onesLast = n.base, eachCell
	if g.Size%2 != 0 {
		n.baseLast, n.onesLast = uint64(uint16(base))*evenCells, evenCells
	}
	return step, true
}

// divide fills in how the digits of groups are found and returns the greatest one of any
// field, also one that no encoder writes.
func (n *narrowPlan) divide(g *Groups) (most uint64, ok bool) {
	first, second := (g.Size+1)/2, g.Size/2
	divisor := power(g.Base, first)
	if g.Base < 2 || divisor > 1<<16 {
		return 0, false
	}
	recip, shift := (&Groups{Width: 31, Base: divisor}).reciprocal()
	above := (1<<g.Width - 1) * recip >> shift // of a second cell
	s := uint(bits.Len64(g.Base-1) - 1)
	inverse := 1<<(16+s)/g.Base + 1
	if recip >= 1<<32 || above >= 1<<16 || inverse >= 1<<16 ||
		max(divisor-1, above)*(inverse*g.Base-1<<(16+s)) >= 1<<(16+s) {
		return 0, false
	}
	n.recip, n.more, n.shift = recip, (1<<16-divisor)*evenCells, uint64(shift-32)
	n.digit, n.inverseShift = g.Base*eachCell, uint64(s)
	n.inverse, n.inverseLast = inverse*eachCell, inverse*eachCell
	if first != second {
		n.inverseLast = inverse * evenCells // a quotient of 0: the cell has no digit more
	}
	for range second - 1 {
		above = above * inverse >> (16 + s)
	}
	return max(g.Base-1, above), true
}

func power(base uint64, n int) uint64 {
	p := uint64(1)
	for range n {
		p *= base
	}
	return p
}

// isFar reports whether one of some integers lies 2^62 or more from zero, or may with what
// is added to it.
func isFar(values ...uint64) bool {
	differ := uint64(0)
	for _, v := range values {
		differ |= v ^ v<<1 // the two highest bits
	}
	return int64(differ) < 0
}
