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

const (
	// wideCodesMin numbers are worth looking for their ends first.
	wideCodesMin = 16
	// wideCodesMax bytes have less than 2^16 quotients and bits.
	wideCodesMax = 1 << 13
)

// codeTable are constants, a register each: the numbers of a word's bits, those of a lane's
// bytes, the first byte of each lane within 16, and the numbers of lanes.
var codeTable = func() (t [4 * 64]byte) {
	for i := range byte(64) {
		t[i], t[64+i], t[2*64+i] = i, i&7, i&8
		if i&7 == 0 {
			t[3*64+i] = i >> 3
		}
	}
	return t
}()

// decodeWide decodes with AVX-512, and reports whether it could.
func decodeWide(dst []uint64, c *Codes, e *CodeEnds) bool {
	if !avx512 || !avx512Cells || len(dst) < wideCodesMin || len(dst) > Lanes*MaxLane ||
		len(c.High) >= wideCodesMax {
		return false
	}
	sign, pos := uint64(0), uint64(0)
	if c.Signed {
		sign = 1
	}
	e[0] = ^uint16(0) // the one before the first ends in front of all
	codeEndsAVX512(&e[1], &c.High[0], &codeTable[0], uint64(len(dst)))
	for from := 0; from < len(dst); from += CodeBlock {
		n := min(CodeBlock, len(dst)-from)
		k := uint64(c.K[from/CodeBlock] & 63)
		if c.Growth {
			decodeGrowingAVX512(&dst[from], &e[from], &c.Low[0], &codeTable[0], k, pos, c.Bias-1<<k, sign,
				uint64(n))
			pos += uint64(e[from+n] - e[from] - uint16(n)) // the quotients
		} else {
			decodeAVX512(&dst[from], &e[from], &c.Low[pos/8], &codeTable[0], k, 0, c.Bias, sign, uint64(n))
		}
		pos += k * uint64(n)
	}
	return true
}

func sums(s *[Lanes]uint64, res *Residuals, lanes, n int) {
	switch {
	case n == 0 || !avx2:
		sumsGo(s, res, n)
	case isWide(lanes):
		sumsAVX512(&s[0], &res[0], uint64(n))
	default:
		for l := 0; l < lanes; l += inQuarters {
			sumsAVX2(&s[l], &res[l], uint64(n))
		}
	}
}
