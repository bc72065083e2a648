// Package kernel holds the inner loops of the chunk codec and of the stream decoder, which
// run for every point, and nothing else.
//
// Each loop exists twice: in Go, which is the definition, and as assembly for amd64 with
// AVX2, which gen generates. Both give the same bits for every input that the comments
// allow; the tests compare them. Go runs with the build tag purego, on other processors,
// and on those without AVX2.
//
// Lanes are the runs of values of a chunk that no prediction crosses. Up to
// twelve of them, all that a chunk has, are decoded side by side.
package kernel

import "math/bits"

// Lanes is how many lanes are decoded side by side.
const Lanes = 12

const (
	// MaxLane is the largest number of values of a lane.
	MaxLane = 60
	// spare is how many values more the loops may write, because they handle
	// four values at a time, or a group of up to six.
	spare = 8
)

// Residuals are the packed fields of lanes: the field i of lane l is number
// Lanes*i + l.
type Residuals [Lanes * (MaxLane + spare)]uint64

// Values are the values of lanes.
type Values [Lanes][MaxLane + spare]uint64

// Rows is where the packed bits of lanes stand. The 64-bit words of
// a lane are one row apart, so that the same word of all lanes is a row.
type Rows struct {
	// Body begins with word 0 of the first lane wanted.
	Body []byte
	// Stride is the number of bytes of a row, Whole the number of rows.
	Stride, Whole int
	// Lanes is the number of lanes wanted, 1 to 12.
	Lanes int
	// Tail are the bits behind the last row.
	Tail [Lanes]uint64
}

// check panics where the rows are not within the body: what follows reads
// without looking.
func (r *Rows) check(bits int) {
	if r.Lanes < 1 || r.Lanes > Lanes || r.Whole < 0 || bits > 64*(r.Whole+1) ||
		r.Whole > 0 && (r.Stride < 8*r.Lanes || (r.Whole-1)*r.Stride+8*r.Lanes > len(r.Body)) {
		panic("kernel: lanes outside of their bytes")
	}
}

// Unpack reads n fields of width bits, 1 to 64, of each lane; n is at most
// MaxLane. Residuals of lanes that are not wanted have no defined value.
func Unpack(res *Residuals, r *Rows, width uint, n int) {
	if width < 1 || width > 64 || n < 0 || n > MaxLane {
		panic("kernel: fields that no lane has")
	}
	r.check(n * int(width))
	unpack(res, r, width, n)
}

// Groups tells how several residuals are one field: as the digits of a number
// to Base, the first one the lowest.
type Groups struct {
	// Size is the number of digits, 2 to 6, Width the bits of a field, at most
	// 31. Base is below 2^16.
	Size  int
	Width uint
	Base  uint64
}

// reciprocal returns what a field is multiplied by and shifted by to be divided
// by the base: with s = width + bits(base) and M = 2^s/base + 1, x/base is
// x*M >> s for every x of width bits, and x*M stays below 2^64.
func (g *Groups) reciprocal() (m uint64, shift uint) {
	shift = g.Width + uint(bits.Len64(g.Base))
	return 1<<shift/g.Base + 1, shift
}

// UnpackGroups reads the n residuals, at most MaxLane, of each lane.
func UnpackGroups(res *Residuals, r *Rows, g *Groups, n int) {
	if g.Size < 2 || g.Size > 6 || g.Width < 1 || g.Width > 31 || g.Base < 1 || g.Base >= 1<<16 ||
		n < 0 || n > MaxLane {
		panic("kernel: groups that no lane has")
	}
	r.check((n + g.Size - 1) / g.Size * int(g.Width))
	unpackGroups(res, r, g, n)
}

// Add makes values of the residuals of 1 to 12 lanes: it adds base to each. n is
// at most MaxLane; values behind the first n, and those of other lanes, have no
// defined value.
func Add(v *Values, res *Residuals, base uint64, lanes, n int) {
	checkLanes(lanes, n)
	add(v, res, base, lanes, n)
}

// Add1 makes values of differences less base. start holds the value before the
// first one of each lane.
func Add1(v *Values, res *Residuals, base uint64, start *[Lanes]uint64, lanes, n int) {
	checkLanes(lanes, n)
	add1(v, res, base, start, lanes, n)
}

// Add2 makes values of second differences less base. start and step hold the
// value and the first difference before the first one of each lane.
func Add2(v *Values, res *Residuals, base uint64, start, step *[Lanes]uint64, lanes, n int) {
	checkLanes(lanes, n)
	add2(v, res, base, start, step, lanes, n)
}

func checkLanes(lanes, n int) {
	if lanes < 1 || lanes > Lanes || n < 0 || n > MaxLane {
		panic("kernel: no such lanes")
	}
}

// Fill sets all of dst to w.
func Fill(dst []uint64, w uint64) { fill(dst, w) }

// Ints makes integer words of the values src; dst is not longer than src.
func Ints(dst, src []uint64) {
	src = src[:len(dst)]
	done := ints(dst, src)
	intsGo(dst[done:], src[done:])
}

// Bits makes float words of the bits of doubles, less shift zeros at the end; dst is not
// longer than src.
func Bits(dst, src []uint64, shift uint) {
	src = src[:len(dst)]
	done := floatBits(dst, src, shift&63)
	bitsGo(dst[done:], src[done:], shift&63)
}

// Decimals makes the float words that stand for the values, as int64; dst is not longer
// than src, and may be src.
func Decimals(dst, src []uint64, q Quotient) {
	src = src[:len(dst)]
	done := decimals(dst, src, q)
	decimalsGo(dst[done:], src[done:], q)
}

// Extent is what can be said of some words at a look.
type Extent struct {
	Kinds
	// Least, Most and Sum are those of the integers. They tell something only where all
	// words are integers. Sum is right for up to 256.
	Least, Most, Sum int64
}

// Measure looks at words, of which there is at least one.
func Measure(words []uint64) Extent {
	w := words[0]
	e := Extent{Kinds: Kinds{withMark(w), withMark(w)}, Least: intOf(w), Most: intOf(w)}
	done := measure(&e, words)
	measureGo(&e, words[done:])
	return e
}
