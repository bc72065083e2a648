package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lay counts in quarters: a comparison that holds is -1.
func lay() {
	begin("layAVX2", "func(cells, words *uint64, n uint64) (unset, free, both, equal uint64)",
		"layAVX2 is Lay of n words, a multiple of four above zero. free cells are 0, both words and "+
			"cells, equal are words and cells.")
	cells, words, n := load64("cells"), load64("words"), load64("n")
	marker, zero := constant(stale), YMM()
	VPXOR(zero, zero, zero)
	var counts [4]reg.VecVirtual // as they are returned
	for i := range counts {
		counts[i] = YMM()
		VPXOR(counts[i], counts[i], counts[i])
	}
	fours(n, func() {
		w, old, unset, mask, kept := YMM(), YMM(), YMM(), YMM(), YMM()
		VMOVDQU(at(words, 0), w)
		VMOVDQU(at(cells, 0), old)
		VPCMPEQQ(w, zero, unset)
		VPSUBQ(unset, counts[0], counts[0])
		VPCMPEQQ(old, zero, mask)
		VPSUBQ(mask, counts[1], counts[1])
		VPCMPEQQ(w, marker, kept)
		VPANDN(kept, mask, kept) // of values that stale markers are laid over
		VPOR(unset, kept, kept)
		VPAND(unset, mask, mask)
		VPSUBQ(mask, counts[2], counts[2])
		VPCMPEQQ(old, w, mask)
		VPSUBQ(mask, counts[3], counts[3])
		VPBLENDVB(kept, old, w, w)
		VMOVDQU(w, at(cells, 0))
	}, cells, words)
	for i, v := range counts {
		collapse(v, func(a, b reg.VecVirtual) { VPADDQ(a, b, b) })
		r := GP64()
		VMOVQ(v.AsX(), r)
		Store(r, ReturnIndex(i))
	}
	end()
}

// signs fills mask where the integers of words are negative.
func signs(words, zero, mask reg.VecVirtual) {
	VPSLLQ(operand.U8(8), words, mask)
	VPCMPGTQ(mask, zero, mask)
}

func intBits() {
	begin("intBitsAVX2", "func(words *uint64, n uint64) (tags, bits uint64)",
		"intBitsAVX2 is IntBits of n words, a multiple of four above zero.")
	words, n := load64("words"), load64("n")
	tag := constant(intTag)
	zero, tags, bits := YMM(), YMM(), YMM()
	for _, v := range []reg.VecVirtual{zero, tags, bits} {
		VPXOR(v, v, v)
	}
	fours(n, func() {
		w, x := YMM(), YMM()
		VMOVDQU(at(words, 0), w)
		VPXOR(tag, w, x)
		VPOR(x, tags, tags)
		signs(w, zero, x)
		VPXOR(w, x, x)
		VPOR(x, bits, bits)
	}, words)
	for i, v := range []reg.VecVirtual{tags, bits} {
		collapse(v, func(a, b reg.VecVirtual) { VPOR(a, b, b) })
		r := GP64()
		VMOVQ(v.AsX(), r)
		Store(r, ReturnIndex(i))
	}
	end()
}

// zigzags keeps the lowest bytes of four zigzags. pick brings those of each half of
// a register to where they belong among the four.
func zigzags(bytes int) {
	begin(fmt.Sprintf("zigzags%dAVX2", 8*bytes),
		"func(dst *byte, words *uint64, pick *byte, n uint64)",
		fmt.Sprintf("zigzags%dAVX2 is Zigzags of n words in %d bytes each, n a multiple of four above "+
			"zero.", 8*bytes, bytes))
	dst, words, n := load64("dst"), load64("words"), load64("n")
	pick, zero := YMM(), YMM()
	VMOVDQU(at(load64("pick"), 0), pick)
	VPXOR(zero, zero, zero)
	fours(n, func() {
		w, x, high := YMM(), YMM(), XMM()
		VMOVDQU(at(words, 0), w)
		signs(w, zero, x)
		VPADDQ(w, w, w)
		VPXOR(w, x, x)
		VPSHUFB(pick, x, x)
		VEXTRACTI128(operand.U8(1), x, high)
		VPOR(x.AsX(), high, high)
		switch bytes {
		case 1:
			VMOVD(high, at(dst, 0))
		case 2:
			VMOVQ(high, at(dst, 0))
		case 4:
			VMOVDQU(high, at(dst, 0))
		}
		ADDQ(operand.U8(uint8(4*bytes)), dst)
	}, words)
	end()
}
