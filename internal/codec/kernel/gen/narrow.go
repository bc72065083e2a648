package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Where the words of narrow lie.
const (
	narrowPick = 8 * iota
	narrowKeep
	narrowBase
	narrowBaseLast
	narrowOnesLast
	narrowRecip
	narrowMore
	narrowShift
	narrowDigit
	narrowInverse
	narrowInverseLast
	narrowInverseShift
)

const (
	eachCell = 0x0001_0001_0001_0001
	lastCell = 0x3830_3830_3830_3830 // picks the bits from 48 on four times
)

// narrowFold folds lanes in cells of 16 bits, four neighbours of a lane in a word. A
// window of a lane are the bits of its next four fields, or of two groups.
type narrowFold struct {
	fields *wideFields
	consts reg.Register
	digits int // of a cell
	order  int
	accs   [2]narrowAcc

	pick, keep, base, baseLast, ones, onesLast, last []reg.VecVirtual
	recip, more, digit, inverse, inverseLast         []reg.VecVirtual
	evens                                            reg.Register // choose the lower halves of words
	shift, inverseShift                              reg.VecVirtual
}

// narrowAcc is what is known of the lanes of a register.
type narrowAcc struct{ least, most, sum, carry, first reg.VecVirtual }

func foldNarrow(digits, order int) {
	name := fmt.Sprint("foldNarrow", digits, "AVX512")
	if order == 0 {
		name = "foldOffsetsAVX512"
	}
	begin(name, "func(f, narrow *uint64, body *byte, stride, lanes, step, inner uint64, end *byte, "+
		"pos, rest uint64)",
		name+" is foldNarrow of inner windows in body and rest ones in end, from bit pos on there.")
	state := load64("f")
	n := &narrowFold{digits: digits, order: order, consts: load64("narrow")}
	n.fields = &wideFields{
		body:   load64("body"),
		stride: load64("stride"),
		pos:    GP64(),
		width:  load64("step"),
	}
	XORQ(n.fields.pos, n.fields.pos)
	n.fields.at, n.fields.step = twelve.broadcast(n.fields.pos), twelve.broadcast(n.fields.width)
	n.fields.maskLanes(load64("lanes"))
	n.load()
	first, count, rest := K(), load64("inner"), load64("rest")
	KXNORW(first, first, first)
	TESTQ(count, count)
	JZ(operand.LabelRef("rest"))
	Label("loop")
	n.window(first)
	DECQ(count)
	JNZ(operand.LabelRef("loop"))
	Label("rest")
	MOVQ(rest, count)
	XORQ(rest, rest)
	TESTQ(count, count)
	JZ(operand.LabelRef("done"))
	Load(Param("end"), n.fields.body)
	MOVQ(operand.U32(rowBytes), n.fields.stride)
	Load(Param("pos"), n.fields.pos)
	x := XMM()
	VMOVQ(n.fields.pos, x)
	VPBROADCASTQ(x, n.fields.at[0])
	for _, k := range n.fields.lanes {
		KXNORW(k, k, k)
	}
	JMP(operand.LabelRef("loop"))
	Label("done")
	n.store(state)
	end()
}

// each fills a register of each size with a word of narrow.
func (n *narrowFold) each(disp int) []reg.VecVirtual {
	z := ZMM()
	VPBROADCASTQ(at(n.consts, disp), z)
	return []reg.VecVirtual{z, halfOf(z)}
}

func (n *narrowFold) load() {
	n.pick, n.keep = n.each(narrowPick), n.each(narrowKeep)
	n.ones = twelve.constant(eachCell)
	if n.order > 0 {
		n.base, n.last = n.each(narrowBase), twelve.constant(lastCell)
	}
	if n.digits > 0 {
		n.recip, n.more = n.each(narrowRecip), n.each(narrowMore)
		n.shift, n.evens = XMM(), K()
		VMOVQ(at(n.consts, narrowShift), n.shift)
		evens := GP32()
		MOVL(operand.U32(0x5555), evens)
		KMOVW(evens, n.evens)
	}
	n.baseLast, n.onesLast = n.base, n.ones
	if n.digits > 1 {
		n.baseLast, n.onesLast = n.each(narrowBaseLast), n.each(narrowOnesLast)
		n.digit, n.inverseLast = n.each(narrowDigit), n.each(narrowInverseLast)
		n.inverseShift = XMM()
		VMOVQ(at(n.consts, narrowInverseShift), n.inverseShift)
	}
	if n.digits > 2 {
		n.inverse = n.each(narrowInverse)
	}
	least, most := twelve.constant(0x7fff*eachCell), twelve.constant(0x8000*eachCell)
	for i, one := range twelve.regs {
		n.accs[i] = narrowAcc{least: one(), most: one(), sum: one(), carry: one(), first: one()}
		acc := &n.accs[i]
		VMOVDQA64(least[i], acc.least)
		VMOVDQA64(most[i], acc.most)
		VPXORQ(acc.sum, acc.sum, acc.sum)
		VPXORQ(acc.carry, acc.carry, acc.carry)
	}
}

