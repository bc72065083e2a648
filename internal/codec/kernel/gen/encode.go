package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func kinds() {
	begin("kindsAVX2", "func(words *uint64, n uint64) (all, any uint64)",
		"kindsAVX2 is KindsOf n words, a multiple of four above zero.")
	words, n := load64("words"), load64("n")
	mark := constant(notFloat)
	and, or := YMM(), YMM()
	VPCMPEQQ(and, and, and)
	VPXOR(or, or, or)
	fours(n, func() {
		w := YMM()
		VPADDUSB(at(words, 0), mark, w)
		VPAND(w, and, and)
		VPOR(w, or, or)
	}, words)
	collapse(and, func(a, b reg.VecVirtual) { VPAND(a, b, b) })
	collapse(or, func(a, b reg.VecVirtual) { VPOR(a, b, b) })
	for i, v := range []reg.VecVirtual{and, or} {
		r := GP64()
		VMOVQ(v.AsX(), r)
		Store(r, ReturnIndex(i))
	}
	end()
}

func integers() {
	begin("integersAVX2", "func(dst *int64, src *uint64, n uint64)",
		"integersAVX2 is Integers of n words, a multiple of four above zero.")
	dst, src, n := load64("dst"), load64("src"), load64("n")
	payload, sign := constant(intTag-1), constant(1<<55)
	eachFour(dst, src, n, func(v reg.VecVirtual) {
		VPAND(payload, v, v)
		VPXOR(sign, v, v)
		VPSUBQ(sign, v, v)
	})
}

func offsets() {
	begin("offsetsAVX2", "func(dst *uint64, v *int64, base int64, n uint64)",
		"offsetsAVX2 is Offsets of n values, a multiple of four above zero.")
	dst, src, n := load64("dst"), load64("v"), load64("n")
	base := broadcast(load64("base"))
	eachFour(dst, src, n, func(v reg.VecVirtual) { VPSUBQ(base, v, v) })
}

func steps() {
	begin("stepsAVX2", "func(dst *uint64, v *int64, base int64, n uint64)",
		"stepsAVX2 is Steps of n differences, a multiple of four above zero.")
	dst, src, n := load64("dst"), load64("v"), load64("n")
	base := broadcast(load64("base"))
	eachFour(dst, src, n, func(v reg.VecVirtual) {
		VPADDQ(base, v, v)
		next := YMM()
		VMOVDQU(at(src, 8), next)
		VPSUBQ(v, next, v)
	})
}

// lesser and greater keep the smaller and the greater of the quarters of a and b in b.
func lesser(a, b, c reg.Register) {
	VPCMPGTQ(a, b, c)
	VBLENDVPD(c, a, b, b)
}

func greater(a, b, c reg.Register) {
	VPCMPGTQ(b, a, c)
	VBLENDVPD(c, a, b, b)
}

func spread() {
	begin("spreadAVX2", "func(out *int64, v *int64, n uint64)",
		"spreadAVX2 is SpreadOf: of the n integers behind the first, a multiple of four above zero.")
	out, v, n := load64("out"), load64("v"), load64("n")
	sign := constant(floatMarker)
	low := constant(1<<32 - 1)
	var acc [7]reg.VecVirtual // as they are written
	for i := range acc {
		acc[i] = YMM()
	}
	prev := YMM()
	VMOVDQU(at(v, 0), prev)
	VMOVDQU(at(v, 8), acc[0])
	VMOVDQA(acc[0], acc[1])
	VPSUBQ(prev, acc[0], acc[2])
	VMOVDQA(acc[2], acc[3])
	for _, a := range acc[4:] {
		VPXOR(a, a, a)
	}
	fours(n, func() {
		x, d, c := YMM(), YMM(), YMM()
		VMOVDQU(at(v, 8), x)
		VMOVDQU(at(v, 0), prev)
		VPCMPEQQ(x, prev, c)
		VPSUBQ(c, acc[4], acc[4])
		VPSUBQ(prev, x, d)
		lesser(x, acc[0], c)
		greater(x, acc[1], c)
		lesser(d, acc[2], c)
		greater(d, acc[3], c)
		VPAND(low, x, c)
		VPADDQ(c, acc[6], acc[6])
		VPXOR(sign, x, c)
		VPSRLQ(operand.U8(32), c, c)
		VPADDQ(c, acc[5], acc[5])
	}, v)
	for i, a := range acc {
		collapse(a, func(x, y reg.VecVirtual) {
			switch i {
			case 0, 2:
				lesser(x, y, XMM())
			case 1, 3:
				greater(x, y, XMM())
			default:
				VPADDQ(x, y, y)
			}
		})
		store(a, out, 8*i)
	}
	end()
}

// scaled stops before the first four words of which one has no integer.
func scaled() {
	begin("scaledAVX2", "func(dst *int64, src *uint64, scale float64, keep, n uint64) uint64",
		"scaledAVX2 is ScaledIntegers of n words, a multiple of four above zero.")
	dst, src, n := load64("dst"), load64("src"), load64("n")
	scale := scaleOf()
	limit := constant(0x4320000000000000)
	magic, none, positive := constant(magicBits), constant(1<<64-1), constant(floatMarker-1)
	keep := broadcast(load64("keep"))
	done := GP64()
	XORQ(done, done)
	Label("loop")
	w, f, x, k, c := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVDQU(operand.Mem{Base: src, Index: done, Scale: 8}, w)
	double(w, none, f)
	VMULPD(scale, f, x)
	VANDPD(positive, x, c)
	VCMPPD(operand.U8(0x11), limit, c, c) // |x| < limit, false for NaN
	VADDPD(magic, x, x)
	VPSUBQ(magic, x, k)
	VMOVDQU(k, operand.Mem{Base: dst, Index: done, Scale: 8})
	VSUBPD(magic, x, x) // the integer as a double: exact
	VDIVPD(scale, x, x)
	VPAND(keep, x, x)
	VPCMPEQQ(f, x, x)
	VPAND(c, x, x)
	bits := GP32()
	VMOVMSKPD(x, bits)
	CMPL(bits, operand.U8(15))
	JNE(operand.LabelRef("end"))
	ADDQ(operand.U8(4), done)
	CMPQ(done, n)
	JNE(operand.LabelRef("loop"))
	Label("end")
	Store(done, ReturnIndex(0))
	end()
}
