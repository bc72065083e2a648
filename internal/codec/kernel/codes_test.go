//go:build unix

package kernel

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

// naiveCodes decodes bit by bit.
func naiveCodes(c *Codes, n int) (all []uint64) {
	high, low := naiveBits(c.High), naiveBits(c.Low)
	at, pos := 0, 0
	for i := range n {
		q, k := 0, int(c.K[i/CodeBlock])
		for ; high.Bit(at) == 0; at++ {
			q++
		}
		at++
		width, lead := k, uint64(q)<<k
		if c.Growth {
			width, lead = (k+q)%64, 1<<((k+q)%64)-1<<k
		}
		u := lead + c.Bias
		for b := range min(width, 64-pos%8) { // what one load holds
			u += uint64(low.Bit(pos+b)) << b
		}
		if pos += k; c.Growth {
			pos += q
		}
		if c.Signed && u%2 == 0 {
			u /= 2
		} else if c.Signed {
			u = ^(u / 2)
		}
		all = append(all, u)
	}
	return all
}

func naiveBits(src []byte) *big.Int {
	reversed := make([]byte, len(src))
	for i, b := range src {
		reversed[len(src)-1-i] = b
	}
	return new(big.Int).SetBytes(reversed)
}

// drawCodes makes codes of n numbers of any bits, whose bytes end where nothing may be
// read.
func drawCodes(r *rand.Rand, n int) *Codes {
	c := &Codes{Growth: r.IntN(2) == 0, Signed: r.IntN(2) == 0,
		Bias: []uint64{0, 1, 77, ^uint64(5)}[r.IntN(4)]}
	longest := 1 + r.IntN([]int{2, 6, 30, 200}[r.IntN(4)])
	var high big.Int
	at, low := 0, 0
	for i := range n {
		if i%CodeBlock == 0 {
			c.K = append(c.K, uint8(r.IntN([]int{1, 8, 39, 64}[r.IntN(4)])))
		}
		q := r.IntN(longest)
		at += q
		high.SetBit(&high, at, 1)
		at++
		if low += int(c.K[i/CodeBlock]); c.Growth {
			low += q
		}
	}
	c.High, c.Low = paddedTo(at), paddedTo(low)
	for i := range (at + 7) / 8 {
		for b := range 8 {
			c.High[i] |= byte(high.Bit(8*i+b)) << b
		}
	}
	for i := range (low + 7) / 8 {
		c.Low[i] = byte(r.Uint32())
	}
	return c
}

// paddedTo returns zeros for a number of bits, and what is read behind them, at the end of a
// page.
func paddedTo(bits int) []byte {
	words := wordsAtPageEnd((bits+7)/8/8 + 1 + CodeSpare/8) // and swaps the memories
	clear(words)
	return atPageEnd((bits+7)/8 + CodeSpare)
}

func TestCodesAreNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range 400 {
		n := 1 + r.IntN(720)
		c := drawCodes(r, n)
		want := naiveCodes(c, n)
		got := make([]uint64, n)
		c.Decode(got, new(CodeEnds))
		requireEqual(t, "codes", got, want, nil)
		p, all := codePlace{prev: 64}, make([]uint64, n)
		for b := 0; b < n; b += CodeBlock {
			decodeGo(all[b:min(b+CodeBlock, n)], c, &p, uint64(c.K[b/CodeBlock]))
		}
		requireEqual(t, "codes in Go", all, want, nil)
	}
}

func TestCodesOutsideOfTheirBytes(t *testing.T) {
	for name, c := range map[string]*Codes{
		"no quotients": {High: make([]byte, 8+CodeSpare), Low: make([]byte, 8+CodeSpare),
			K: make([]uint8, 1)},
		"no bytes": {K: make([]uint8, 1)},
		"no low bits": {High: append([]byte{255}, make([]byte, 7+CodeSpare)...),
			Low: make([]byte, CodeSpare), K: []uint8{63}},
		"no parameter": {High: append([]byte{255}, make([]byte, 7+CodeSpare)...),
			Low: make([]byte, CodeSpare)},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: decoded", name)
				}
			}()
			c.Decode(make([]uint64, 5), new(CodeEnds))
		}()
	}
}

func TestSumsAreReference(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var res Residuals
	for i := range res {
		res[i] = r.Uint64()
	}
	for n := range MaxLane + 1 {
		for lanes := 1; lanes <= Lanes; lanes++ {
			var got [Lanes]uint64
			Sums(&got, &res, lanes, n)
			for l := range lanes {
				want := uint64(0)
				for i := range n {
					want += res[Lanes*i+l]
				}
				if got[l] != want {
					t.Fatalf("%d lanes of %d: sum %x of lane %d, want %x", lanes, n, got[l], l, want)
				}
			}
		}
	}
}

func BenchmarkCodes(b *testing.B) {
	for _, growth := range []bool{false, true} {
		r := rand.New(rand.NewPCG(8, 9))
		c := drawCodes(r, 720)
		for c.Growth != growth || len(c.High) > 500 || len(c.Low) > 1100 { // such as of real data
			c = drawCodes(r, 720)
		}
		dst, ends := make([]uint64, 720), new(CodeEnds)
		benchBoth(b, fmt.Sprintf("codes, growth %v", growth), len(dst), func() {
			c.Decode(dst, ends)
		}, func() {
			p := codePlace{prev: 64}
			for i := 0; i < len(dst); i += CodeBlock {
				decodeGo(dst[i:min(i+CodeBlock, len(dst))], c, &p, uint64(c.K[i/CodeBlock]))
			}
		})
	}
}
