package intlist

import (
	"math/bits"
)

// PlanDense chooses the smallest form of v, also of those that take longer to write and to
// read, and returns its size in bytes. e is what Measure says of v, of which two values
// differ.
func (p *List) PlanDense(v []int64, e *Extent, s *Scratch) int {
	size := p.Plan(v, e, s)
	if len(v) < riceMin {
		return size
	}
	if factor := factorOf(v, e.Min); factor > 1 {
		q := List{factor: factor, least: e.Min}
		w := s.divide(v, e.Min, factor)
		x := Measure(w)
		if n := q.plan(w, &x, s); n < size {
			*p, v, e, size = q, w, &x, n
		}
	}
	return p.planRice(v, e, s, size)
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

// planRice replaces p by a list of coded residuals where that is smaller than size. v
// counts in factors.
func (p *List) planRice(v []int64, e *Extent, s *Scratch, size int) int {
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
	if best.bits/8 > size {
		return size
	}
	q := List{m: p.m, form: best.form, factor: p.factor, least: p.least, base: best.base, riced: true, rice: best.code}
	if q.form == formDelta2 {
		q.d = v[1] - v[0]
	}
	if q.form == formOffset {
		q.base -= e.Min
	}
	q.lay.lanes, q.lay.length = laneShape(q.m)
	if n := q.code(v, &best, s); n+n/riceGain < size {
		*p = q
		return n
	}
	return size
}

// guess estimates the code with signs around a middle value.
func (s *Scratch) guess(v []int64, form int, center int64) guess {
	g := guess{form: form, base: center, code: rice{zigzag: true}}
	g.estimate(s.differences(v, form, center), s)
	return g
}

// improve tries the other codes of the form of g.
func (s *Scratch) improve(g *guess, v []int64, spread uint64) {
	raw, center, limit := s.differences(v, g.form, g.base), g.base, g.code.limit()
	below, above := 0, 0                // residuals on either side of the middle value
	least, lowest := int64(0), int64(0) // of them, without those equal to it and with
	s.where = Mask{}
	for i, x := range raw {
		d := x - center
		if d == 0 {
			continue
		}
		s.where.Set(i)
		if Zigzag(d) >= limit {
			continue // a patch
		}
		if d < 0 {
			below++
		} else {
			above++
		}
		if d < least || least == 0 {
			least = d
		}
		lowest = min(lowest, d)
	}
	try := func(t guess) {
		t.estimate(raw, s)
		if t.bits < g.bits {
			*g = t
		}
	}
	// Those that lie around their median come about as far below it as their quartiles
	// lie apart, and as far again.
	if uint64(-lowest) <= spread+spread/2 {
		try(guess{form: g.form, base: center + lowest})
	}
	if below+above > len(raw)*7/8 {
		return
	}
	where := PlanMask(&s.where, len(raw), s)
	sparse := guess{form: g.form, base: center, bits: 8 * where.Size, code: rice{sparse: true, zigzag: true}}
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
func (g *guess) estimate(raw []int64, s *Scratch) {
	u := numbers(&g.code, s.coded[:], raw, g.base)
	g.code.count = len(u)
	bits, growing := 0, 0
	for b := range g.code.blocks() {
		l := lengthsOf(u[b*riceBlock : min((b+1)*riceBlock, len(u))])
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

// lengths counts coded numbers by their bits.
type lengths struct {
	n       [65]uint16
	all     int
	longest int
	usual   int // median, at least 1
}

func lengthsOf(u []uint64) (l lengths) {
	for _, x := range u {
		l.n[bits.Len64(x)]++
	}
	l.all, l.longest = len(u), 64
	for l.longest > 0 && l.n[l.longest] == 0 {
		l.longest--
	}
	below := int(l.n[0] + l.n[1])
	for l.usual = 1; l.usual < l.longest && below < len(u)/2; {
		l.usual++
		below += int(l.n[l.usual])
	}
	return l
}

// parameter returns the number of low bits that makes the code of some numbers shortest,
// and what it takes in bits, without growth with patches for those that are too long.
func (l *lengths) parameter(growth bool) (k uint8, size int) {
	size = -1
	for at := max(l.usual-4, 0); at <= min(l.longest, riceLeast); at++ {
		n := l.all * (at + 1)
		if growth {
			n += l.growing(at)
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

// quotients estimates the sum of the quotients for k low bits.
func (l *lengths) quotients(k int) (n int) {
	const patchBits = 10 // of the position of a patch
	for i := k + 1; i <= l.longest; i++ {
		long := 3 << (i - k) >> 2 // about half more than the least of that length
		if i-k > 5 {
			long = patchBits + l.longest
		}
		n += int(l.n[i]) * long
	}
	return n
}

// growing estimates twice the sum of the quotients: the bits that grow.
func (l *lengths) growing(k int) (n int) {
	for i := k + 1; i <= l.longest; i++ {
		// Of the numbers of i bits 1 in 2^(i-k-1) gets beyond the next power.
		n += int(l.n[i])*2*(i-k-1) + int(l.n[i])*2>>(i-k-1)
	}
	return n
}

// code fills in where patches are, what is coded, and with which parameters, and returns
// the size of the list.
func (p *List) code(v []int64, g *guess, s *Scratch) int {
	raw := s.differences(v, g.form, g.base)
	limit := g.code.limit()
	c := &p.rice
	c.count = 0
	var least, most int64
	for i, x := range raw {
		d := x - g.base
		if d == 0 && c.sparse {
			continue
		}
		u := c.number(uint64(d))
		if u < limit || c.growth {
			if c.sparse {
				c.where.Set(i)
			}
			s.coded[c.count] = u
			c.count++
			continue
		}
		if p.patch.count == 0 {
			least, most = d, d
		}
		least, most = min(least, d), max(most, d)
		p.patch.where.Set(i)
		p.patch.count++
		if !c.sparse {
			s.coded[c.count] = 0
			c.count++
		}
	}
	if p.patch.count > 0 {
		p.patched = true
		p.patch.least, p.patch.width = least, uint(bits.Len64(uint64(most-least)))
		where := PlanMask(&p.patch.where, len(v), s)
		p.patch.bytes = where.Size
	}
	c.bytes = c.measure(s.coded[:c.count], len(v), s)
	return p.size()
}

// measure fills in the parameters of u and returns the size of the code of m residuals.
func (c *rice) measure(u []uint64, m int, s *Scratch) int {
	top := uint8(0)
	for b := range c.blocks() {
		l := lengthsOf(u[b*riceBlock : min((b+1)*riceBlock, len(u))])
		c.k[b], _ = l.parameter(c.growth)
		top = max(top, c.k[b])
	}
	high, low := 0, 0
	for b := range c.blocks() {
		// Parameters lie close together, so that few bits tell them apart.
		c.k[b] = max(c.k[b], max(top, 1<<riceWidest-1)-(1<<riceWidest-1))
		for _, x := range u[b*riceBlock : min((b+1)*riceBlock, len(u))] {
			quotient, _, width := c.split(x, c.k[b])
			high += int(quotient) + 1
			low += int(width)
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
