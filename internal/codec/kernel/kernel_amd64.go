//go:build amd64 && !purego

package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// avx2 is set once, before main: a constant of the machine.
var avx2 = cpu.X86.HasAVX2

// avx512 tells of vectors of 512 bits, the same instructions for shorter ones, and
// shifts of two words as one. It is a variable for the tests.
var avx512 = avx2 && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VBMI2

// inQuarters is how many lanes a register of AVX2 has.
const inQuarters = 4

// isWide reports whether lanes are worth all registers of AVX-512, which have
// twelve: eight in one and four in half of another.
func isWide(lanes int) bool { return avx512 && lanes > inQuarters }

// masks choose the lanes that are loaded, so that nothing is read behind the
// last lane of the last row.
var masks = [inQuarters + 1][inQuarters]uint64{
	1: {^uint64(0)},
	2: {^uint64(0), ^uint64(0)},
	3: {^uint64(0), ^uint64(0), ^uint64(0)},
	4: {^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)},
}

// empty stands for a body without whole words.
var empty [1]byte

// body is where lane l begins.
func (r *Rows) body(l int) *byte {
	if r.Whole == 0 {
		return &empty[0]
	}
	return &r.Body[8*l]
}

// laneEnding are the bits of rows from the last whole one on, and a row of zeros.
type laneEnding [3][Lanes]uint64

// split divides n fields: inner of them begin before the last whole row, so that
// two rows can be read for each. The others begin with bit pos of e.
func (r *Rows) split(e *laneEnding, width uint, n int) (inner int, pos uint) {
	if r.Whole == 0 {
		e[0] = r.Tail
		return 0, 0
	}
	before := 64 * uint(r.Whole-1)
	inner = min(n, int((before+width-1)/width))
	copy((*[8 * Lanes]byte)(unsafe.Pointer(&e[0]))[:8*r.Lanes], r.Body[(r.Whole-1)*r.Stride:])
	e[1] = r.Tail
	return inner, uint(inner)*width - before
}

func unpack(res *Residuals, r *Rows, width uint, n int) {
	switch {
	case isWide(r.Lanes):
		var e laneEnding
		inner, pos := r.split(&e, width, n)
		unpackAVX512(&res[0], r.body(0), uint64(r.Stride), 1<<r.Lanes-1, 0, uint64(width), uint64(inner))
		unpackAVX512(&res[Lanes*inner], (*byte)(unsafe.Pointer(&e)), 8*Lanes, 1<<Lanes-1, uint64(pos),
			uint64(width), uint64(n-inner))
	case avx2:
		for l := 0; l < r.Lanes; l += inQuarters {
			unpackAVX2(&res[l], r.body(l), uint64(r.Stride), uint64(r.Whole), &r.Tail[l],
				&masks[min(r.Lanes-l, inQuarters)][0], uint64(width), uint64(n))
		}
	default:
		unpackGo(res, r, width, n)
	}
}

func unpackGroups(res *Residuals, r *Rows, g *Groups, n int) {
	recip, s := g.reciprocal()
	groups := (n + g.Size - 1) / g.Size
	width, size, shift := uint64(g.Width), uint64(g.Size), uint64(s)
	switch {
	// Only a base of a power of two, which no encoder groups, has a longer one.
	case !avx2 || recip >= 1<<32:
		unpackGroupsGo(res, r, g, n)
	case isWide(r.Lanes):
		var e laneEnding
		inner, pos := r.split(&e, g.Width, groups)
		unpackGroupsAVX512(&res[0], r.body(0), uint64(r.Stride), 1<<r.Lanes-1, 0, width, uint64(inner),
			size, g.Base, recip, shift)
		unpackGroupsAVX512(&res[Lanes*g.Size*inner], (*byte)(unsafe.Pointer(&e)), 8*Lanes, 1<<Lanes-1,
			uint64(pos), width, uint64(groups-inner), size, g.Base, recip, shift)
	default:
		for l := 0; l < r.Lanes; l += inQuarters {
			unpackGroupsAVX2(&res[l], r.body(l), uint64(r.Stride), uint64(r.Whole), &r.Tail[l],
				&masks[min(r.Lanes-l, inQuarters)][0], width,
				uint64(groups), size, g.Base, recip, shift)
		}
	}
}

func add(v *Values, res *Residuals, base uint64, lanes, n int) {
	if !avx2 {
		addGo(v, res, base, lanes, n)
		return
	}
	for l := 0; l < lanes; l += inQuarters {
		addAVX2(&v[l][0], &res[l], base, uint64(n))
	}
}

func add1(v *Values, res *Residuals, base uint64, start *[Lanes]uint64, lanes, n int) {
	if !avx2 {
		add1Go(v, res, base, start, lanes, n)
		return
	}
	for l := 0; l < lanes; l += inQuarters {
		add1AVX2(&v[l][0], &res[l], base, &start[l], uint64(n))
	}
}

func add2(v *Values, res *Residuals, base uint64, start, step *[Lanes]uint64, lanes, n int) {
	if !avx2 {
		add2Go(v, res, base, start, step, lanes, n)
		return
	}
	for l := 0; l < lanes; l += inQuarters {
		add2AVX2(&v[l][0], &res[l], base, &start[l], &step[l], uint64(n))
	}
}

// inFours is how many of n words the assembly does, which takes four at a time.
func inFours(n int) int {
	if !avx2 {
		return 0
	}
	return n &^ 3
}

func fill(dst []uint64, w uint64) {
	if !avx2 || len(dst) < 4 {
		fillGo(dst, w)
		return
	}
	fillAVX2(&dst[0], w, uint64(len(dst)))
}

func ints(dst, src []uint64) int {
	n := inFours(len(dst))
	if n > 0 {
		intsAVX2(&dst[0], &src[0], uint64(n))
	}
	return n
}

func floatBits(dst, src []uint64, shift uint) int {
	n := inFours(len(dst))
	if n > 0 {
		bitsAVX2(&dst[0], &src[0], uint64(shift), uint64(n))
	}
	return n
}

func decimals(dst, src []uint64, q Quotient) int {
	n := inFours(len(dst))
	if n > 0 {
		decimalsAVX2(&dst[0], &src[0], q.Scale, q.Keep, uint64(n))
	}
	return n
}

func measure(e *Extent, words []uint64) int {
	n := inFours(len(words))
	if n > 0 {
		var out [5]uint64
		measureAVX2(&out[0], &words[0], uint64(n))
		*e = Extent{
			Kinds: Kinds{out[0], out[1]},
			Least: int64(out[2]),
			Most:  int64(out[3]),
			Sum:   int64(out[4]),
		}
	}
	return n
}
