package intlist

import (
	"encoding/binary"
	"fmt"

	"dalmatiner/internal/codec/kernel"
)

// The forms of a list of integers: each value is predicted by nothing, by the
// value before it, or by the line through the two before it.
const (
	formOffset = iota // frame of reference: offsets from the smallest value
	formDelta
	formDelta2

	// In the first byte of a list, behind the form and how residuals are packed.
	patchedFlag = 1 << 5
	factorFlag  = 1 << 6
	sparseFlag  = 1 << 7 // of riceCode

	// These stand where other lists have the size of a group, less one.
	growthCode = 6
	riceCode   = 7
)

// Scratch is memory that planning and writing lists and masks need.
type Scratch struct {
	Dense   bool // masks may take long to plan
	thin    bool // estimates look at some blocks
	res     residuals
	raw     residuals     // of a form, above 0
	divided [MaxLen]int64 // values in factors
	coded   codedResiduals
	where   Mask // residuals that are not 0
	gaps    gapList
}

// Extent is what a form has to know about a list of integers.
type Extent struct {
	Min, Max   int64 // of the values
	Min1, Max1 int64 // of the differences of neighbours, which wrap
	Changes    int   // values that differ from the one before
	High, Low  int64 // the sum is High × 2^32 + Low
}

// Measure looks at every value of v once, of which there is at least one.
func Measure(v []int64) Extent {
	if len(v) == 1 {
		return Extent{Min: v[0], Max: v[0], Low: v[0]}
	}
	s := kernel.SpreadOf(v)
	return Extent{Min: s.Min, Max: s.Max, Min1: s.MinStep, Max1: s.MaxStep,
		Changes: len(v) - 1 - int(s.Equal), High: s.High, Low: s.Low}
}

// measure2 returns the smallest second difference and the span of all, at
// least 3 values having been given. It stops as soon as the span reaches
// limit: then the first differences are the better form.
func measure2(v []int64, limit uint64) (least int64, span uint64) {
	prev, prevD := v[1], v[1]-v[0]
	lo := v[2] - v[1] - prevD
	hi := lo
	for rest := v[2:]; len(rest) > 0; {
		part := rest[:min(16, len(rest))]
		rest = rest[len(part):]
		for _, x := range part {
			d := x - prev
			dd := d - prevD
			prev, prevD = x, d
			lo, hi = min(lo, dd), max(hi, dd)
		}
		if uint64(hi-lo) >= limit {
			break
		}
	}
	return lo, uint64(hi - lo)
}

// List is a list of integers in one form: how to write it, or how to read it.
type List struct {
	form   int
	m      int
	factor uint64 // that all values have in common above the least one
	least  int64  // value; bases and residuals count in factors above it, or between two
	base   int64  // smallest value, difference or second difference, or a middle one
	lay    layout
	// v and d are the value and the difference before the first one, made up so that
	// the first residuals are 0.
	v, d int64
	body []byte

	patched bool
	patch   patch
	riced   bool
	rice    rice // growth and sparse are read with the form
}

// Plan chooses the smallest form of v that is quick to write, and returns its size in
// bytes. e is what Measure says of v, of which two values differ.
func (p *List) Plan(v []int64, e *Extent, s *Scratch) int {
	*p = List{factor: 1, least: e.Min}
	size := p.planPatched(v, e, s, p.planFirst(v, e))
	return p.planSecond(v, e, size)
}

// planFirst chooses among packed values and packed differences, once factor and least are
// known; v counts in factors.
func (p *List) planFirst(v []int64, e *Extent) int {
	p.m, p.form = len(v), formOffset
	p.lay = planLayout(p.m, uint64(e.Max-e.Min))
	size := 1 + p.lay.size()
	if p.factor > 1 {
		size += uvarintLen(p.factor)
	}
	return p.tryChain(v, formDelta, e.Min1, uint64(e.Max1-e.Min1), size)
}

// planSecond replaces p by packed second differences where these are smaller than size.
func (p *List) planSecond(v []int64, e *Extent, size int) int {
	span1 := uint64(e.Max1 - e.Min1)
	if len(v) < 3 || span1 == 0 {
		return size
	}
	if least, span2 := measure2(v, span1); span2 < span1 {
		size = p.tryChain(v, formDelta2, least, span2, size)
	}
	return size
}

// Sparse reports whether the list has positions of residuals that are 0 apart.
func (p *List) Sparse() bool { return p.riced && p.rice.sparse }

// Drifts reports whether the differences of v lie around another value than 0.
func Drifts(v []int64) bool {
	center, spread := sample(v, formDelta)
	return Zigzag(center) > spread
}

// tryChain replaces p by a form of differences where that is smaller than size.
func (p *List) tryChain(v []int64, form int, base int64, limit uint64, size int) int {
	if limit > p.lay.limit && p.lay.group == 1 {
		return size
	}
	q := List{
		m:      len(v),
		form:   form,
		factor: p.factor,
		least:  p.least,
		base:   base,
		lay:    planLayout(len(v), limit),
	}
	if form == formDelta2 {
		q.d = v[1] - v[0]
	}
	if n := q.size(); n < size {
		*p = q
		return n
	}
	return size
}

