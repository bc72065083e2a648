// Command gen writes the assembly of package kernel: make generate.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	unpack()
	unpackGroups()
	add("addAVX2", 0)
	add("add1AVX2", 1)
	add("add2AVX2", 2)
	ints()
	floatBits()
	decimals()
	measure()
	combine()
	integers()
	offsets()
	steps()
	spread()
	scaled()
	tile()
	Generate()
}

func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

// broadcast fills a vector with a general register.
func broadcast(r reg.Register) reg.VecVirtual {
	x, y := XMM(), YMM()
	VMOVQ(r, x)
	VPBROADCASTQ(x, y)
	return y
}

// constant fills a vector with c.
func constant(c uint64) reg.VecVirtual {
	r := GP64()
	MOVQ(operand.U64(c), r)
	return broadcast(r)
}

// load64 loads an argument.
func load64(name string) reg.Register { return Load(Param(name), GP64()) }
