package intlist

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"dalmatiner/internal/codec/kernel"
)

// layout tells how m residuals in [0, limit] are packed (DESIGN.md, "Lanes").
//
// The residuals are cut into lanes of equal length. Within a lane, group of
// them form one number to the base limit+1, which takes width bits: base 17
// costs 5 bits alone but 25 bits in sixes. A group of one is plain packing.
type layout struct {
	limit  uint64
	lanes  int
	length int // residuals of a lane; the last one may have fewer
	group  int
	width  uint // bits of a group
}

const (
	maxGroup     = 6
	maxGroupBits = 31 // of a group of several, so that 64-bit products suffice
	maxGroupBase = 1 << 15
)

// laneShape cuts m values, 1 to MaxLen, into lanes.
func laneShape(m int) (lanes, length int) {
	lanes = (m + Lane - 1) / Lane
	return lanes, (m + lanes - 1) / lanes
}

// planLayout chooses the group that makes the residuals smallest. Groups cost
// a multiplication per value to decode, so they have to save 1/64.
func planLayout(m int, limit uint64) layout {
	l := layout{limit: limit, group: 1, width: uint(bits.Len64(limit))}
	l.lanes, l.length = laneShape(m)
	if limit < 2 || limit >= maxGroupBase || limit&(limit+1) == 0 {
		return l
	}
	base := limit + 1
	best := l.length * int(l.width)
	enough := best - best/64
	power := base
	for g := 2; g <= maxGroup; g++ {
		if power *= base; power > 1<<maxGroupBits {
			break
		}
		width := uint(bits.Len64(power - 1))
		n := (l.length + g - 1) / g * int(width)
		if n < best && n <= enough {
			best, l.group, l.width = n, g, width
		}
	}
	return l
}

// layoutOf is the layout of m residuals in groups of g, as a decoder needs it;
// ok is false when no encoder makes such groups.
func layoutOf(m int, limit uint64, g int) (l layout, ok bool) {
	l = layout{limit: limit, group: g, width: uint(bits.Len64(limit))}
	l.lanes, l.length = laneShape(m)
	if g == 1 {
		return l, true
	}
	if g > maxGroup || limit >= maxGroupBase {
		return l, false
	}
	power := uint64(1)
	for range g {
		if power *= limit + 1; power > 1<<maxGroupBits {
			return l, false
		}
	}
	l.width = uint(bits.Len64(power - 1))
	return l, true
}

// groups is the number of fields of a lane: a division of up to 65 by the size of a group.
func (l *layout) groups() int {
	return (l.length + l.group - 1) * inverses[l.group&7] >> 16
}

var inverses = [8]int{1: 1 << 16, 2: 1 << 15, 3: 1<<16/3 + 1, 4: 1 << 14, 5: 1<<16/5 + 1,
	6: 1<<16/6 + 1}

func (l *layout) laneBits() int { return l.groups() * int(l.width) }

// Size is the number of bytes of the packed residuals.
func (l *layout) size() int {
	n := l.laneBits()
	return n>>6*8*l.lanes + bytesFor((n&63)*l.lanes)
}

// residuals is scratch for one value per slot, and zeros that fill up the last
// lane: 12 lanes of 60 are the most, fewer lanes are never longer.
type residuals [MaxLen]uint64

// pack appends the packed residuals to dst. Those behind the last value, up to
// the end of the last lane, are zero.
func (l *layout) pack(dst []byte, res *residuals) []byte {
	size := l.size()
	if size == 0 {
		return dst
	}
	dst = slices.Grow(dst, size)
	out := dst[len(dst) : len(dst)+size]
	n := l.laneBits()
	stride := 8 * l.lanes
	whole := out[:n>>6*stride]
	tails := BitWriter{Dst: whole}
	for j := range l.lanes {
		values := res[j*l.length : (j+1)*l.length]
		if l.group == 1 {
			tails.Put(kernel.Pack(whole[min(8*j, len(whole)):], stride, values, l.width), uint(n&63))
		} else {
			tails.Put(l.packGroups(out, 8*j, stride, values), uint(n&63))
		}
	}
	tails.Finish()
	return dst[:len(dst)+size]
}

// packGroups is kernel.Pack for groups of several values, from out[at:] on; the
// first value of a group is its lowest digit.
func (l *layout) packGroups(out []byte, at, stride int, values []uint64) uint64 {
	var acc uint64
	n, base := uint(0), l.limit+1
	for len(values) > 0 {
		g := min(l.group, len(values))
		v := uint64(0)
		for i := g - 1; i >= 0; i-- {
			v = v*base + values[i]
		}
		values = values[g:]
		acc |= v << (n & 63)
		n += l.width
		if n >= 64 {
			binary.LittleEndian.PutUint64(out[at:], acc)
			at += stride
			n -= 64
			acc = v >> (l.width - n)
		}
	}
	return acc
}

// unpack reads the residuals of count lanes from lane j on of body, which is
// l.size() bytes long.
func (l *layout) unpack(res *kernel.Residuals, body []byte, j, count int) {
	if l.width == 0 {
		clear(res[:kernel.Lanes*l.length])
		return
	}
	var rows kernel.Rows
	l.rows(&rows, body, j, count)
	if l.group == 1 {
		kernel.Unpack(res, &rows, l.width, l.length)
		return
	}
	g := l.fields()
	kernel.UnpackGroups(res, &rows, &g, l.length)
}

// rows fills in where count lanes from lane j on stand; r is zero.
func (l *layout) rows(r *kernel.Rows, body []byte, j, count int) {
	n := l.laneBits()
	r.Stride, r.Whole, r.Lanes = 8*l.lanes, n>>6, count
	if r.Whole > 0 {
		r.Body = body[8*j:]
	}
	if tail := n & 63; tail != 0 {
		fieldsAt(r.Tail[:count], body, 64*r.Whole*l.lanes+j*tail, uint(tail))
	}
}

func (l *layout) fields() kernel.Groups {
	return kernel.Groups{Size: l.group, Width: l.width, Base: l.limit + 1}
}
