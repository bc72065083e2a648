package chunk

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"dalmatiner/internal/kernel"
)

// The forms of a list of integers: each value is predicted by nothing, by the
// value before it, or by the line through the two before it.
const (
	formOffset = iota // frame of reference: offsets from the smallest value
	formDelta
	formDelta2

	patchedFlag = 1 << 5
)

// scratch is memory that planning and writing a list need.
type scratch struct {
	res  residuals
	raw  [Slots]int64
	gaps gapList
}

// extent is what a form has to know about a list of integers.
type extent struct {
	min, max   int64 // of the values
	min1, max1 int64 // of the first differences
	changes    int   // values that differ from the one before
	sum        Sum
}

// measure looks at every value once. Differences wrap.
func measure(v []int64) extent {
	e := extent{min: v[0], max: v[0]}
	if len(v) == 1 {
		e.sum.AddInt(v[0])
		return e
	}
	s := kernel.SpreadOf(v)
	e.min, e.max, e.min1, e.max1 = s.Min, s.Max, s.MinStep, s.MaxStep
	e.changes = len(v) - 1 - int(s.Equal)
	e.sum = Sum{Hi: s.High >> 32, Lo: uint64(s.High) << 32}
	e.sum.AddInt(s.Low)
	return e
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

// chain is what lanes start from: of every lane but the first, the value (or
// the first difference) before its first one. They are stored as differences
// from lane to lane, less the smallest of them.
type chain struct {
	at    [maxLanes]int64
	least int64
	width uint
}

// seal computes least and width from at.
func (c *chain) seal(lanes int) {
	if lanes < 2 {
		return
	}
	c.least = c.at[1] - c.at[0]
	most := c.least
	for j := 2; j < lanes; j++ {
		d := c.at[j] - c.at[j-1]
		c.least, most = min(c.least, d), max(most, d)
	}
	c.width = uint(bits.Len64(uint64(most - c.least)))
}

func (c *chain) size(lanes int) int {
	if lanes < 2 {
		return 0
	}
	return uvarintLen(zigzag(c.least)) + 1 + bytesFor((lanes-1)*int(c.width))
}

func (c *chain) appendTo(dst []byte, lanes int) []byte {
	if lanes < 2 {
		return dst
	}
	dst = binary.AppendUvarint(dst, zigzag(c.least))
	w := bitWriter{dst: append(dst, byte(c.width))}
	for j := 1; j < lanes; j++ {
		w.put(uint64(c.at[j]-c.at[j-1]-c.least), c.width)
	}
	return w.finish()
}

// from fills in what the lanes from lane j on start from.
func (c *chain) from(dst *[kernel.Lanes]uint64, j int) {
	for k, x := range c.at[j:] {
		dst[k] = uint64(x)
	}
}

// chain reads the starts of lanes; the first one is known.
func (r *reader) chain(c *chain, first int64, lanes int) {
	c.at[0] = first
	if lanes < 2 {
		return
	}
	c.least = r.varint()
	c.width = uint(r.u8())
	if c.width > 64 {
		r.bad = true
		return
	}
	src := r.src // with what is behind: fields are read by eight bytes
	if r.take(bytesFor((lanes-1)*int(c.width))) == nil && c.width > 0 {
		return
	}
	var steps [maxLanes]uint64
	fieldsAt(steps[1:lanes], src, 0, c.width)
	at := first
	for j := 1; j < lanes; j++ {
		at += c.least + int64(steps[j])
		c.at[j] = at
	}
}

// ints is a list of integers in one form: how to write it, or how to read it.
type ints struct {
	form   int
	m      int
	base   int64 // smallest value, difference or second difference
	lay    layout
	values chain
	diffs  chain // of formDelta2
	body   []byte

	patched bool
	patch   patch
}

// planInts chooses the smallest form of v and returns its size in bytes. The
// reader knows the length, the smallest and largest value, which differ, and the
// first one.
func planInts(p *ints, v []int64, e *extent, s *scratch) int {
	*p = ints{m: len(v), form: formOffset, base: e.min}
	p.lay = planLayout(p.m, uint64(e.max-e.min))
	size := 1 + p.lay.size()
	span1 := uint64(e.max1 - e.min1)
	size = p.tryChain(v, formDelta, e.min1, span1, size)
	if len(v) < 3 || span1 == 0 {
		return size
	}
	size = p.planPatched(v, e, s, size)
	if least, span2 := measure2(v, span1); span2 < span1 {
		size = p.tryChain(v, formDelta2, least, span2, size)
	}
	return size
}

// tryChain replaces p by a form of differences where that is smaller than size.
func (p *ints) tryChain(v []int64, form int, base int64, limit uint64, size int) int {
	if limit > p.lay.limit && p.lay.group == 1 {
		return size
	}
	q := ints{m: len(v), form: form, base: base, lay: planLayout(len(v), limit)}
	if q.lay.size() >= size {
		return size
	}
	q.startLanes(v)
	if n := q.size(); n < size {
		*p = q
		return n
	}
	return size
}

// startLanes fills in what the lanes of v start from. The first lane starts
// from values made up so that the first residuals come out as 0.
func (p *ints) startLanes(v []int64) {
	n := p.lay.length
	p.values.at[0] = v[0]
	p.diffs.at[0] = v[1] - v[0]
	for j := 1; j < p.lay.lanes; j++ {
		p.values.at[j] = v[j*n-1]
		p.diffs.at[j] = v[j*n-1] - v[j*n-2]
	}
	p.values.seal(p.lay.lanes)
	if p.form == formDelta2 {
		p.diffs.seal(p.lay.lanes)
	}
}

// size is the number of bytes that appendTo writes, but for formOffset without
// patches.
func (p *ints) size() int {
	n := 1 + uvarintLen(zigzag(p.base)) + uvarintLen(p.lay.limit) + p.lay.size()
	if p.form != formOffset {
		n += p.values.size(p.lay.lanes)
	}
	if p.form == formDelta2 {
		n += uvarintLen(zigzag(p.diffs.at[0])) + p.diffs.size(p.lay.lanes)
	}
	if p.patched {
		n += p.patch.size()
	}
	return n
}

// appendTo appends v, the list that p was planned for.
func (p *ints) appendTo(dst []byte, v []int64, s *scratch) []byte {
	head := byte(p.form) | byte(p.lay.group-1)<<2
	if p.patched {
		head |= patchedFlag
	}
	dst = append(dst, head)
	if p.form != formOffset || p.patched {
		dst = binary.AppendUvarint(dst, zigzag(p.base))
		dst = binary.AppendUvarint(dst, p.lay.limit)
	}
	if p.form != formOffset {
		dst = p.values.appendTo(dst, p.lay.lanes)
	}
	base, res := p.base, &s.res
	switch p.form {
	case formOffset:
		kernel.Offsets(res[:len(v)], v, base)
	case formDelta:
		res[0] = 0
		kernel.Steps(res[1:len(v)], v, base)
	case formDelta2:
		dst = binary.AppendUvarint(dst, zigzag(p.diffs.at[0]))
		dst = p.diffs.appendTo(dst, p.lay.lanes)
		res[0], res[1] = 0, 0
		prev, prevD := v[1], p.diffs.at[0]
		for i, x := range v[2:] {
			d := x - prev
			res[i+2] = uint64(d - prevD - base)
			prev, prevD = x, d
		}
	}
	if p.patched {
		dst = p.patch.appendTo(dst, len(v), s)
	}
	clear(res[len(v) : p.lay.lanes*p.lay.length])
	return p.lay.pack(dst, res)
}

// ints reads the form of a list of m integers within [min, min+span] that
// starts with first. It sets all of p that its form and its lanes need.
func (r *reader) ints(p *ints, m int, min int64, span uint64, first int64) error {
	head := r.u8()
	p.m, p.form, p.base, p.patched = m, int(head&3), min, head&patchedFlag != 0
	limit := span
	if p.form != formOffset || p.patched {
		p.base = r.varint()
		limit = r.uvarint()
	}
	var ok bool
	p.lay, ok = layoutOf(m, limit, int(head>>2&7)+1)
	if !ok || p.form > formDelta2 || head >= 2*patchedFlag {
		return fmt.Errorf("%w: form %#x of %d integers is not defined", ErrCorrupt, head, m)
	}
	if p.form != formOffset {
		r.chain(&p.values, first, p.lay.lanes)
	}
	if p.form == formDelta2 {
		r.chain(&p.diffs, r.varint(), p.lay.lanes)
	}
	if p.patched {
		if err := r.patch(&p.patch, m); err != nil {
			return err
		}
	}
	p.body = r.take(p.lay.size())
	if r.bad {
		return fmt.Errorf("%w: %d integers of %d bytes are cut off", ErrCorrupt, m, p.lay.size())
	}
	// The made-up start of the first lane, see startLanes.
	if p.form == formDelta {
		p.values.at[0] -= p.base
	} else {
		p.values.at[0] -= p.diffs.at[0] - p.base
		p.diffs.at[0] -= 2 * p.base
	}
	return nil
}

// decode decodes count lanes from lane j on into q.values, as int64 bits.
func (p *ints) decode(q *lanes, j, count int) {
	p.unpack(&q.residuals, j, count)
	n, base := p.lay.length, uint64(p.base)
	var start, step [kernel.Lanes]uint64
	switch p.form {
	case formOffset:
		kernel.Add(&q.values, &q.residuals, base, count, n)
	case formDelta:
		p.values.from(&start, j)
		kernel.Add1(&q.values, &q.residuals, base, &start, count, n)
	case formDelta2:
		p.values.from(&start, j)
		p.diffs.from(&step, j)
		kernel.Add2(&q.values, &q.residuals, base, &start, &step, count, n)
	}
}

// unpack reads the residuals of count lanes from lane j on.
func (p *ints) unpack(res *kernel.Residuals, j, count int) {
	p.lay.unpack(res, p.body, j, count)
	if !p.patched {
		return
	}
	n := p.lay.length
	for k := range count {
		p.patch.apply(res[k:], (j+k)*n, n)
	}
}

// start is unpack for values that are taken in as they come: it sets what the
// lanes start from.
func (p *ints) start(f *kernel.Fold, res *kernel.Residuals, j, count int) kernel.Prediction {
	p.unpack(res, j, count)
	return p.predict(f, j)
}

// predict sets what the lanes from lane j on start from.
func (p *ints) predict(f *kernel.Fold, j int) kernel.Prediction {
	switch p.form {
	case formDelta2:
		p.diffs.from(&f.Step, j)
		fallthrough
	case formDelta:
		p.values.from(&f.Value, j)
	}
	return kernel.Prediction{Order: p.form, Base: uint64(p.base)}
}

// foldNarrow takes in count whole lanes of integers from lane j on that the kernel folds
// without residuals in memory. It reports whether they are such.
func (p *ints) foldNarrow(f *kernel.Fold, j, count int) bool {
	if p.patched || p.lay.width == 0 || p.lay.length != kernel.MaxLane {
		return false
	}
	var rows kernel.Rows
	p.lay.rows(&rows, p.body, j, count)
	g := p.lay.fields()
	return kernel.FoldNarrow(f, &rows, &g, p.predict(f, j))
}
