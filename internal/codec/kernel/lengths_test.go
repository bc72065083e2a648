//go:build unix

package kernel

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// aroundSome changes integers so that many lie close to a center, and some are equal to it.
func aroundSome(r *rand.Rand, v []uint64) (center uint64) {
	center = random(r)
	width := r.IntN(64)
	for i := range v {
		switch r.IntN(8) {
		case 0:
			v[i] = center
		case 1:
			v[i] = random(r)
		default:
			v[i] = center + uint64(int64(r.Uint64())>>width)
		}
	}
	return center
}

func TestBitLengthsAreReference(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for n := range CodeBlock + 1 {
		for range 50 {
			v := wordsAtPageEnd(n)
			base, signed := aroundSome(r, v), r.IntN(2) == 0
			var want BitLengths
			most := 0
			for _, x := range v {
				if x -= base; signed && int64(x) < 0 {
					x = ^(2 * x)
				} else if signed {
					x *= 2
				}
				want[bits.Len64(x)]++
				most = max(most, bits.Len64(x))
			}
			got := BitLengths{7, 8, 9, 71: 3}
			if longest := got.Count(v, base, signed); got != want || longest != most {
				t.Fatalf("%x less %#x, signed %v: %d up to %d, want %d up to %d", v, base, signed, got, longest,
					want, most)
			}
		}
	}
}

// Every length, with all bits set, with the highest alone, and with the two highest.
func TestBitLengthsOfPowers(t *testing.T) {
	for length := 1; length <= 64; length++ {
		high := uint64(1) << (length - 1)
		for _, x := range []uint64{high, high | (high - 1), high | high>>1} {
			v := make([]uint64, CodeBlock)
			for i := range v {
				v[i] = x
			}
			var c BitLengths
			if longest := c.Count(v, 0, false); longest != length || c[length] != CodeBlock {
				t.Errorf("%#x has %d bits: %d", x, longest, c)
			}
		}
	}
}

func TestExcessIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	for v := range sources(r) {
		base, signed := aroundSome(r, v), r.IntN(2) == 0
		got, want, bits := wordsAtPageEnd(len(v)), make([]uint64, len(v)), uint64(0)
		for i, x := range v {
			d := int64(x - base)
			switch want[i] = uint64(d); {
			case signed && d < 0:
				want[i] = uint64(-d)*2 - 1
			case signed:
				want[i] = uint64(d) * 2
			}
			bits |= want[i]
		}
		if all := Excess(got, v, base, signed); all != bits {
			t.Fatalf("%x less %#x, signed %v: bits %#x, want %#x", v, base, signed, all, bits)
		}
		requireEqual(t, "numbers", got, want, v)
	}
}

func TestQuotientsAreReference(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	for v := range sources(r) {
		k, want := uint(r.IntN(64)), uint64(0)
		for _, x := range v {
			want += x >> k
		}
		if got := Quotients(v, k); got != want {
			t.Fatalf("%x shifted by %d: %#x, want %#x", v, k, got, want)
		}
	}
}

func TestSidesAreReference(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	for n := range 65 {
		for range 50 {
			v := wordsAtPageEnd(n)
			center, limit := aroundSome(r, v), max(random(r)>>r.IntN(64), 1)
			var want Sides
			for i, x := range v {
				d := int64(x - center)
				if d != 0 {
					want.Others |= 1 << i
				}
				if d == 0 || uint64(d)<<1^uint64(d>>63) >= limit {
					continue
				}
				if want.Below+want.Above == 0 || d < want.Least {
					want.Least = d
				}
				if d < 0 {
					want.Below++
				} else {
					want.Above++
				}
			}
			if got := SidesOf(v, center, limit); got != want {
				t.Fatalf("%x around %#x below %#x: %+v, want %+v", v, center, limit, got, want)
			}
		}
	}
}
