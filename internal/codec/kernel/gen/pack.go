package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pack makes one field of four, which must have 64 bits at most, and appends it
// to a word that is written when it is full.
func pack() {
	begin("packAVX2", "func(out *byte, stride uint64, values *uint64, width, n uint64) uint64",
		"packAVX2 is Pack of n values, a multiple of four above zero, of 16 bits at most.")
	out, stride, values, n := load64("out"), load64("stride"), load64("values"), load64("n")
	four := load64("width")
	shifts := shiftsOf(four)
	SHLQ(operand.U8(2), four)
	acc, have := GP64(), reg.RCX // SHLQ and SHRQ take their count from CL
	XORQ(acc, acc)
	XORQ(have, have)
	Label("loop")
	field, moved, past := GP64(), GP64(), GP64()
	fourAsOne(field, values, shifts)
	MOVQ(field, moved)
	SHLQ(reg.CL, moved)
	ORQ(moved, acc)
	LEAQ(operand.Mem{Base: have, Index: four, Scale: 1}, past)
	CMPQ(past, operand.U8(64))
	JB(operand.LabelRef("next"))
	MOVQ(acc, at(out, 0))
	ADDQ(stride, out)
	// The upper bits of the field, which are none where it ends with the word:
	// 64 less what the word had is one more than its complement.
	NOTQ(have)
	MOVQ(field, acc)
	SHRQ(operand.U8(1), acc)
	SHRQ(reg.CL, acc)
	SUBQ(operand.U8(64), past)
	Label("next")
	MOVQ(past, have)
	ADDQ(operand.U8(32), values)
	SUBQ(operand.U8(4), n)
	JNZ(operand.LabelRef("loop"))
	Store(acc, ReturnIndex(0))
	end()
}

// shiftsOf returns how far each of four neighbours is moved: 0, 1, 2 and 3 widths.
func shiftsOf(width reg.Register) reg.VecVirtual {
	low, high, shifts := XMM(), XMM(), YMM()
	twice := GP64()
	LEAQ(operand.Mem{Base: width, Index: width, Scale: 1}, twice)
	VMOVQ(width, low)
	VPSLLDQ(operand.U8(8), low, low) // 0, 1
	VMOVQ(twice, high)
	VPUNPCKLQDQ(high, high, high) // 2, 2
	VPADDQ(low, high, high)       // 2, 3
	VINSERTI128(operand.U8(1), high, low.AsY(), shifts)
	return shifts
}

// fourAsOne joins four values.
func fourAsOne(field, values reg.Register, shifts reg.VecVirtual) {
	v, high := YMM(), XMM()
	VMOVDQU(at(values, 0), v)
	VPSLLVQ(shifts, v, v)
	VEXTRACTI128(operand.U8(1), v, high)
	low := v.AsX()
	VPOR(high, low, low)
	VPSHUFD(operand.U8(0xee), low, high)
	VPOR(high, low, low)
	VMOVQ(low, field)
}
