package kernel

import (
	"encoding/binary"
	"math/bits"
)

const (
	// CodeBlock numbers have one parameter.
	CodeBlock = 64
	// CodeSpare is how many bytes are read behind the quotients and behind the low bits.
	CodeSpare = 64
)

// CodeEnds is memory for where quotients end: of all numbers of a chunk, the one before them,
// and those that the last word holds beside.
type CodeEnds [1 + Lanes*MaxLane + 64]uint16

// Codes is where coded numbers stand.
type Codes struct {
	// High has a quotient of each number: that many zeros and a one, the lowest bits
	// first. Low has the low bits. CodeSpare zeros stand behind either.
	High, Low []byte
	// K is how many low bits the numbers of each block have, below 64.
	K []uint8
	// Growth adds the quotient to these, modulo 64. Of w bits, and of k of its block,
	// the number is low + 2^w - 2^k; without it is low + quotient * 2^k.
	Growth bool
	// Bias is added to a number. If Signed it is then the zigzag of the result.
	Bias   uint64
	Signed bool
}

// codePlace is what was read.
type codePlace struct {
	word uint64 // rest of the word of quotients
	next uint64 // byte of the next one
	prev uint64 // bit behind the last one, counted from the word's begin
	pos  uint64 // of the next low bits
}

// Decode fills dst with numbers from the first on. e is scratch memory.
func (c *Codes) Decode(dst []uint64, e *CodeEnds) {
	c.check(len(dst))
	if decodeWide(dst, c, e) {
		return
	}
	p := codePlace{prev: 64}
	for b := 0; len(dst) > 0; b++ {
		part := dst[:min(CodeBlock, len(dst))]
		decode(part, c, &p, uint64(c.K[b]))
		dst = dst[len(part):]
	}
}

// check panics where n numbers are not within their bytes: what follows reads without
// looking.
func (c *Codes) check(n int) {
	if len(c.High) < CodeSpare || len(c.Low) < CodeSpare || len(c.K)*CodeBlock < n {
		panic("kernel: codes without bytes")
	}
	words, ones := 0, 0
	for ; ones < n && 8*words+8 <= len(c.High)-8; words++ {
		ones += bits.OnesCount64(binary.LittleEndian.Uint64(c.High[8*words:]))
	}
	low, spare := 0, CodeSpare
	for i, left := 0, n; left > 0; i, left = i+1, left-CodeBlock {
		low += min(left, CodeBlock) * int(c.K[i]&63)
	}
	if c.Growth {
		low += 64*words - n // up to 63 too many
		spare -= 8
	}
	if ones < n || low/8+spare > len(c.Low) {
		panic("kernel: codes outside of their bytes")
	}
}

func decodeGo(dst []uint64, c *Codes, p *codePlace, k uint64) {
	for i := range dst {
		for p.word == 0 {
			p.word = binary.LittleEndian.Uint64(c.High[p.next:])
			p.next += 8
			p.prev -= 64
		}
		at := uint64(bits.TrailingZeros64(p.word))
		p.word &= p.word - 1
		q, width := at-p.prev, k
		p.prev = at + 1
		u := binary.LittleEndian.Uint64(c.Low[p.pos>>3:]) >> (p.pos & 7)
		if c.Growth {
			width += q
			p.pos += width
			width &= 63
			u = u&(1<<width-1) + 1<<width - 1<<k
		} else {
			p.pos += k
			u = u&(1<<k-1) + q<<k
		}
		if u += c.Bias; c.Signed {
			u = u>>1 ^ -(u & 1)
		}
		dst[i] = u
	}
}
