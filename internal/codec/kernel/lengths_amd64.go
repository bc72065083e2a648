//go:build amd64 && !purego

package kernel

import "math"

// lengthsAtOnce are counted together: they fill two registers.
const lengthsAtOnce = 8

func bitLengths(c *BitLengths, v []uint64, base uint64, signed bool) (all uint64, done int) {
	n := len(v) &^ (lengthsAtOnce - 1)
	if n == 0 || !avx2 {
		clear(c[:])
		return 0, 0
	}
	return bitLengthsAVX2(&c[0], &v[0], base, oneIf(signed), uint64(n)), n
}

func excess(dst, v []uint64, base uint64, signed bool) (all uint64, done int) {
	n := inFours(len(dst))
	if n == 0 {
		return 0, 0
	}
	return excessAVX2(&dst[0], &v[0], base, oneIf(signed), uint64(n)), n
}

func oneIf(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func quotients(v []uint64, k uint) (sum uint64, done int) {
	n := inFours(len(v))
	if n == 0 {
		return 0, 0
	}
	return quotientsAVX2(&v[0], uint64(k&63), uint64(n)), n
}

func sides(v []uint64, center, limit uint64) (s Sides, done int) {
	n := inFours(len(v))
	if n == 0 {
		return Sides{}, 0
	}
	others, below, left, least := sidesAVX2(&v[0], center, limit-1, uint64(n))
	s = Sides{Others: others, Below: int(below), Above: n - int(below) - int(left), Least: least}
	if least == math.MaxInt64 {
		s.Least = 0
	}
	return s, n
}
