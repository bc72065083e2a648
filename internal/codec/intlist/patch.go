package intlist

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"dalmatiner/internal/codec/kernel"
)

// patch holds the residuals that are too far from the others to be packed with
// them: the spikes of a gauge, the reset of a counter. In the lanes they are 0.
type patch struct {
	where Mask
	count int
	least int64 // smallest patched residual, signed
	width uint  // bits of a patched residual above it
	body  []byte
	bytes int // of where, for the encoder
}

const (
	// patchMin values are needed before looking for outliers: the look costs
	// as much as packing 60 values, and a short piece is packed again later.
	patchMin = 128
	// patchLimit is the smallest largest residual for which the look pays.
	patchLimit = 64
	samples    = 16
)

// planPatched tries both forms that can be patched. p was planned without; e
// is the extent of v.
func (p *List) planPatched(v []int64, e *Extent, s *Scratch, size int) int {
	if len(v) < patchMin || p.lay.limit < patchLimit {
		return size
	}
	size = p.tryPatch(v, formOffset, e, s, size)
	return p.tryPatch(v, formDelta, e, s, size)
}

// tryPatch replaces p by a patched form where that is smaller than size.
func (p *List) tryPatch(v []int64, form int, e *Extent, s *Scratch, size int) int {
	center, spread := sample(v, form)
	limit := uint64(e.Max - e.Min) // without patches
	if form == formDelta {
		limit = uint64(e.Max1 - e.Min1)
	}
	if spread >= limit/8 {
		return size // without outliers, or with too many
	}
	raw := s.differences(v, form, center)
	width := cut(raw, center)
	q := List{m: len(v), form: form, factor: p.factor, least: p.least, patched: true}
	limit = q.splitOff(raw, center, width)
	if q.patch.count == 0 {
		return size
	}
	q.lay = planLayout(len(v), limit)
	where := PlanMask(&q.patch.where, len(v), s)
	q.patch.bytes = where.Size
	if form == formOffset {
		q.base -= e.Min
	}
	if n := q.size(); n < size {
		*p = q
		return n
	}
	return size
}

// differences returns what the prediction of a form leaves of v against 0. What nothing
// comes before is made up to be center.
func (s *Scratch) differences(v []int64, form int, center int64) []uint64 {
	raw := s.raw[:len(v)]
	switch form {
	case formOffset:
		kernel.Offsets(raw, v, 0)
	case formDelta:
		raw[0] = uint64(center)
		kernel.Steps(raw[1:], v, 0)
	case formDelta2:
		raw[0], raw[1] = uint64(center), uint64(center)
		prev, prevD := v[1], v[1]-v[0]
		for i, x := range v[2:] {
			d := x - prev
			raw[i+2] = uint64(d - prevD)
			prev, prevD = x, d
		}
	}
	return raw
}

// sample returns the median of some residuals and the distance between their
// quartiles.
func sample(v []int64, form int) (center int64, spread uint64) {
	var s [samples]int64
	step := (len(v) - 1) / samples
	for i := range s {
		x := v[1+i*step]
		switch before := v[i*step]; form {
		case formDelta:
			x -= before
		case formDelta2:
			x += v[max(i*step, 1)-1] - 2*before
		}
		s[i] = x
	}
	for _, p := range sorting {
		a, b := &s[p[0]%samples], &s[p[1]%samples]
		*a, *b = min(*a, *b), max(*a, *b)
	}
	return s[samples/2], uint64(s[samples*3/4] - s[samples/4])
}

// sorting are the pairs that are put in order, one after the other, to sort the samples: no
// branch depends on them. (Batcher: "Sorting Networks and Their Applications", AFIPS 1968.)
var sorting = func() (pairs [][2]uint8) {
	for p := 1; p < samples; p *= 2 {
		for k := p; k > 0; k /= 2 {
			for j := k % p; j < samples-k; j += 2 * k {
				for i := range min(k, samples-j-k) {
					if (i+j)/(2*p) == (i+j+k)/(2*p) {
						pairs = append(pairs, [2]uint8{uint8(i + j), uint8(i + j + k)})
					}
				}
			}
		}
	}
	return pairs
}()

// cut returns the number of bits of Zigzag(residual - center) above which
// patches are cheaper than wider lanes.
func cut(raw []uint64, center int64) int {
	var n [65]int
	for _, part := range blocks(raw) {
		var c kernel.BitLengths
		for i := c.Count(part, uint64(center), true); i >= 0; i-- {
			n[i] += int(c[i])
		}
	}
	widest := 64
	for n[widest] == 0 && widest > 0 {
		widest--
	}
	const position = 8 // bits that a patch takes besides its residual, about
	best, at, over := len(raw)*widest, widest, 0
	for w := widest - 1; w >= 0; w-- {
		over += n[w+1]
		if cost := len(raw)*w + over*(widest+position); cost < best {
			best, at = cost, w
		}
	}
	return at
}

// splitOff marks the residuals that are wider than width, and fills in what
// patches and lanes have in common.
func (p *List) splitOff(raw []uint64, center int64, width int) (limit uint64) {
	lo, hi := center, center
	var least, most int64
	for i, u := range raw {
		x := int64(u)
		if Zigzag(x-center)>>width == 0 {
			lo, hi = min(lo, x), max(hi, x)
			continue
		}
		if p.patch.count == 0 {
			least, most = x, x
		}
		least, most = min(least, x), max(most, x)
		p.patch.where.Set(i)
		p.patch.count++
	}
	p.base = lo
	p.patch.least = least - lo
	p.patch.width = uint(bits.Len64(uint64(most - least)))
	return uint64(hi - lo)
}

func (p *patch) size() int {
	return p.bytes + uvarintLen(Zigzag(p.least)) + 1 + bytesFor(p.count*int(p.width))
}

// appendTo appends the patched residuals of s.res and sets them to 0 there.
func (p *patch) appendTo(dst []byte, m int, s *Scratch) []byte {
	where := PlanMask(&p.where, m, s)
	dst = where.AppendTo(dst, m)
	dst = binary.AppendUvarint(dst, Zigzag(p.least))
	w := BitWriter{Dst: append(dst, byte(p.width))}
	for k, word := range p.where {
		for ; word != 0; word &= word - 1 {
			i := k<<6 + bits.TrailingZeros64(word)
			w.Put(s.res[i]-uint64(p.least), p.width)
			s.res[i] = 0
		}
	}
	return w.Finish()
}

// patch reads the patches of m residuals.
func (r *Reader) patch(p *patch, m int) error {
	var err error
	if p.where, err = r.Mask(m); err != nil {
		return err
	}
	p.count = p.where.Rank(m)
	p.least = r.Varint()
	p.width = uint(r.U8())
	p.body = r.Take(bytesFor(p.count * int(p.width)))
	if r.Bad || p.width > 64 {
		return fmt.Errorf("%w: %d patches of %d bits", ErrCorrupt, p.count, p.width)
	}
	return nil
}

// apply lays the patches over n residuals that stand stride apart; the first of them is
// number from.
func (p *patch) apply(residuals []uint64, stride, from, n int) {
	rank := p.where.Rank(from)
	to := from + n
	for k := from >> 6; k < len(p.where) && k<<6 < to; k++ {
		word := p.where[k]
		if k == from>>6 {
			word &= ^uint64(0) << (from & 63)
		}
		for ; word != 0; word &= word - 1 {
			i := k<<6 + bits.TrailingZeros64(word)
			if i >= to {
				return
			}
			residuals[(i-from)*stride] = bitsAt(p.body, rank*int(p.width), p.width) + uint64(p.least)
			rank++
		}
	}
}
