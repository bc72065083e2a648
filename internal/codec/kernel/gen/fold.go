package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Where the arrays of Fold lie.
const (
	foldValue = rowBytes * iota
	foldStep
	foldFirst
	foldLeast
	foldMost
	foldSum
	foldRest
)

// folded are the lanes of one register: what is before their next value, and what
// was made of the values.
type folded struct {
	base, value, step, least, most, sum, rest, first reg.VecVirtual
	disp                                             int // from lane 0
}

// fold takes in the values of the lanes of all registers side by side, as doubles where floats is
// set: one loop for each order of the prediction, with take for a row of values in one register.
func fold(name, more, about string, v vectors, floats bool,
	prepare func(v vectors) func(acc *folded, x reg.VecVirtual)) {
	begin(name, "func(f, res *uint64, base, order, n uint64"+more+")",
		name+" is "+about+" of n residuals, at least one.")
	f, res, n := load64("f"), load64("res"), load64("n")
	order := load64("order")
	bases := v.broadcast(load64("base"))
	var all []*folded
	for i, disp := range v.disps {
		one := v.regs[i]
		all = append(all, &folded{
			base:  bases[i],
			value: one(),
			step:  one(),
			least: one(),
			most:  one(),
			sum:   one(),
			rest:  one(),
			first: one(),
			disp:  disp,
		})
	}
	state := func(move func(acc reg.VecVirtual, m operand.Mem)) {
		for _, r := range all {
			move(r.value, at(f, foldValue+r.disp))
			move(r.step, at(f, foldStep+r.disp))
			move(r.least, at(f, foldLeast+r.disp))
			move(r.most, at(f, foldMost+r.disp))
			move(r.sum, at(f, foldSum+r.disp))
			if floats {
				move(r.rest, at(f, foldRest+r.disp))
			}
		}
	}
	state(func(acc reg.VecVirtual, m operand.Mem) { v.move(m, acc) })
	take := prepare(v)
	CMPQ(order, operand.U8(1))
	JE(operand.LabelRef("order1"))
	JA(operand.LabelRef("order2"))
	for o := range 3 {
		if o > 0 {
			Label(fmt.Sprint("order", o))
		}
		for _, r := range all {
			v.move(at(res, r.disp), r.first)
			VPADDQ(r.first, r.base, r.first)
			if o > 1 {
				VPADDQ(r.step, r.first, r.first)
			}
			if o > 0 {
				VPADDQ(r.value, r.first, r.first)
			}
			v.move(r.first, at(f, foldFirst+r.disp))
		}
		Label(fmt.Sprint("loop", o))
		for i, r := range all {
			predict(o, at(res, r.disp), r, v.regs[i])
			take(r, r.value)
		}
		ADDQ(operand.U8(rowBytes), res)
		DECQ(n)
		JNZ(operand.LabelRef(fmt.Sprint("loop", o)))
		if o < 2 {
			JMP(operand.LabelRef("end"))
		}
	}
	Label("end")
	state(func(acc reg.VecVirtual, m operand.Mem) { v.move(acc, m) })
	end()
}

// predict makes values of a row of residuals.
func predict(order int, residuals operand.Op, r *folded, temp func() reg.VecVirtual) {
	switch order {
	case 0:
		VPADDQ(residuals, r.base, r.value)
	case 1:
		x := temp()
		VPADDQ(residuals, r.base, x)
		VPADDQ(x, r.value, r.value)
	case 2:
		x := temp()
		VPADDQ(residuals, r.base, x)
		VPADDQ(x, r.step, r.step)
		VPADDQ(r.step, r.value, r.value)
	}
}

// extremes takes integers in: AVX-512 has an instruction for what takes AVX2 a
// comparison and a choice.
func (v *vectors) extremes(x reg.VecVirtual, acc *folded) {
	if !v.avx512 {
		lesser(x, acc.least, YMM())
		greater(x, acc.most, YMM())
		return
	}
	VPMINSQ(x, acc.least, acc.least)
	VPMAXSQ(x, acc.most, acc.most)
}

