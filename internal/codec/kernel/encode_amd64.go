//go:build amd64 && !purego

package kernel

func kinds(words []uint64) (k Kinds, done int) {
	n := inFours(len(words))
	if n == 0 {
		return noKinds, 0
	}
	k.all, k.any = kindsAVX2(&words[0], uint64(n))
	return k, n
}

// spreadLeast is how many integers pay for folding seven sums at the end.
const spreadLeast = 16

func integers(dst []int64, src []uint64) int {
	n := inFours(len(dst))
	if n > 0 {
		integersAVX2(&dst[0], &src[0], uint64(n))
	}
	return n
}

func offsets(dst []uint64, v []int64, base int64) int {
	n := inFours(len(dst))
	if n > 0 {
		offsetsAVX2(&dst[0], &v[0], base, uint64(n))
	}
	return n
}

func steps(dst []uint64, v []int64, base int64) int {
	n := inFours(len(dst))
	if n > 0 {
		stepsAVX2(&dst[0], &v[0], base, uint64(n))
	}
	return n
}

func spread(s *Spread, v []int64) int {
	n := inFours(len(v) - 1)
	if n < spreadLeast {
		return 0
	}
	var out [7]int64
	spreadAVX2(&out[0], &v[0], uint64(n))
	s.Min, s.Max = min(s.Min, out[0]), max(s.Max, out[1])
	s.MinStep, s.MaxStep = out[2], out[3]
	s.Equal = out[4]
	// The upper halves were counted with 2^31 added to each.
	s.High += out[5] - int64(n)<<31
	s.Low += out[6]
	return n
}

func scaledIntegers(dst []int64, src []uint64, q Quotient) int {
	n := inFours(len(src))
	if n == 0 {
		return 0
	}
	return int(scaledAVX2(&dst[0], &src[0], q.Scale, q.Keep, uint64(n)))
}

func turn(dst []uint64, height int, src []uint64, width, rows int) int {
	n := inFours(rows)
	if n > 0 {
		turnAVX2(&dst[0], &src[0], uint64(8*width), uint64(8*height), uint64(n))
	}
	return n
}

// packWidth is the most bits of fields of which four fit a word.
const packWidth = 16

func pack(out []byte, stride int, values []uint64, width uint) (rest uint64, done int) {
	n := inFours(len(values))
	if n == 0 || width > packWidth || len(out) == 0 {
		return 0, 0
	}
	return packAVX2(&out[0], uint64(stride), &values[0], uint64(width), uint64(n)), n
}