// size is the number of bytes that AppendTo writes, but for formOffset without
// patches and without a code.
func (p *List) size() int {
	n := 1 + uvarintLen(Zigzag(p.base))
	if p.factor > 1 {
		n += uvarintLen(p.factor)
	}
	if p.form == formDelta2 {
		n += uvarintLen(Zigzag(p.d))
	}
	if p.patched {
		n += p.patch.size()
	}
	if p.riced {
		return n + p.rice.size()
	}
	return n + uvarintLen(p.lay.limit) + p.lay.size()
}

// hasStored reports whether base, and where residuals have one a limit, are written.
func (p *List) hasStored() bool { return p.form != formOffset || p.patched || p.riced }

// AppendTo appends v, the list that p was planned for.
func (p *List) AppendTo(dst []byte, v []int64, s *Scratch) []byte {
	head := byte(p.form)
	if p.riced {
		head |= riceCode << 2
		if p.rice.growth {
			head ^= (riceCode ^ growthCode) << 2
		}
		if p.rice.sparse {
			head |= sparseFlag
		}
	} else {
		head |= byte(p.lay.group-1) << 2
	}
	if p.patched {
		head |= patchedFlag
	}
	if p.factor > 1 {
		dst = binary.AppendUvarint(append(dst, head|factorFlag), p.factor)
		v = s.divide(v, p.least, p.factor)
	} else {
		dst = append(dst, head)
	}
	if p.hasStored() {
		dst = binary.AppendUvarint(dst, Zigzag(p.base))
	}
	if p.hasStored() && !p.riced {
		dst = binary.AppendUvarint(dst, p.lay.limit)
	}
	if p.form == formDelta2 {
		dst = binary.AppendUvarint(dst, Zigzag(p.d))
	}
	p.residuals(v, s)
	if p.patched {
		dst = p.patch.appendTo(dst, len(v), s)
	}
	if p.riced {
		return p.rice.appendTo(dst, s.res[:len(v)], s)
	}
	clear(s.res[len(v) : p.lay.lanes*p.lay.length])
	return p.lay.pack(dst, &s.res)
}

// residuals fills s.res with what the prediction leaves of v, which counts in factors.
func (p *List) residuals(v []int64, s *Scratch) {
	res, base := &s.res, p.base
	switch p.form {
	case formOffset:
		if p.factor == 1 {
			base += p.least
		}
		kernel.Offsets(res[:len(v)], v, base)
	case formDelta:
		res[0] = 0
		kernel.Steps(res[1:len(v)], v, base)
	case formDelta2:
		res[0], res[1] = 0, 0
		prev, prevD := v[1], p.d
		for i, x := range v[2:] {
			d := x - prev
			res[i+2] = uint64(d - prevD - base)
			prev, prevD = x, d
		}
	}
}

// List reads the form of a list of m integers within [least, least+span] that
// starts with first. It sets all of p that its form and its lanes need.
func (r *Reader) List(p *List, m int, least int64, span uint64, first int64) error {
	head := r.U8()
	code := int(head >> 2 & 7)
	p.m, p.form, p.patched, p.riced = m, int(head&3), head&patchedFlag != 0, code >= growthCode
	p.factor, p.least, p.base = 1, least, 0
	if head&factorFlag != 0 {
		p.factor = r.Uvarint()
	}
	limit := span
	if p.factor > 1 {
		limit /= p.factor
	}
	if p.hasStored() {
		p.base = r.Varint()
	}
	var ok bool
	if p.riced {
		p.rice.growth, p.rice.sparse = code == growthCode, head&sparseFlag != 0
		p.lay.lanes, p.lay.length = laneShape(m)
		ok = true
	} else {
		if p.hasStored() {
			limit = r.Uvarint()
		}
		p.lay, ok = layoutOf(m, limit, code+1)
		ok = ok && head&sparseFlag == 0
	}
	if !ok || p.form > formDelta2 || p.factor == 0 || head&factorFlag != 0 && p.factor == 1 {
		return fmt.Errorf("%w: form %#x of %d integers is not defined", ErrCorrupt, head, m)
	}
	var d int64
	if p.form == formDelta2 {
		d = r.Varint()
	}
	if p.patched {
		if err := r.patch(&p.patch, m); err != nil {
			return err
		}
	}
	if p.riced {
		if err := r.rice(&p.rice, m); err != nil {
			return err
		}
	} else {
		p.body = r.Take(p.lay.size())
	}
	if r.Bad {
		return fmt.Errorf("%w: %d integers are cut off", ErrCorrupt, m)
	}
	base, factor := p.base, int64(p.factor)
	p.v, p.d = first-base*factor, 0
	if p.form == formDelta2 {
		p.v, p.d = first-(d-base)*factor, (d-2*base)*factor
	}
	return nil
}
