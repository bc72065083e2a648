package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	intTag      = uint64(1) << 56
	floatMarker = uint64(1) << 63
	stale       = uint64(1)
	magicBits   = 0x4338000000000000 // of the double 3 << 51
)

// eachFour emits a loop over n words, a multiple of four above zero, from src to
// dst.
func eachFour(dst, src, n reg.Register, body func(v reg.VecVirtual)) {
	fours(n, func() {
		v := YMM()
		VMOVDQU(at(src, 0), v)
		body(v)
		VMOVDQU(v, at(dst, 0))
	}, src, dst)
	end()
}

// fill ends with four words that may overlap those before them.
func fill() {
	begin("fillAVX2", "func(dst *uint64, w, n uint64)", "fillAVX2 is Fill of n words, at least four.")
	dst, n, last := load64("dst"), load64("n"), GP64()
	v := broadcast(load64("w"))
	LEAQ(operand.Mem{Base: dst, Index: n, Scale: 8, Disp: -32}, last)
	JMP(operand.LabelRef("check"))
	Label("loop")
	VMOVDQU(v, at(dst, 0))
	ADDQ(operand.U8(32), dst)
	Label("check")
	CMPQ(dst, last)
	JB(operand.LabelRef("loop"))
	VMOVDQU(v, at(last, 0))
	end()
}

func ints() {
	begin("intsAVX2", "func(dst, src *uint64, n uint64)",
		"intsAVX2 is Ints of n words, a multiple of four.")
	dst, src, n := load64("dst"), load64("src"), load64("n")
	payload, tag := constant(intTag-1), constant(intTag)
	eachFour(dst, src, n, func(v reg.VecVirtual) {
		VPAND(payload, v, v)
		VPOR(tag, v, v)
	})
}

func floatBits() {
	begin("bitsAVX2", "func(dst, src *uint64, shift, n uint64)",
		"bitsAVX2 is Bits of n words, a multiple of four.")
	dst, src, n := load64("dst"), load64("src"), load64("n")
	marker := constant(floatMarker)
	shift := XMM()
	VMOVQ(load64("shift"), shift)
	zero := YMM()
	VPXOR(zero, zero, zero)
	eachFour(dst, src, n, func(v reg.VecVirtual) {
		VPSLLQ(shift, v, v)
		sendable(v, zero)
		word(v, marker)
	})
}

// sendable emits clearing the lowest bit of the doubles in v below 2^-895.
func sendable(v, zero reg.VecVirtual) {
	c := YMM()
	VPSRLQ(operand.U8(59), v, c)
	VPCMPEQQ(zero, c, c)
	VPSRLQ(operand.U8(63), c, c)
	VPANDN(v, c, v)
}

// decimals converts an int64 in two halves, the upper one with its sign turned
// over.
func decimals() {
	begin("decimalsAVX2", "func(dst, src *uint64, scale float64, keep, n uint64)",
		"decimalsAVX2 is Decimals of n words, a multiple of four.")
	dst, src, n := load64("dst"), load64("src"), load64("n")
	scale := scaleOf()
	upper := constant(0x4530000080000000)
	ints := newHalves(0x4530000080100000)
	marker, keep := constant(floatMarker), broadcast(load64("keep"))
	eachFour(dst, src, n, func(v reg.VecVirtual) {
		high := YMM()
		VPSRLQ(operand.U8(32), v, high)
		VPXOR(upper, high, high)
		ints.sum(v, high, v)
		VDIVPD(scale, v, v)
		VPAND(keep, v, v)
		word(v, marker)
	})
}

// measure keeps the sign bit of the payload turned over: then the words of
// integers are in order as int64.
func measure() {
	begin("measureAVX2", "func(e *uint64, words *uint64, n uint64)",
		"measureAVX2 is Measure of n words, a multiple of four above zero.")
	e, words, n := load64("e"), load64("words"), load64("n")
	count := GP64()
	MOVQ(n, count)
	sign, mark := constant(1<<55), constant(notFloat)
	and, or, least, most, sum := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVDQU(at(words, 0), least)
	VPADDUSB(mark, least, and)
	VMOVDQA(and, or)
	VPXOR(sign, least, least)
	VMOVDQA(least, most)
	VPXOR(sum, sum, sum)
	fours(n, func() {
		w, m := YMM(), YMM()
		VMOVDQU(at(words, 0), w)
		VPADDUSB(mark, w, m)
		VPAND(m, and, and)
		VPOR(m, or, or)
		VPXOR(sign, w, w)
		VPADDQ(w, sum, sum)
		lesser(w, least, YMM())
		greater(w, most, YMM())
	}, words)

	collapse(and, func(a, b reg.VecVirtual) { VPAND(a, b, b) })
	collapse(or, func(a, b reg.VecVirtual) { VPOR(a, b, b) })
	collapse(sum, func(a, b reg.VecVirtual) { VPADDQ(a, b, b) })
	collapse(least, func(a, b reg.VecVirtual) { lesser(a, b, XMM()) })
	collapse(most, func(a, b reg.VecVirtual) { greater(a, b, XMM()) })
	store(and, e, 0)
	store(or, e, 8)
	value := GP64()
	for i, v := range []reg.VecVirtual{least, most} {
		VMOVQ(v.AsX(), value)
		// Turn the bit back and extend the sign of the payload.
		BTCQ(operand.U8(55), value)
		SHLQ(operand.U8(8), value)
		SARQ(operand.U8(8), value)
		MOVQ(value, at(e, 16+8*i))
	}
	// A word counts its integer plus 2^56 + 2^55.
	bias := GP64()
	MOVQ(operand.U64(1<<56+1<<55), bias)
	IMULQ(count, bias)
	VMOVQ(sum.AsX(), value)
	SUBQ(bias, value)
	MOVQ(value, at(e, 32))
	end()
}

// collapse combines the four quarters of v in its lowest.
func collapse(v reg.VecVirtual, with func(a, b reg.VecVirtual)) {
	x := XMM()
	VEXTRACTI128(operand.U8(1), v, x)
	low := v.AsX().(reg.VecVirtual)
	with(x, low)
	VPSHUFD(operand.U8(0xee), low, x)
	with(x, low)
}

func store(v reg.VecVirtual, base reg.Register, disp int) {
	VMOVQ(v.AsX(), at(base, disp))
}
