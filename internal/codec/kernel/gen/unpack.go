package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fields reads fields of a fixed width from rows, four lanes at a time. cur
// holds what is left of the current row, left its number of bits.
type fields struct {
	body, stride, rows, tail, width, left reg.Register
	cur, mask, keep                       reg.VecVirtual
	shift                                 reg.VecVirtual
}

func newFields() *fields {
	f := &fields{
		body: load64("body"), stride: load64("stride"), rows: load64("rows"),
		tail: load64("tail"), width: load64("width"), left: GP64(),
		cur: YMM(), mask: YMM(), shift: XMM(),
	}
	VMOVDQU(operand.Mem{Base: load64("mask")}, f.mask)
	VMOVQ(f.width, f.shift)
	// keep is all ones shifted right by 64 - width.
	f.keep = YMM()
	n, x := GP64(), XMM()
	MOVQ(operand.U32(64), n)
	SUBQ(f.width, n)
	VMOVQ(n, x)
	VPCMPEQQ(f.keep, f.keep, f.keep)
	VPSRLQ(x, f.keep, f.keep)
	VPXOR(f.cur, f.cur, f.cur)
	XORQ(f.left, f.left)
	return f
}

// next emits code that reads the next field of all lanes into v. name makes its
// labels unique.
func (f *fields) next(v reg.VecVirtual, name string) {
	// The bits that are left are the low ones; above them cur is zero.
	VPAND(f.keep, f.cur, v)
	SUBQ(f.width, f.left)
	JL(operand.LabelRef(name + "_row"))
	VPSRLQ(f.shift, f.cur, f.cur)
	JMP(operand.LabelRef(name + "_done"))

	Label(name + "_row")
	w := YMM()
	DECQ(f.rows)
	JL(operand.LabelRef(name + "_tail"))
	VPMASKMOVQ(operand.Mem{Base: f.body}, f.mask, w)
	ADDQ(f.stride, f.body)
	JMP(operand.LabelRef(name + "_join"))
	Label(name + "_tail")
	VMOVDQU(operand.Mem{Base: f.tail}, w)

	// left is now minus the number of bits that the row has to give.
	Label(name + "_join")
	n, x, high := GP64(), XMM(), YMM()
	MOVQ(f.left, n)
	ADDQ(f.width, n) // bits that were there
	VMOVQ(n, x)
	VPSLLQ(x, w, high)
	VPOR(high, f.cur, v)
	VPAND(f.keep, v, v)
	MOVQ(f.left, n)
	NEGQ(n)
	VMOVQ(n, x)
	VPSRLQ(x, w, f.cur)
	ADDQ(operand.U8(64), f.left)
	Label(name + "_done")
}

// each emits code that reads n fields and leaves them to body.
func (f *fields) each(n reg.Register, body func(v reg.VecVirtual)) {
	TESTQ(n, n)
	JZ(operand.LabelRef("end"))
	Label("loop")
	v := YMM()
	f.next(v, "field")
	body(v)
	DECQ(n)
	JNZ(operand.LabelRef("loop"))
	Label("end")
	end()
}

// put emits code that writes a row of residuals.
func put(v reg.VecVirtual, res reg.Register) {
	VMOVDQU(v, at(res, 0))
	ADDQ(operand.U8(rowBytes), res)
}

const unpackArgs = "func(res *uint64, body *byte, stride, rows uint64, tail, mask *uint64, width, n"

func unpack() {
	begin("unpackAVX2", unpackArgs+" uint64)", "unpackAVX2 is Unpack.")
	res, n := load64("res"), load64("n")
	newFields().each(n, func(v reg.VecVirtual) { put(v, res) })
}

func unpackGroups() {
	begin("unpackGroupsAVX2", unpackArgs+", size, base, recip, shift uint64)",
		"unpackGroupsAVX2 is UnpackGroups of n groups. recip is below 2^32.")
	res, n := load64("res"), load64("n")
	f := newFields()
	base := broadcast(load64("base"))
	recip := broadcast(load64("recip"))
	shift := XMM()
	VMOVQ(load64("shift"), shift)
	size := load64("size")
	DECQ(size)
	f.each(n, func(x reg.VecVirtual) {
		i := GP64()
		MOVQ(size, i)
		Label("digit")
		q, low := YMM(), YMM()
		VPMULUDQ(recip, x, q)
		VPSRLQ(shift, q, q)
		VPMULUDQ(base, q, low)
		VPSUBQ(low, x, low)
		put(low, res)
		VMOVDQA(q, x)
		DECQ(i)
		JNZ(operand.LabelRef("digit"))
		put(x, res)
	})
}
