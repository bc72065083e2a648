package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Where the fields of codePlace lie.
const (
	placeWord = 8 * iota
	placeNext
	placePrev
	placePos
)

// decode reads coded numbers one after the other: nothing but where the next one's bits
// begin depends on the one before.
func decode(name string, growth bool) {
	begin(name, "func(dst *uint64, high, low *byte, p *uint64, k, bias, sign, n uint64)",
		name+" decodes n numbers, at least one, of a block. sign is 1 if they have one.")
	dst, high, low, p := load64("dst"), load64("high"), load64("low"), load64("p")
	k, bias, sign, n := load64("k"), load64("bias"), load64("sign"), load64("n")
	word, prev, pos := GP64(), GP64(), GP64()
	MOVQ(at(p, placeWord), word)
	MOVQ(at(p, placePrev), prev)
	MOVQ(at(p, placePos), pos)
	ADDQ(at(p, placeNext), high)
	JMP(operand.LabelRef("loop"))
	Label("refill")
	MOVQ(at(high, 0), word)
	ADDQ(operand.U8(8), high)
	SUBQ(operand.U8(64), prev)
	Label("loop")
	TESTQ(word, word)
	JZ(operand.LabelRef("refill"))
	quotient, u, t := GP64(), GP64(), GP64()
	TZCNTQ(word, t)
	BLSRQ(word, word)
	MOVQ(t, quotient)
	SUBQ(prev, quotient)
	LEAQ(operand.Mem{Base: t, Disp: 1}, prev)
	MOVQ(pos, t)
	SHRQ(operand.U8(3), t)
	MOVQ(operand.Mem{Base: low, Index: t, Scale: 1}, u)
	MOVQ(pos, t)
	ANDQ(operand.U8(7), t)
	SHRXQ(t, u, u)
	if growth {
		ADDQ(k, quotient)
		ADDQ(quotient, pos)
		ANDQ(operand.U8(63), quotient)
		BZHIQ(quotient, u, u)
		XORL(t.As32(), t.As32())
		BTSQ(quotient, t)
		ADDQ(t, u)
	} else {
		ADDQ(k, pos)
		BZHIQ(k, u, u)
		SHLXQ(k, quotient, quotient)
		ADDQ(quotient, u)
	}
	ADDQ(bias, u)
	MOVQ(u, t)
	ANDQ(sign, t)
	NEGQ(t)
	SHRXQ(sign, u, u)
	XORQ(t, u)
	MOVQ(u, at(dst, 0))
	ADDQ(operand.U8(8), dst)
	DECQ(n)
	JNZ(operand.LabelRef("loop"))
	first := Load(Param("high"), GP64())
	SUBQ(first, high)
	MOVQ(high, at(p, placeNext))
	MOVQ(word, at(p, placeWord))
	MOVQ(prev, at(p, placePrev))
	MOVQ(pos, at(p, placePos))
	RET()
}

// sums adds up rows.
func sums(v vectors) {
	begin("sums"+v.name, "func(s, res *uint64, n uint64)", "sums"+v.name+" is Sums of the lanes of its registers; n is above zero.")
	s, res, n := load64("s"), load64("res"), load64("n")
	var all []reg.VecVirtual
	for _, one := range v.regs {
		sum := one()
		if v.avx512 {
			VPXORQ(sum, sum, sum)
		} else {
			VPXOR(sum, sum, sum)
		}
		all = append(all, sum)
	}
	Label("loop")
	for i, sum := range all {
		VPADDQ(at(res, v.disps[i]), sum, sum)
	}
	ADDQ(operand.U8(rowBytes), res)
	DECQ(n)
	JNZ(operand.LabelRef("loop"))
	for i, sum := range all {
		v.move(sum, at(s, v.disps[i]))
	}
	end()
}
