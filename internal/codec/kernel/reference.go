package kernel

import (
	"encoding/binary"
	"math"
	"math/bits"
)

const (
	intTag      = uint64(1) << 56
	intPayload  = intTag - 1
	floatMarker = uint64(1) << 63
	firstFloat  = uint64(4) << 56
	stale       = uint64(1) // a stale marker
)

func intOf(w uint64) int64 { return int64(w<<8) >> 8 }

// bitsOf returns the bits of the double of a float word, wordOf the word of a double.
func bitsOf(w uint64) uint64 { return bits.RotateLeft64(w^floatMarker, 1) }

func wordOf(double uint64) uint64 { return bits.RotateLeft64(sendable(double), -1) ^ floatMarker }

// sendable returns the bits of the double that has the word of this one: the positive
// ones below 2^-895 have none of their own where the lowest bit is 1.
func sendable(double uint64) uint64 {
	if double < 1<<59 {
		return double &^ 1
	}
	return double
}

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
		dst[i] = wordOf(src[i] << shift)
	}
}

// Quotient says which float stands for an integer: the integer divided by Scale, a power of
// ten up to 10^9, rounded once. Of its bits those of Keep count, Whole or Even.
type Quotient struct {
	Scale float64
	Keep  uint64
}

// The bits of a quotient that count. The original's protocol drops the lowest one.
const (
	Whole = ^uint64(0)
	Even  = Whole - 1
)

// bits returns those of the double of k.
func (q Quotient) bits(k int64) uint64 { return math.Float64bits(float64(k)/q.Scale) & q.Keep }

// Word returns the float word of k.
func (q Quotient) Word(k int64) uint64 { return wordOf(q.bits(k)) }

func decimalsGo(dst, src []uint64, q Quotient) {
	for i := range dst {
		dst[i] = q.Word(int64(src[i]))
	}
}

// Kinds is which kinds of words there are among some, of which there is at least one.
type Kinds struct {
	// The bits that all have and those that any has, once marked.
	all, any uint64
}

// noKinds are those of no words.
var noKinds = Kinds{all: ^uint64(0)}

// The first byte of a marked word.
const (
	markedUnset = 0x80 - 0x04
	markedInt   = markedUnset + 1
)

// withMark adds to the first byte of w, so that only a float has the highest bit set.
func withMark(w uint64) uint64 {
	return min(w>>56+markedUnset, 0xff)<<56 | w&intPayload
}

func (k *Kinds) add(w uint64) {
	w = withMark(w)
	k.all &= w
	k.any |= w
}

// Ints reports whether all are integers.
func (k Kinds) Ints() bool { return k.all>>56 == markedInt && k.any>>56 == markedInt }

// Floats reports whether all are floats.
func (k Kinds) Floats() bool { return k.all>>63 == 1 }

// HasFloat reports whether any is a float.
func (k Kinds) HasFloat() bool { return k.any>>63 == 1 }

// Unset reports whether none is a value.
func (k Kinds) Unset() bool { return k.any>>56 == markedUnset }

func measureGo(e *Extent, words []uint64) {
	for _, w := range words {
		v := intOf(w)
		e.add(w)
		e.Least, e.Most = min(e.Least, v), max(e.Most, v)
		e.Sum += v
	}
}
