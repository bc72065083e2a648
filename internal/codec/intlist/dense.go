package intlist

import (
	"iter"
	"math/bits"
	"slices"

	"dalmatiner/internal/codec/kernel"
)

// PlanDense chooses the smallest form of v, also of those that take longer to write and to
// read, and returns its size in bytes. e is what Measure says of v, of which two values
// differ.
func (p *List) PlanDense(v []int64, e *Extent, s *Scratch) int {
	if len(v) < riceMin {
		return p.Plan(v, e, s)
	}
	*p = List{factor: 1, least: e.Min}
	size := p.planSecond(v, e, p.planFirst(v, e))
	if factor := factorOf(v, e.Min); factor > 1 {
		q := List{factor: factor, least: e.Min}
		w := s.divide(v, e.Min, factor)
		x := Measure(w)
		if n := q.planSecond(w, &x, q.planFirst(w, &x)); n < size {
			*p, v, e, size = q, w, &x, n
		}
	}
	code, n := p.planRice(v, e, s, size)
	if n < size && !code.patched && !code.rice.growth {
		*p = code // no residual is far from the others: there is nothing to patch
		return n
	}
	if size = p.planPatched(v, e, s, size); n+n/riceGain < size {
		*p, size = code, n
	}
	return size
}

const (
	// riceMin values are needed before residuals are coded: below, parameters take
	// what codes save.
	riceMin = 16
	// riceGain is the share of a list that a code has to save, because it takes longer
	// to read.
	riceGain = 32
	// riceApart is how many times farther apart residuals may lie than differences for
	// a form to be looked at.
	riceApart = 4
	// riceLongest bounds the quotients: residuals with longer ones are patches.
	riceLongest = 20
	// riceUnsure is the share of a list that an estimate may be too large.
	riceUnsure = 16
	// maxGrowing is the length of numbers that are read with one load.
	maxGrowing = 55
)

// guess is a way to code residuals, and what it takes in bits, about.
type guess struct {
	form int
	base int64
	code rice // without where
	bits int  // before estimate those of where
}

// planRice returns a list of coded residuals and its size where that is enough smaller than
// size, and else size. v counts in factors. What forms and codes take is estimated from some
// blocks of long lists.
func (p *List) planRice(v []int64, e *Extent, s *Scratch, size int) (q List, n int) {
	s.thin = len(v) >= sampledMin && e.Changes > len(v)/2
	center, spread := sample(v, formDelta)
	best := s.guess(v, formDelta, center)
	s.improve(&best, v, spread)
	for _, form := range [...]int{formOffset, formDelta2} {
		center, apart := sample(v, form)
		if apart/riceApart > spread {
			continue
		}
		if g := s.guess(v, form, center); g.bits < best.bits {
			s.improve(&g, v, apart)
			best = g
		}
	}
	if about := best.bits * len(v) / s.lookedCount(len(v)) / 8; about > size+size/riceUnsure {
		return q, size
	}
	q = List{
		m:      p.m,
		form:   best.form,
		factor: p.factor,
		least:  p.least,
		base:   best.base,
		riced:  true,
		rice:   best.code,
	}
	if q.form == formDelta2 {
		q.d = v[1] - v[0]
	}
	if q.form == formOffset {
		q.base -= e.Min
	}
	q.lay.lanes, q.lay.length = laneShape(q.m)
	if n = q.code(v, &best, s); n+n/riceGain < size {
		return q, n
	}
	return q, size
}

// guess estimates the code with signs around a middle value.
func (s *Scratch) guess(v []int64, form int, center int64) guess {
	g := guess{form: form, base: center, code: rice{zigzag: true}}
	g.estimate(s.sampleBlocks(s.differences(v, form, center)), s)
	return g
}

const (
	// sampledMin values are enough to look at one block of three.
	sampledMin  = 8 * riceBlock
	sampledStep = 3 * riceBlock
)

// lookedCount returns how many residuals of n some returns.
func (s *Scratch) lookedCount(n int) int {
	if !s.thin {
		return n
	}
	return n/sampledStep*riceBlock + min(n%sampledStep, riceBlock)
}

// sampleBlocks moves the blocks of raw that estimates look at together.
func (s *Scratch) sampleBlocks(raw []uint64) []uint64 {
	if !s.thin {
		return raw
	}
	n := 0
	for at := 0; at < len(raw); at += sampledStep {
		n += copy(raw[n:], raw[at:min(at+riceBlock, len(raw))])
	}
	return raw[:n]
}