// window takes in the next window of all lanes.
func (n *narrowFold) window(first reg.Register) {
	for i, cells := range n.fields.window() {
		acc, one := &n.accs[i], twelve.regs[i]
		VPMULTISHIFTQB(cells, n.pick[i], cells)
		VPANDQ(n.keep[i], cells, cells)
		if n.order == 0 {
			VMOVDQA64(cells, acc.carry)
			VMOVDQA64(cells, first, acc.first)
			n.take(acc, i, cells, n.ones[i])
			continue
		}
		if n.digits > 0 {
			n.halves(i, cells)
		}
		values := n.split(i, cells)
		whole := values[len(values)-1]
		// The sums of the cells, one after the other, and what was before.
		t, before := one(), one()
		VMOVDQA64(whole, before)
		for _, shift := range []uint8{16, 32} {
			VPSLLQ(operand.U8(shift), before, t)
			VPADDW(t, before, before)
		}
		VPADDW(acc.carry, before, before)
		VPMULTISHIFTQB(before, n.last[i], acc.carry)
		VPSUBW(whole, before, before)
		for k, v := range values {
			VPADDW(before, v, v)
			if k == 0 {
				VMOVDQA64(v, first, acc.first)
			}
			ones := n.ones[i]
			if k > 0 && k == len(values)-1 {
				ones = n.onesLast[i]
			}
			n.take(acc, i, v, ones)
		}
	}
	KXORW(first, first, first)
}

func (n *narrowFold) take(acc *narrowAcc, i int, v, ones reg.VecVirtual) {
	VPMINSW(v, acc.least, acc.least)
	VPMAXSW(v, acc.most, acc.most)
	VPDPWSSD(ones, v, acc.sum)
}

// halves makes two cells of each of two groups, the remainder and the quotient: the group
// and, for every one of the quotient, what the second cell counts more than the divisor.
func (n *narrowFold) halves(i int, x reg.VecVirtual) {
	one := twelve.regs[i]
	even, odd := one(), one()
	VPSRLQ(operand.U8(32), x, odd)
	VPMULUDQ(n.recip[i], x, even)
	VPMULUDQ(n.recip[i], odd, odd)
	VMOVSHDUP(even, n.evens, odd)
	VPSRLD(n.shift, odd, odd)
	VPMULLD(n.more[i], odd, odd)
	VPADDD(odd, x, x)
}

// split makes the digits of cells, less the base of the prediction, and adds to each
// those before it.
func (n *narrowFold) split(i int, x reg.VecVirtual) (sums []reg.VecVirtual) {
	one := twelve.regs[i]
	for k := 0; k < n.digits-1; k++ {
		inverse := n.inverse
		if k == n.digits-2 {
			inverse = n.inverseLast
		}
		quotient, low := one(), one()
		VPMULHUW(inverse[i], x, quotient)
		VPSRLW(n.inverseShift, quotient, quotient)
		VPMULLW(n.digit[i], quotient, low)
		VPSUBW(low, x, low)
		VPADDW(n.base[i], low, low)
		sums = append(sums, low)
		x = quotient
	}
	VPADDW(n.baseLast[i], x, x)
	sums = append(sums, x)
	for k := 1; k < len(sums); k++ {
		VPADDW(sums[k-1], sums[k], sums[k])
	}
	return sums
}

// store makes of the cells what Fold has of each lane.
func (n *narrowFold) store(f reg.Register) {
	start := n.each(narrowBase)
	sixty := twelve.constant(60)
	for i, one := range twelve.regs {
		acc, disp, t, starts := &n.accs[i], twelve.disps[i], one(), one()
		if n.order > 0 {
			VMOVDQU64(at(f, foldValue+disp), start[i])
		}
		for _, shift := range []uint8{32, 16} {
			VPSRLQ(operand.U8(shift), acc.least, t)
			VPMINSW(t, acc.least, acc.least)
			VPSRLQ(operand.U8(shift), acc.most, t)
			VPMAXSW(t, acc.most, acc.most)
		}
		for _, r := range []struct {
			cell reg.VecVirtual
			to   int
		}{{acc.first, foldFirst}, {acc.least, foldLeast}, {acc.most, foldMost}} {
			VPSLLQ(operand.U8(48), r.cell, r.cell)
			n.put(r.cell, 48, start[i], at(f, r.to+disp))
		}
		n.put(acc.carry, 48, start[i], at(f, foldValue+disp))
		VPSLLQ(operand.U8(32), acc.sum, t)
		VPSRAQ(operand.U8(32), t, t)
		VPMULLQ(sixty[i], start[i], starts)
		VPADDQ(starts, t, t)
		n.put(acc.sum, 32, t, at(f, foldSum+disp))
	}
}

// put writes what v holds from a bit on, plus more.
func (n *narrowFold) put(v reg.VecVirtual, bit uint8, more reg.VecVirtual, to operand.Mem) {
	VPSRAQ(operand.U8(bit), v, v)
	VPADDQ(more, v, v)
	VMOVDQU64(v, to)
}
