package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// turnRows turns four rows of eight columns at a time. The next eight columns of the
// rows are fetched meanwhile: rows lie so far apart that no processor foresees it.
func turnRows() {
	begin("turnAVX2", "func(dst, src *uint64, row, column, n uint64)",
		"turnAVX2 is Turn of n rows, a multiple of four above zero. row and column are bytes from one "+
			"to the next.")
	dst, src, n := load64("dst"), load64("src"), load64("n")
	row, column := load64("row"), load64("column")
	row3, column3, upper := GP64(), GP64(), GP64()
	LEAQ(operand.Mem{Base: row, Index: row, Scale: 2}, row3)
	LEAQ(operand.Mem{Base: column, Index: column, Scale: 2}, column3)
	LEAQ(operand.Mem{Base: dst, Index: column, Scale: 4}, upper)
	// four is the address of the i-th of four strides from base.
	four := func(base, stride, stride3 reg.Register, i, disp int) operand.Mem {
		return []operand.Mem{
			{Base: base, Disp: disp},
			{Base: base, Index: stride, Scale: 1, Disp: disp},
			{Base: base, Index: stride, Scale: 2, Disp: disp},
			{Base: base, Index: stride3, Scale: 1, Disp: disp},
		}[i]
	}
	fours(n, func() {
		for half, out := range []reg.Register{dst, upper} {
			var rows [4]reg.VecVirtual
			for i := range rows {
				rows[i] = YMM()
				VMOVDQU(four(src, row, row3, i, 32*half), rows[i])
			}
			for i, v := range turn(rows) {
				VMOVDQU(v, four(out, column, column3, i, 0))
			}
		}
		for i := range 4 {
			PREFETCHT0(four(src, row, row3, i, 64))
		}
		LEAQ(operand.Mem{Base: src, Index: row, Scale: 4}, src)
	}, dst, upper)
	end()
}
