package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// excess emits numbers less a base, or the zigzags of that: twice as much, turned over where it
// is negative.
type excess struct{ base, shift, signs, zero reg.VecVirtual }

// newExcess takes the arguments base and sign, which is 1 for zigzags and 0 for none.
func newExcess() excess {
	e := excess{base: broadcast(load64("base")), shift: XMM(), signs: YMM(), zero: YMM()}
	VMOVQ(load64("sign"), e.shift)
	VPXOR(e.zero, e.zero, e.zero)
	VPBROADCASTQ(e.shift, e.signs)
	VPSUBQ(e.signs, e.zero, e.signs)
	return e
}

func (e excess) of(v reg.VecVirtual) {
	sign := YMM()
	VPSUBQ(e.base, v, v)
	VPCMPGTQ(v, e.zero, sign)
	VPAND(e.signs, sign, sign)
	VPSLLQ(e.shift, v, v)
	VPXOR(sign, v, v)
}

// lengthOf emits the number of bits of each quarter of v, which is that of the exponent of a
// double. Without the bit behind the highest one no rounding carries into another length.
type lengthOf struct {
	halves
	upper, bias reg.VecVirtual
}

func newLengthOf() lengthOf {
	return lengthOf{
		halves: newHalves(0x4530000000100000),
		upper:  constant(0x4530000000000000),
		bias:   constant(1022),
	}
}

func (l lengthOf) of(v reg.VecVirtual) {
	high := YMM()
	VPSRLQ(operand.U8(1), v, high)
	VPANDN(v, high, v)
	VPSRLQ(operand.U8(32), v, high)
	VPOR(l.upper, high, high)
	l.sum(v, high, v)
	VPSRLQ(operand.U8(52), v, v)
	VPSUBUSW(l.bias, v, v) // 0 has none
}

// bitLengths keeps the lengths as bytes in two registers and counts the equal ones, the longest
// first, until none is left. Bytes that are not used are 0.
func bitLengths() {
	begin("bitLengthsAVX2", "func(c *uint8, v *uint64, base, sign, n uint64) (all uint64)",
		"bitLengthsAVX2 is BitLengths.Count of n numbers, a multiple of eight above zero, with a sign "+
			"if that is 1. all are their bits.")
	c, v, n := load64("c"), load64("v"), load64("n")
	e := newExcess()
	l := newLengthOf()
	all := YMM()
	lengths := [2]reg.VecVirtual{YMM(), YMM()}
	VPXOR(all, all, all)
	left := GP64()
	MOVQ(n, left)
	for i, r := range lengths {
		VPXOR(r, r, r)
		VMOVDQU(e.zero, at(c, 32*i))
	}
	VMOVQ(e.zero.AsX(), at(c, 64))
	Label("loop")
	for i, r := range lengths {
		x := YMM()
		VMOVDQU(at(v, 32*i), x)
		e.of(x)
		VPOR(x, all, all)
		l.of(x)
		VPSLLQ(operand.U8(8), r, r)
		VPOR(x, r, r)
	}
	ADDQ(operand.U8(64), v)
	SUBQ(operand.U8(8), n)
	JNZ(operand.LabelRef("loop"))
	collapse(all, func(a, b reg.VecVirtual) { VPOR(a, b, b) })
	bits, length := GP64(), GP64()
	VMOVQ(all.AsX(), bits)
	Store(bits, ReturnIndex(0))
	BSRQ(bits, length)
	JZ(operand.LabelRef("end")) // all are 0
	INCQ(length)
	wanted, one := YMM(), YMM()
	VMOVQ(length, wanted.AsX())
	VPBROADCASTB(wanted.AsX(), wanted)
	VPCMPEQB(one, one, one) // -1
	Label("count")
	var found [2]reg.GPVirtual
	for i, r := range lengths {
		found[i] = GP32()
		equal := YMM()
		VPCMPEQB(r, wanted, equal)
		VPMOVMSKB(equal, found[i])
		POPCNTL(found[i], found[i])
	}
	ADDL(found[0], found[1])
	MOVB(found[1].As8(), operand.Mem{Base: c, Index: length, Scale: 1})
	VPADDB(one, wanted, wanted)
	SUBQ(found[1].As64(), left)
	JZ(operand.LabelRef("end"))
	DECQ(length)
	JNZ(operand.LabelRef("count"))
	Label("end")
	MOVB(left.(reg.GPVirtual).As8(), at(c, 0))
	end()
}