// improve tries the other codes of the form of g.
func (s *Scratch) improve(g *guess, v []int64, spread uint64) {
	raw, center, limit := s.differences(v, g.form, g.base), g.base, g.code.limit()
	below, above := 0, 0 // residuals on either side of the middle value that are no patches
	least := int64(0)    // of them
	s.where = Mask{}
	for b, part := range blocks(raw) {
		sides := kernel.SidesOf(part, uint64(center), limit)
		s.where[b] = sides.Others
		if sides.Below+sides.Above > 0 && (below+above == 0 || sides.Least < least) {
			least = sides.Least
		}
		below, above = below+sides.Below, above+sides.Above
	}
	part := s.sampleBlocks(raw)
	try := func(t guess) {
		t.estimate(part, s)
		if t.bits < g.bits {
			*g = t
		}
	}
	// Those that lie around their median come about as far below it as their quartiles
	// lie apart, and as far again.
	lowest := min(least, 0)
	if uint64(-lowest) <= spread+spread/2 {
		try(guess{form: g.form, base: center + lowest})
	}
	if below+above > len(raw)*7/8 {
		return
	}
	where := PlanMask(&s.where, len(raw), s)
	sparse := guess{
		form: g.form,
		base: center,
		bits: 8 * where.Size * len(part) / len(v),
		code: rice{sparse: true, zigzag: true},
	}
	try(sparse)
	if 4*below < above+below {
		sparse.code = rice{sparse: true, least: least}
		try(sparse)
	}
}

// limit is a coded number that no block has without being patched.
func (c *rice) limit() uint64 {
	most := uint8(0)
	for _, k := range c.k {
		most = max(most, k)
	}
	return riceLongest << most
}

// estimate adds what raw takes, in bits, and fills in parameters.
func (g *guess) estimate(raw []uint64, s *Scratch) {
	u, base, signed := raw, uint64(g.base), g.code.zigzag
	if g.code.sparse {
		u, _ = numbers(&g.code, s.coded[:], raw, base)
		base, signed = 0, false
	}
	g.code.count = len(u)
	bits, growing := 0, 0
	for b, part := range blocks(u) {
		var l lengths
		l.count(part, base, signed)
		var n int
		g.code.k[b], n = l.parameter(false)
		bits += n + 1
		_, n = l.parameter(true)
		growing += n + 1
	}
	if g.code.growth = growing < bits; g.code.growth {
		bits = growing
	}
	g.bits += bits
}

// blocks are the numbers of each parameter.
func blocks(u []uint64) iter.Seq2[int, []uint64] {
	return func(yield func(int, []uint64) bool) {
		for b := 0; len(u) > 0; b++ {
			n := min(riceBlock, len(u))
			if !yield(b, u[:n]) {
				return
			}
			u = u[n:]
		}
	}
}

// lengths counts coded numbers by their bits.
type lengths struct {
	n       kernel.BitLengths
	all     int
	longest int
	usual   int // median, at least 1
	// more is how many numbers have so many bits or more, and further what that is in sum
	// for as many bits or more.
	more, further [lengthsKnown]uint16
}

// lengthsKnown is one more than the bits that a sum is looked up for.
const lengthsKnown = 65 + 8

func (l *lengths) count(u []uint64, base uint64, signed bool) {
	l.all, l.longest = len(u), l.n.Count(u, base, signed)
	below := int(l.n[0]) + int(l.n[1])
	for l.usual = 1; l.usual < l.longest && below < len(u)/2; {
		l.usual++
		below += int(l.n[l.usual])
	}
	more, further := uint16(0), uint16(0)
	for i := l.longest; i >= l.usual-4 && i >= 0; i-- {
		more += uint16(l.n[i])
		further += more
		l.more[i], l.further[i] = more, further
	}
}

// parameter returns the number of low bits that makes the code of some numbers shortest,
// and what it takes in bits, without growth with patches for those that are too long.
func (l *lengths) parameter(growth bool) (k uint8, size int) {
	size = -1
	for at := max(l.usual-4, 0); at <= min(l.longest, riceLeast); at++ {
		n := l.all * (at + 1)
		if growth {
			n += l.growingBits(at)
		} else {
			n += l.quotients(at)
		}
		if size < 0 || n < size {
			k, size = uint8(at), n
		} else if at > l.usual {
			break
		}
	}
	if size < 0 || growth && l.longest > maxGrowing {
		return riceLeast, 1 << 20
	}
	return k, size
}

