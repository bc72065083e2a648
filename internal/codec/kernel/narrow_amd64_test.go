//go:build unix && amd64 && !purego

package kernel

import (
	"math/bits"
	"testing"
)

var hasNarrow = avx512 && avx512Cells

// Every base that groups may have divides every cell that they may have.
func TestNarrowDivision(t *testing.T) {
	for size := 2; size <= 6; size++ {
		for base := uint64(2); power(base, size) <= 1<<31; base++ {
			g := Groups{Size: size, Width: uint(bits.Len64(power(base, size) - 1)), Base: base}
			var n narrowPlan
			if _, ok := n.divide(&g); !ok {
				continue
			}
			inverse, half := n.inverseLast&0xffff, 1<<16-n.more&0xffff_ffff
			for x := uint64(0); x < half; x += 1 + (half-1)>>6 {
				for _, x := range []uint64{x, x - x%base, half - 1 - x} {
					if q := x * inverse >> (16 + n.inverseShift); q != x/base {
						t.Fatalf("%d / %d = %d by %d", x, base, q, inverse)
					}
				}
			}
		}
	}
}
