package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// halves converts integers that stand in the two halves of their quarters: the
// upper one, less bias, becomes the fraction of a double of 2^84, the lower one
// of a double of 2^52. Both are exact, and so is taking the first number and the
// bias away, so that the last addition rounds once.
type halves struct{ both, lower reg.VecVirtual }

// newHalves takes the bits of the double 2^84 + bias × 2^32 + 2^52.
func newHalves(both uint64) halves {
	return halves{both: constant(both), lower: constant(0x4330000000000000)}
}

// sum emits the conversion of v; high is its upper half in the double of 2^84.
func (h halves) sum(v, high, out reg.VecVirtual) {
	low := YMM()
	VPBLENDD(operand.U8(0xaa), h.lower, v, low)
	VSUBPD(h.both, high, high)
	VADDPD(low, high, out)
}

// numbers stops before the first four words of which one is 0. Both readings of
// a word are made.
func numbers() {
	begin("numbersAVX2", "func(dst *float64, src *uint64, n uint64) uint64",
		"numbersAVX2 is Numbers of n words, a multiple of four above zero.")
	dst, src, n := load64("dst"), load64("src"), load64("n")
	// The 24 upper bits of the integer with the sign turned over, and its tag.
	sign := constant(0x4530000001800000)
	ints := newHalves(0x4530000000900000)
	none, mark := constant(1<<64-1), constant(notFloat)
	zero := YMM()
	VPXOR(zero, zero, zero)
	done := GP64()
	XORQ(done, done)
	Label("loop")
	w, c, high, v, f := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVDQU(operand.Mem{Base: src, Index: done, Scale: 8}, w)
	VPCMPEQQ(w, zero, c)
	VPTEST(c, c)
	JNZ(operand.LabelRef("end"))
	VPSRLQ(operand.U8(32), w, high)
	VPXOR(sign, high, high)
	ints.sum(w, high, v)
	double(w, none, f)
	VPADDUSB(mark, w, c)
	VBLENDVPD(c, f, v, v)
	VMOVDQU(v, operand.Mem{Base: dst, Index: done, Scale: 8})
	ADDQ(operand.U8(4), done)
	CMPQ(done, n)
	JNE(operand.LabelRef("loop"))
	Label("end")
	Store(done, ReturnIndex(0))
	end()
}

func addTo() {
	begin("addToAVX2", "func(sum, v *float64, n uint64)",
		"addToAVX2 is AddTo of n values, a multiple of four above zero.")
	sum, v, n := load64("sum"), load64("v"), load64("n")
	fours(n, func() {
		s := YMM()
		VMOVDQU(at(sum, 0), s)
		VADDPD(at(v, 0), s, s)
		VMOVDQU(s, at(sum, 0))
	}, sum, v)
	end()
}
