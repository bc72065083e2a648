//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

// bmi2 is set once, before main.
var bmi2 = cpu.X86.HasBMI1 && cpu.X86.HasBMI2

func decode(dst []uint64, c *Codes, p *codePlace, k uint64) {
	if !bmi2 {
		decodeGo(dst, c, p, k)
		return
	}
	sign := uint64(0)
	if c.Signed {
		sign = 1
	}
	if c.Growth {
		decodeGrowingBMI2(&dst[0], &c.High[0], &c.Low[0], &p.word, k, c.Bias-1<<k, sign, uint64(len(dst)))
	} else {
		decodeBMI2(&dst[0], &c.High[0], &c.Low[0], &p.word, k, c.Bias, sign, uint64(len(dst)))
	}
}

func sums(s *[Lanes]uint64, res *Residuals, lanes, n int) {
	switch {
	case n == 0 || !avx2:
		sumsGo(s, res, n)
	case wide(lanes):
		sumsAVX512(&s[0], &res[0], uint64(n))
	default:
		for l := 0; l < lanes; l += inQuarters {
			sumsAVX2(&s[l], &res[l], uint64(n))
		}
	}
}
