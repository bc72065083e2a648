package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Where the arrays of Fold lie, 32 bytes each.
const (
	foldValue = 32 * iota
	foldStep
	foldFirst
	foldLeast
	foldMost
	foldSum
)

// folded are the accumulators of a fold, by lane.
type folded struct{ least, most, sum reg.VecVirtual }

// fold takes in the values of four lanes side by side: one loop for each order
// of the prediction, with take for a row of values.
func fold(name, more, about string, prepare func() func(acc folded, x reg.VecVirtual)) {
	begin(name, "func(f, res *uint64, base, order, n uint64"+more+")", name+" is "+about+" of n residuals, at least one.")
	f, res, n := load64("f"), load64("res"), load64("n")
	order := load64("order")
	base := broadcast(load64("base"))
	acc := folded{YMM(), YMM(), YMM()}
	value, step := YMM(), YMM()
	state := []struct {
		of   reg.VecVirtual
		disp int
	}{{value, foldValue}, {step, foldStep}, {acc.least, foldLeast}, {acc.most, foldMost}, {acc.sum, foldSum}}
	for _, s := range state {
		VMOVDQU(at(f, s.disp), s.of)
	}
	take := prepare()
	CMPQ(order, operand.U8(1))
	JE(operand.LabelRef("order1"))
	JA(operand.LabelRef("order2"))
	for o := range 3 {
		if o > 0 {
			Label(fmt.Sprint("order", o))
		}
		first := YMM()
		VPADDQ(at(res, 0), base, first)
		switch o {
		case 1:
			VPADDQ(value, first, first)
		case 2:
			VPADDQ(step, first, first)
			VPADDQ(value, first, first)
		}
		VMOVDQU(first, at(f, foldFirst))
		Label(fmt.Sprint("loop", o))
		predict(o, at(res, 0), base, value, step)
		take(acc, value)
		ADDQ(operand.U8(32), res)
		DECQ(n)
		JNZ(operand.LabelRef(fmt.Sprint("loop", o)))
		if o < 2 {
			JMP(operand.LabelRef("end"))
		}
	}
	Label("end")
	for _, s := range state {
		VMOVDQU(s.of, at(f, s.disp))
	}
	end()
}

// predict makes values of a row of residuals.
func predict(order int, residuals operand.Op, base, value, step reg.VecVirtual) {
	switch order {
	case 0:
		VPADDQ(residuals, base, value)
	case 1:
		r := YMM()
		VPADDQ(residuals, base, r)
		VPADDQ(r, value, value)
	case 2:
		r := YMM()
		VPADDQ(residuals, base, r)
		VPADDQ(r, step, step)
		VPADDQ(step, value, value)
	}
}

// extremes takes integers in: AVX-512 has an instruction for what takes AVX2 a
// comparison and a choice.
type extremes func(x reg.VecVirtual, acc folded)

func extremesAVX2(x reg.VecVirtual, acc folded) {
	lesser(x, acc.least, YMM())
	greater(x, acc.most, YMM())
}

func extremesAVX512(x reg.VecVirtual, acc folded) {
	VPMINSQ(x, acc.least, acc.least)
	VPMAXSQ(x, acc.most, acc.most)
}

func foldInts(name string, bounds extremes) {
	fold(name, "", "FoldInts", func() func(folded, reg.VecVirtual) {
		return func(acc folded, x reg.VecVirtual) {
			bounds(x, acc)
			VPADDQ(x, acc.sum, acc.sum)
		}
	})
}

func foldDecimals(name string, bounds extremes) {
	fold(name, ", scale float64", "FoldDecimals", func() func(folded, reg.VecVirtual) {
		scale := scaleOf()
		magic, even := constant(magicBits), constant(^uint64(1))
		return func(acc folded, x reg.VecVirtual) {
			bounds(x, acc)
			v := YMM()
			VPADDQ(magic, x, v)
			VSUBPD(magic, v, v)
			VDIVPD(scale, v, v)
			VPAND(even, v, v)
			VADDPD(v, acc.sum, acc.sum)
		}
	})
}

// foldBits relies on what VMINPD and VMAXPD do with two zeros and with NaN: the
// accumulator stays.
func foldBits() {
	fold("foldBitsAVX2", ", shift uint64", "FoldBits, whose shift is one less,", func() func(folded, reg.VecVirtual) {
		shift := XMM()
		VMOVQ(load64("shift"), shift)
		return func(acc folded, x reg.VecVirtual) {
			v := YMM()
			VPSLLQ(shift, x, v)
			VMINPD(acc.least, v, acc.least)
			VMAXPD(acc.most, v, acc.most)
			VADDPD(v, acc.sum, acc.sum)
		}
	})
}
