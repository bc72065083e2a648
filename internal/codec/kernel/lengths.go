package kernel

import "math/bits"

// BitLengths counts numbers by their bits: number i is how many have i.
type BitLengths [72]uint8

// Count sets c to what v less base has, up to CodeBlock numbers. With signed the zigzags of the
// differences count. It returns how many bits the longest has.
func (c *BitLengths) Count(v []uint64, base uint64, signed bool) (longest int) {
	if len(v) > CodeBlock {
		panic("kernel: more numbers than a block has")
	}
	all, done := bitLengths(c, v, base, signed)
	for _, x := range v[done:] {
		if x -= base; signed {
			x = x<<1 ^ uint64(int64(x)>>63)
		}
		c[bits.Len64(x)]++
		all |= x
	}
	return bits.Len64(all)
}

// Excess fills dst with v less base, with signed with the zigzags of the differences, and
// returns the bits that any of them has; dst is not longer than v.
func Excess(dst, v []uint64, base uint64, signed bool) (all uint64) {
	v = v[:len(dst)]
	all, done := excess(dst, v, base, signed)
	for i := done; i < len(dst); i++ {
		x := v[i] - base
		if signed {
			x = x<<1 ^ uint64(int64(x)>>63)
		}
		dst[i] = x
		all |= x
	}
	return all
}

// Quotients returns the sum of v, each shifted right by k, modulo 2^64; k is below 64.
func Quotients(v []uint64, k uint) (sum uint64) {
	sum, done := quotients(v, k)
	for _, x := range v[done:] {
		sum += x >> (k & 63)
	}
	return sum
}

// Sides tells how some integers lie around one.
type Sides struct {
	// Others has bit i set when integer i is another one.
	Others uint64
	// Below and Above are how many lie on either side, Least is the least of their
	// distances, with its sign, or 0 where there is none. Those whose distance has a zigzag of
	// the limit or more are left out.
	Below, Above int
	Least        int64
}

// SidesOf looks at v around center, up to 64 integers; limit is not 0.
func SidesOf(v []uint64, center, limit uint64) Sides {
	if len(v) > 64 || limit == 0 {
		panic("kernel: sides of more than 64 integers, or of none")
	}
	s, done := sides(v, center, limit)
	for i, x := range v[done:] {
		d := int64(x - center)
		if d == 0 {
			continue
		}
		s.Others |= 1 << (done + i)
		if uint64(d<<1^d>>63) >= limit {
			continue
		}
		if d < 0 {
			s.Below++
		} else {
			s.Above++
		}
		if d < s.Least || s.Below+s.Above == 1 {
			s.Least = d
		}
	}
	return s
}
