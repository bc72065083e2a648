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
	fill()
	ints()
	floatBits()
	decimals()
	measure()
	kinds()
	integers()
	offsets()
	steps()
	spread()
	scaled()
	pack()
	lay()
	intBits()
	for _, bytes := range []int{1, 2, 4} {
		zigzags(bytes)
	}
	turnRows()
	for _, v := range []vectors{four, twelve} {
		foldInts(v)
		foldDecimals(v)
		foldBits(v)
	}
	unpackWide()
	unpackGroupsWide()
	foldNarrow(0, 0)
	for digits := range 4 {
		foldNarrow(digits, 1)
	}
	numbers()
	addTo()
	match("matchBatchAVX2", "MatchBatch", 0, 0)
	match("matchEntriesAVX2", "MatchEntries", 9, 4)
	fetch()
	decode("decodeBMI2", false)
	decode("decodeGrowingBMI2", true)
	codeEnds()
	decodeWide("decodeAVX512", false)
	decodeWide("decodeGrowingAVX512", true)
	chain("scaleAVX512", 0)
	chain("chainAVX512", 1)
	bitLengths()
	numbersLess()
	quotients()
	sides()
	sums(four)
	sums(twelve)
	Generate()
}

// begin opens a function that keeps none of its pointers.
func begin(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	Doc(doc)
	Pragma("noescape")
}

// end closes a function.
func end() {
	VZEROUPPER()
	RET()
}

// fours emits a loop over n words, a multiple of four above zero, four at a
// time: the pointers go on with it.
func fours(n reg.Register, body func(), pointers ...reg.Register) {
	Label("loop")
	body()
	for _, p := range pointers {
		ADDQ(operand.U8(32), p)
	}
	SUBQ(operand.U8(4), n)
	JNZ(operand.LabelRef("loop"))
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

// notFloat, added with saturation to the bytes of a word, sets the highest bit of floats
// only.
const notFloat = (0x80 - 0x04) << 56

// double emits the bits of the double of a float word w. A word that is not negative has
// the lowest one set; none is all ones.
func double(w, none, out reg.VecVirtual) {
	odd := YMM()
	VPCMPGTQ(none, w, odd)
	VPADDQ(w, w, out)
	VPSUBQ(odd, out, out)
}

// word emits the float word of the bits of a double in v.
func word(v, marker reg.VecVirtual) {
	low := YMM()
	VPSLLQ(operand.U8(63), v, low)
	VPSRLQ(operand.U8(1), v, v)
	VPXOR(marker, v, v)
	VPXOR(low, v, v)
}

// scaleOf fills a vector with the argument scale.
func scaleOf() reg.VecVirtual {
	s, scale := XMM(), YMM()
	Load(Param("scale"), s)
	VBROADCASTSD(s, scale)
	return scale
}