func numbersLess() {
	begin("excessAVX2", "func(dst, v *uint64, base, sign, n uint64) (all uint64)",
		"excessAVX2 is Excess of n numbers, a multiple of four above zero, of zigzags if sign is 1.")
	dst, src, n := load64("dst"), load64("v"), load64("n")
	e, all := newExcess(), YMM()
	VPXOR(all, all, all)
	fours(n, func() {
		v := YMM()
		VMOVDQU(at(src, 0), v)
		e.of(v)
		VPOR(v, all, all)
		VMOVDQU(v, at(dst, 0))
	}, src, dst)
	collapse(all, func(a, b reg.VecVirtual) { VPOR(a, b, b) })
	bits := GP64()
	VMOVQ(all.AsX(), bits)
	Store(bits, ReturnIndex(0))
	end()
}

func quotients() {
	begin("quotientsAVX2", "func(v *uint64, k, n uint64) (sum uint64)",
		"quotientsAVX2 is Quotients of n numbers, a multiple of four above zero.")
	v, n := load64("v"), load64("n")
	k, sum := XMM(), YMM()
	VMOVQ(load64("k"), k)
	VPXOR(sum, sum, sum)
	fours(n, func() {
		x := YMM()
		VMOVDQU(at(v, 0), x)
		VPSRLQ(k, x, x)
		VPADDQ(x, sum, sum)
	}, v)
	collapse(sum, func(a, b reg.VecVirtual) { VPADDQ(a, b, b) })
	total := GP64()
	VMOVQ(sum.AsX(), total)
	Store(total, ReturnIndex(0))
	end()
}

// sides counts in quarters: a comparison that holds is -1.
func sides() {
	begin("sidesAVX2",
		"func(v *uint64, center, most, n uint64) (others, below, left uint64, least int64)",
		"sidesAVX2 is SidesOf n integers, a multiple of four above zero. most is the limit less one, "+
			"left are the integers that are equal or too far away, least is the greatest integer where "+
			"all are.")
	v, n := load64("v"), load64("n")
	center := broadcast(load64("center"))
	sign := constant(floatMarker)
	most := broadcast(load64("most"))
	VPXOR(sign, most, most)
	none := constant(floatMarker - 1)
	zero, below, left, least := YMM(), YMM(), YMM(), YMM()
	for _, r := range []reg.VecVirtual{zero, below, left} {
		VPXOR(r, r, r)
	}
	VMOVDQA(none, least)
	others, shift := GP64(), reg.RCX
	XORQ(others, others)
	MOVQ(operand.U32(64), shift)
	SUBQ(n, shift)
	fours(n, func() {
		d, out, negative, far := YMM(), YMM(), YMM(), YMM()
		VMOVDQU(at(v, 0), d)
		VPSUBQ(center, d, d)
		VPCMPEQQ(d, zero, out)
		same := GP64()
		VMOVMSKPD(out, same.As32())
		XORQ(operand.U8(15), same)
		SHLQ(operand.U8(60), same)
		SHRQ(operand.U8(4), others)
		ORQ(same, others)
		VPCMPGTQ(d, zero, negative)
		VPADDQ(d, d, far)
		VPXOR(negative, far, far)
		VPXOR(sign, far, far)
		VPCMPGTQ(most, far, far)
		VPOR(far, out, out)
		VPSUBQ(out, left, left)
		VPANDN(negative, out, negative)
		VPSUBQ(negative, below, below)
		VBLENDVPD(out, none, d, d)
		lesser(d, least, far)
	}, v)
	SHRQ(reg.CL, others)
	Store(others, ReturnIndex(0))
	for i, r := range []reg.VecVirtual{below, left, least} {
		collapse(r, func(a, b reg.VecVirtual) {
			if i == 2 {
				lesser(a, b, XMM())
			} else {
				VPADDQ(a, b, b)
			}
		})
		count := GP64()
		VMOVQ(r.AsX(), count)
		Store(count, ReturnIndex(1+i))
	}
	end()
}
