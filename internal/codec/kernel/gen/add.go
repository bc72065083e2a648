package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// laneBytes is the distance of the lanes in Values, rowBytes that of the fields of
// a lane in Residuals.
const (
	laneBytes = 8 * (60 + 8)
	rowBytes  = 8 * 12
)

// add makes values of residuals by sums of the given order, four values of four
// lanes at a time, and turns them so that a lane's values are neighbours.
func add(name string, order int) {
	signature := []string{
		"func(v *uint64, res *uint64, base uint64, n uint64)",
		"func(v *uint64, res *uint64, base uint64, start *uint64, n uint64)",
		"func(v *uint64, res *uint64, base uint64, start, step *uint64, n uint64)",
	}[order]
	begin(name, signature, name+" is "+[]string{"Add", "Add1", "Add2"}[order]+".")
	out, res, n := load64("v"), load64("res"), load64("n")
	base := broadcast(load64("base"))
	sum, step := YMM(), YMM()
	if order > 0 {
		VMOVDQU(operand.Mem{Base: load64("start")}, sum)
	}
	if order > 1 {
		VMOVDQU(operand.Mem{Base: load64("step")}, step)
	}
	SUBQ(operand.U8(1), n)
	JL(operand.LabelRef("end"))
	Label("loop")
	var rows [4]reg.VecVirtual
	for i := range rows {
		rows[i] = YMM()
		VPADDQ(at(res, rowBytes*i), base, rows[i])
		switch order {
		case 1:
			VPADDQ(rows[i], sum, sum)
			VMOVDQA(sum, rows[i])
		case 2:
			VPADDQ(rows[i], step, step)
			VPADDQ(step, sum, sum)
			VMOVDQA(sum, rows[i])
		}
	}
	for l, r := range turn(rows) {
		VMOVDQU(r, at(out, l*laneBytes))
	}
	ADDQ(operand.U32(4*rowBytes), res)
	ADDQ(operand.U8(32), out)
	SUBQ(operand.U8(4), n)
	JGE(operand.LabelRef("loop"))
	Label("end")
	end()
}

// turn transposes four rows of four.
func turn(r [4]reg.VecVirtual) [4]reg.VecVirtual {
	var t, out [4]reg.VecVirtual
	for i := range t {
		t[i], out[i] = YMM(), YMM()
	}
	VPUNPCKLQDQ(r[1], r[0], t[0]) // r00 r10 r02 r12
	VPUNPCKHQDQ(r[1], r[0], t[1]) // r01 r11 r03 r13
	VPUNPCKLQDQ(r[3], r[2], t[2])
	VPUNPCKHQDQ(r[3], r[2], t[3])
	VPERM2I128(operand.U8(0x20), t[2], t[0], out[0])
	VPERM2I128(operand.U8(0x20), t[3], t[1], out[1])
	VPERM2I128(operand.U8(0x31), t[2], t[0], out[2])
	VPERM2I128(operand.U8(0x31), t[3], t[1], out[3])
	return out
}
