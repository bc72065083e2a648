package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

func fetch() {
	begin("fetch", "func(address uintptr, lines uint64)", "fetch is Fetch for lines, above zero.")
	p, n := load64("address"), load64("lines")
	Label("loop")
	PREFETCHT0(at(p, 0))
	ADDQ(operand.U8(64), p)
	SUBQ(operand.U8(1), n)
	JNZ(operand.LabelRef("loop"))
	RET()
}
