package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectors are the registers that hold a row of lanes, and where in the row each of
// them begins: four lanes with AVX2, all twelve with AVX-512.
type vectors struct {
	name   string
	avx512 bool
	regs   []func() reg.VecVirtual
	disps  []int
}

var (
	four   = vectors{name: "AVX2", regs: []func() reg.VecVirtual{YMM}, disps: []int{0}}
	twelve = vectors{
		name:   "AVX512",
		avx512: true,
		regs:   []func() reg.VecVirtual{ZMM, YMM},
		disps:  []int{0, 64},
	}
)

// index tells which of the registers holds lanes.
func (v *vectors) index(r *folded) int {
	if r.disp == 0 {
		return 0
	}
	return 1
}

func (v *vectors) move(from, to operand.Op) {
	if v.avx512 {
		VMOVDQU64(from, to)
	} else {
		VMOVDQU(from, to)
	}
}

func (v *vectors) and(a, b, to operand.Op) {
	if v.avx512 {
		VPANDQ(a, b, to)
	} else {
		VPAND(a, b, to)
	}
}

// broadcast fills a register of each size with a general one.
func (v *vectors) broadcast(r reg.Register) []reg.VecVirtual {
	x := XMM()
	VMOVQ(r, x)
	return v.spread(x)
}

func (v *vectors) constant(c uint64) []reg.VecVirtual {
	r := GP64()
	MOVQ(operand.U64(c), r)
	return v.broadcast(r)
}

func (v *vectors) spread(x reg.VecVirtual) []reg.VecVirtual {
	var list []reg.VecVirtual
	for i, one := range v.regs {
		if i > 0 {
			list = append(list, halfOf(list[0]))
			continue
		}
		to := one()
		VPBROADCASTQ(x, to)
		list = append(list, to)
	}
	return list
}

// halfOf is the lower half of a register.
func halfOf(r reg.VecVirtual) reg.VecVirtual { return r.AsY().(reg.VecVirtual) }

// wideFields reads fields of a fixed width from the rows of twelve lanes. It reads
// two rows for each, so that no branch depends on where a row ends.
type wideFields struct {
	body, stride, pos, width reg.Register
	keep, at, step           []reg.VecVirtual
	lanes                    [2]reg.Register
}

func newWideFields() *wideFields {
	f := &wideFields{
		body:   load64("body"),
		stride: load64("stride"),
		pos:    load64("pos"),
		width:  load64("width"),
	}
	f.maskLanes(load64("lanes"))
	f.at, f.step = twelve.broadcast(f.pos), twelve.broadcast(f.width)
	n, x, keep := GP64(), XMM(), ZMM()
	MOVQ(operand.U32(64), n)
	SUBQ(f.width, n)
	VMOVQ(n, x)
	VPTERNLOGQ(operand.U8(0xff), keep, keep, keep)
	VPSRLQ(x, keep, keep)
	f.keep = []reg.VecVirtual{keep, halfOf(keep)}
	return f
}

// maskLanes chooses the lanes that are read, by bits.
func (f *wideFields) maskLanes(lanes reg.Register) {
	f.lanes = [2]reg.Register{K(), K()}
	KMOVW(lanes.(reg.GPVirtual).As32(), f.lanes[0])
	SHRQ(operand.U8(8), lanes)
	KMOVW(lanes.(reg.GPVirtual).As32(), f.lanes[1])
}

// next emits code that reads the next field of all lanes.
func (f *wideFields) next() (v [2]reg.VecVirtual) {
	v = f.window()
	for i := range v {
		VPANDQ(f.keep[i], v[i], v[i])
	}
	return v
}

// window emits code that reads the 64 bits of all lanes that the next field begins.
// The processor takes the shift modulo 64.
func (f *wideFields) window() (v [2]reg.VecVirtual) {
	row := GP64()
	MOVQ(f.pos, row)
	SHRQ(operand.U8(6), row)
	IMULQ(f.stride, row)
	ADDQ(f.body, row)
	ADDQ(f.width, f.pos)
	for i, one := range twelve.regs {
		high := one()
		v[i] = one()
		VMOVDQU64_Z(at(row, twelve.disps[i]), f.lanes[i], v[i])
		VMOVDQU64_Z(operand.Mem{
			Base:  row,
			Index: f.stride,
			Scale: 1,
			Disp:  twelve.disps[i],
		}, f.lanes[i], high)
		VPSHRDVQ(f.at[i], high, v[i])
	}
	VPADDQ(f.step[0], f.at[0], f.at[0])
	return v
}

// each emits code that reads n fields and leaves them to body.
func (f *wideFields) each(n reg.Register, body func(v [2]reg.VecVirtual)) {
	TESTQ(n, n)
	JZ(operand.LabelRef("end"))
	Label("loop")
	body(f.next())
	DECQ(n)
	JNZ(operand.LabelRef("loop"))
	Label("end")
	end()
}

// putRow emits code that writes a row of residuals.
func putRow(v [2]reg.VecVirtual, res reg.Register) {
	for i, x := range v {
		VMOVDQU64(x, at(res, twelve.disps[i]))
	}
	ADDQ(operand.U8(rowBytes), res)
}

const wideArgs = "func(res *uint64, body *byte, stride, lanes, pos, width, n"

func unpackWide() {
	begin("unpackAVX512", wideArgs+" uint64)",
		"unpackAVX512 is Unpack from bit pos on. Of each field it reads the row that it begins in and "+
			"the next one; bit l of lanes is set where lane l may be read.")
	res, n := load64("res"), load64("n")
	newWideFields().each(n, func(v [2]reg.VecVirtual) { putRow(v, res) })
}

func unpackGroupsWide() {
	begin("unpackGroupsAVX512", wideArgs+", size, base, recip, shift uint64)",
		"unpackGroupsAVX512 is unpackAVX512 of n groups. recip is below 2^32.")
	res, n := load64("res"), load64("n")
	f := newWideFields()
	base, recip := twelve.broadcast(load64("base")), twelve.broadcast(load64("recip"))
	shift := XMM()
	VMOVQ(load64("shift"), shift)
	size := load64("size")
	DECQ(size)
	f.each(n, func(v [2]reg.VecVirtual) {
		left := GP64()
		MOVQ(size, left)
		Label("digit")
		var low, quotient [2]reg.VecVirtual
		for i, one := range twelve.regs {
			low[i], quotient[i] = one(), one()
			VPMULUDQ(recip[i], v[i], quotient[i])
			VPSRLQ(shift, quotient[i], quotient[i])
			VPMULUDQ(base[i], quotient[i], low[i])
			VPSUBQ(low[i], v[i], low[i])
		}
		putRow(low, res)
		for i := range v {
			VMOVDQA64(quotient[i], v[i])
		}
		DECQ(left)
		JNZ(operand.LabelRef("digit"))
		putRow(v, res)
	})
}