// quotients estimates the sum of the quotients for k low bits, at most riceLeast: a number has
// about half more than the least of its length, and with more than five bits more it is a patch.
func (l *lengths) quotients(k int) int {
	const patchBits = 10 // of the position of a patch
	n := (*[6]uint8)(l.n[k+1:])
	return int(n[0]) + 3*int(n[1]) + 6*int(n[2]) + 12*int(n[3]) + 24*int(n[4]) +
		(patchBits+l.longest)*int(l.more[k+6])
}

// growingBits estimates twice the sum of the quotients for k low bits, at most riceLeast: the bits
// that grow. Of the numbers of i bits 1 in 2^(i-k-1) gets beyond the next power.
func (l *lengths) growingBits(k int) int {
	n := (*[8]uint8)(l.n[k+1:])
	beyond := 2*int(n[0]) + int(n[1]) + int(n[2]>>1) + int(n[3]>>2) + int(n[4]>>3) + int(n[5]>>4) +
		int(n[6]>>5) + int(n[7]>>6)
	return 2*int(l.further[k+2]) + beyond
}

// code fills in where patches are, what is coded, and with which parameters, and returns
// the size of the list.
func (p *List) code(v []int64, g *guess, s *Scratch) int {
	raw := s.differences(v, g.form, g.base)
	c := &p.rice
	u, all := numbers(c, s.coded[:], raw, uint64(g.base))
	c.count = len(u)
	if bits.Len64(all) > maxGrowing {
		c.growth = false // the sample had none of these: they become patches
	}
	if !c.growth {
		c.choose(u)
		if limit := c.limit(); all >= limit {
			u = p.patchLonger(u, raw, g.base, limit)
			c.count = len(u)
		}
	}
	if c.growth || p.patch.count > 0 {
		c.choose(u)
	}
	if c.sparse {
		c.where = differingMask(raw, uint64(g.base))
		for k, patches := range p.patch.where {
			c.where[k] &^= patches
		}
	}
	if p.patch.count > 0 {
		where := PlanMask(&p.patch.where, len(v), s)
		p.patched, p.patch.bytes = true, where.Size
	}
	c.bytes = c.measure(u, len(v), s)
	return p.size()
}

// differingMask returns where raw is not base.
func differingMask(raw []uint64, base uint64) (m Mask) {
	for b, part := range blocks(raw) {
		m[b] = kernel.SidesOf(part, base, 1).Others
	}
	return m
}

// patchLonger makes patches of the numbers that are not below limit, and returns the others;
// in a code that is not sparse there are zeros instead. raw are the residuals above base.
func (p *List) patchLonger(u, raw []uint64, base int64, limit uint64) []uint64 {
	var least, most int64
	kept, next := u[:0], 0
	for i, x := range raw {
		d := int64(x) - base
		if d == 0 && p.rice.sparse {
			continue
		}
		number := u[next]
		if next++; number < limit {
			kept = append(kept, number)
			continue
		}
		if p.patch.count == 0 {
			least, most = d, d
		}
		least, most = min(least, d), max(most, d)
		p.patch.where.Set(i)
		p.patch.count++
		if !p.rice.sparse {
			kept = append(kept, 0)
		}
	}
	p.patch.least, p.patch.width = least, uint(bits.Len64(uint64(most-least)))
	return kept
}

// choose fills in the parameters of u.
func (c *rice) choose(u []uint64) {
	c.k = [riceBlocks]uint8{}
	for b, part := range blocks(u) {
		var l lengths
		l.count(part, 0, false)
		c.k[b], _ = l.parameter(c.growth)
	}
}

// measure brings the parameters of u together and returns the size of the code of m residuals.
func (c *rice) measure(u []uint64, m int, s *Scratch) int {
	top := slices.Max(c.k[:])
	high, low := len(u), 0
	for b, part := range blocks(u) {
		// Parameters lie close together, so that few bits tell them apart.
		c.k[b] = max(c.k[b], max(top, 1<<riceWidest-1)-(1<<riceWidest-1))
		k := c.k[b]
		low += len(part) * int(k)
		if !c.growth {
			high += int(kernel.Quotients(part, uint(k)))
			continue
		}
		for _, x := range part {
			quotient := bits.Len64(x+1<<k) - 1 - int(k)
			high += quotient
			low += quotient
		}
	}
	_, width := c.width()
	n := 1 + bytesFor(c.blocks()*int(width)) + bytesFor(low) + bytesFor(high)
	if c.sparse {
		where := PlanMask(&c.where, m, s)
		n += where.Size
		if !c.zigzag {
			n += uvarintLen(Zigzag(c.least))
		}
	}
	return n
}