// sum adds doubles to a sum and to what rounding takes from it, as floatsum.Sum.Add does. q is
// lost.
func (v *vectors) sum(acc *folded, q reg.VecVirtual) {
	i := v.index(acc)
	sum, added := v.regs[i](), v.regs[i]()
	VADDPD(q, acc.sum, sum)
	VSUBPD(acc.sum, sum, added)
	VSUBPD(added, q, q)
	VSUBPD(added, sum, added)
	VSUBPD(added, acc.sum, added)
	VADDPD(q, added, added)
	VADDPD(added, acc.rest, acc.rest)
	v.move(sum, acc.sum)
}

func foldInts(v vectors) {
	fold("foldInts"+v.name, "", "FoldInts", v, false, func(v vectors) func(*folded, reg.VecVirtual) {
		return func(acc *folded, x reg.VecVirtual) {
			v.extremes(x, acc)
			VPADDQ(x, acc.sum, acc.sum)
		}
	})
}

func foldDecimals(v vectors) {
	fold("foldDecimals"+v.name, ", scale float64, keep uint64", "FoldDecimals", v, true,
		func(v vectors) func(*folded, reg.VecVirtual) {
			scale := XMM()
			Load(Param("scale"), scale)
			scales := v.spread(scale)
			keep := v.broadcast(load64("keep"))
			quotient := v.doubles(scales)
			return func(acc *folded, x reg.VecVirtual) {
				v.extremes(x, acc)
				i := v.index(acc)
				q := quotient(i, x)
				v.and(keep[i], q, q)
				v.sum(acc, q)
			}
		})
}

// doubles makes quotients of integers within ±2^51 and powers of ten up to 10^9, rounded
// once. Of AVX-512 a division takes more than all that is done beside it: the product
// with the rounded reciprocal is less than two units in the last place off, and adding
// what it leaves over, again times the reciprocal, gives the quotient to 2^-50 of a unit
// before that sum is rounded. A quotient that is no double lies 2^-22 of a unit or more
// beside the middle of two, as 10^9 has the odd factor 5^9 below 2^21: so what is rounded
// lies on the same side of it.
func (v *vectors) doubles(scales []reg.VecVirtual) func(i int, x reg.VecVirtual) reg.VecVirtual {
	if !v.avx512 {
		magics := v.constant(magicBits)
		return func(i int, x reg.VecVirtual) reg.VecVirtual {
			q := v.regs[i]()
			VPADDQ(magics[i], x, q)
			VSUBPD(magics[i], q, q)
			VDIVPD(scales[i], q, q)
			return q
		}
	}
	recips := v.constant(math.Float64bits(1))
	VDIVPD(scales[0], recips[0], recips[0])
	return func(i int, x reg.VecVirtual) reg.VecVirtual {
		over, q := v.regs[i](), v.regs[i]()
		VCVTQQ2PD(x, over)
		VMULPD(recips[i], over, q)
		VFNMADD231PD(scales[i], q, over)
		VFMADD231PD(recips[i], over, q)
		return q
	}
}

// sendable clears the lowest bit of doubles below 2^-895.
func (v *vectors) sendable() func(i int, q reg.VecVirtual) {
	if !v.avx512 {
		zero := YMM()
		VPXOR(zero, zero, zero)
		return func(_ int, q reg.VecVirtual) { sendable(q, zero) }
	}
	high, even := v.constant(0xf8<<56), v.constant(^uint64(1))
	return func(i int, q reg.VecVirtual) {
		below := K()
		VPTESTNMQ(high[i], q, below)
		VPANDQ(even[i], q, below, q)
	}
}

// foldBits relies on what VMINPD and VMAXPD do with two zeros and with NaN: the
// accumulator stays.
func foldBits(v vectors) {
	fold("foldBits"+v.name, ", shift uint64", "FoldBits", v, true,
		func(v vectors) func(*folded, reg.VecVirtual) {
			shift := XMM()
			VMOVQ(load64("shift"), shift)
			sent := v.sendable()
			return func(acc *folded, x reg.VecVirtual) {
				i := v.index(acc)
				q := v.regs[i]()
				VPSLLQ(shift, x, q)
				sent(i, q)
				VMINPD(acc.least, q, acc.least)
				VMAXPD(acc.most, q, acc.most)
				v.sum(acc, q)
			}
		})
}
