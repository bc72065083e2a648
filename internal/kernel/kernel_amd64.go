//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

// avx2 is set once, before main: a constant of the machine.
var avx2 = cpu.X86.HasAVX2

// masks choose the lanes that are loaded, so that nothing is read behind the
// last lane of the last row.
var masks = [Lanes + 1][Lanes]uint64{
	1: {^uint64(0)},
	2: {^uint64(0), ^uint64(0)},
	3: {^uint64(0), ^uint64(0), ^uint64(0)},
	4: {^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)},
}

// empty stands for a body without whole words.
var empty [1]byte

func (r *Rows) body() *byte {
	if len(r.Body) == 0 {
		return &empty[0]
	}
	return &r.Body[0]
}

func unpack(res *Residuals, r *Rows, width uint, n int) {
	if !avx2 {
		unpackGo(res, r, width, n)
		return
	}
	unpackAVX2(&res[0], r.body(), uint64(r.Stride), uint64(r.Whole), &r.Tail[0], &masks[r.Lanes][0], uint64(width), uint64(n))
}

func unpackGroups(res *Residuals, r *Rows, g *Groups, n int) {
	recip, shift := g.reciprocal()
	// Only a base of a power of two, which no encoder groups, has a longer one.
	if !avx2 || recip >= 1<<32 {
		unpackGroupsGo(res, r, g, n)
		return
	}
	unpackGroupsAVX2(&res[0], r.body(), uint64(r.Stride), uint64(r.Whole), &r.Tail[0], &masks[r.Lanes][0], uint64(g.Width),
		uint64((n+g.Size-1)/g.Size), uint64(g.Size), g.Base, recip, uint64(shift))
}

func add(v *Values, res *Residuals, base uint64, lanes, n int) {
	if !avx2 {
		addGo(v, res, base, lanes, n)
		return
	}
	addAVX2(&v[0][0], &res[0], base, uint64(n))
}

func add1(v *Values, res *Residuals, base uint64, start *[Lanes]uint64, lanes, n int) {
	if !avx2 {
		add1Go(v, res, base, start, lanes, n)
		return
	}
	add1AVX2(&v[0][0], &res[0], base, &start[0], uint64(n))
}

func add2(v *Values, res *Residuals, base uint64, start, step *[Lanes]uint64, lanes, n int) {
	if !avx2 {
		add2Go(v, res, base, start, step, lanes, n)
		return
	}
	add2AVX2(&v[0][0], &res[0], base, &start[0], &step[0], uint64(n))
}

// inFours is how many of n words the assembly does, which takes four at a time.
func inFours(n int) int {
	if !avx2 {
		return 0
	}
	return n &^ 3
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

func decimals(dst, src []uint64, scale float64) int {
	n := inFours(len(dst))
	if n > 0 {
		decimalsAVX2(&dst[0], &src[0], scale, uint64(n))
	}
	return n
}

func measure(e *Extent, words []uint64) int {
	n := inFours(len(words))
	if n > 0 {
		var out [5]uint64
		measureAVX2(&out[0], &words[0], uint64(n))
		*e = Extent{And: out[0], Or: out[1], Least: int64(out[2]), Most: int64(out[3]), Sum: int64(out[4])}
	}
	return n
}
