package kernel

import (
	"encoding/binary"
	"math"
)

const (
	intTag      = uint64(1) << 56
	intPayload  = intTag - 1
	floatMarker = uint64(1) << 63
	firstFloat  = uint64(4) << 56
)

func intOf(w uint64) int64 { return int64(w<<8) >> 8 }

// lane holds the words of one lane, gathered first so that the loops below have
// no branches. A lane is up to 60 words long; what stands behind it does not
// reach the residuals.
type lane [64]uint64

func (w *lane) gather(r *Rows, l int) {
	for k := range r.Whole {
		w[k&63] = binary.LittleEndian.Uint64(r.Body[k*r.Stride+8*l:])
	}
	w[r.Whole&63] = r.Tail[l]
}

// field returns the 64 bits from bit pos on.
func (w *lane) field(pos uint) uint64 {
	k, s := pos>>6, pos&63
	return w[k&63]>>s | w[(k+1)&63]<<1<<(63-s)
}

func unpackGo(res *Residuals, r *Rows, width uint, n int) {
	var words lane
	keep := ^uint64(0) >> (64 - width)
	for l := range r.Lanes {
		words.gather(r, l)
		out, pos := res[l:], uint(0)
		for i := range n {
			out[Lanes*i] = words.field(pos) & keep
			pos += width
		}
	}
}

func unpackGroupsGo(res *Residuals, r *Rows, g *Groups, n int) {
	var words lane
	keep := ^uint64(0) >> (64 - g.Width)
	recip, shift := g.reciprocal()
	for l := range r.Lanes {
		words.gather(r, l)
		pos := uint(0)
		for at := 0; at < n; at += g.Size {
			x := words.field(pos) & keep
			pos += g.Width
			digits := res[Lanes*at+l : Lanes*(at+g.Size-1)+l+1]
			for i := 0; i < len(digits)-1; i += Lanes {
				q := x * recip >> (shift & 63)
				digits[i] = x - q*g.Base
				x = q
			}
			digits[len(digits)-1] = x
		}
	}
}

func addGo(v *Values, res *Residuals, base uint64, lanes, n int) {
	for l := range v[:lanes] {
		in, out := res[l:], v[l][:n]
		for i := range out {
			out[i] = in[Lanes*i] + base
		}
	}
}

func add1Go(v *Values, res *Residuals, base uint64, start *[Lanes]uint64, lanes, n int) {
	for l := range v[:lanes] {
		in, out, x := res[l:], v[l][:n], start[l]
		for i := range out {
			x += in[Lanes*i] + base
			out[i] = x
		}
	}
}

func add2Go(v *Values, res *Residuals, base uint64, start, step *[Lanes]uint64, lanes, n int) {
	for l := range v[:lanes] {
		in, out, x, d := res[l:], v[l][:n], start[l], step[l]
		for i := range out {
			d += in[Lanes*i] + base
			x += d
			out[i] = x
		}
	}
}

func fillGo(dst []uint64, w uint64) {
	for i := range dst {
		dst[i] = w
	}
}

func intsGo(dst, src []uint64) {
	for i := range dst {
		dst[i] = intTag | src[i]&intPayload
	}
}

func bitsGo(dst, src []uint64, shift uint) {
	for i := range dst {
		dst[i] = src[i]<<shift | floatMarker
	}
}

// Decimal returns the float word of the quotient of k and scale.
func Decimal(k int64, scale float64) uint64 {
	return math.Float64bits(float64(k)/scale)>>1 | floatMarker
}

func decimalsGo(dst, src []uint64, scale float64) {
	for i := range dst {
		dst[i] = Decimal(int64(src[i]), scale)
	}
}

func measureGo(e *Extent, words []uint64) {
	for _, w := range words {
		v := intOf(w)
		e.And &= w
		e.Or |= w
		e.Least, e.Most = min(e.Least, v), max(e.Most, v)
		e.Sum += v
	}
}
