package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Where the fields of codePlace lie.
const (
	placeWord = 8 * iota
	placeNext
	placePrev
	placePos
)

// decode reads coded numbers one after the other: nothing but where the next one's bits
// begin depends on the one before.
func decode(name string, growth bool) {
	begin(name, "func(dst *uint64, high, low *byte, p *uint64, k, bias, sign, n uint64)",
		name+" decodes n numbers, at least one, of a block. sign is 1 if they have one.")
	dst, high, low, p := load64("dst"), load64("high"), load64("low"), load64("p")
	k, bias, sign, n := load64("k"), load64("bias"), load64("sign"), load64("n")
	word, prev, pos := GP64(), GP64(), GP64()
	MOVQ(at(p, placeWord), word)
	MOVQ(at(p, placePrev), prev)
	MOVQ(at(p, placePos), pos)
	ADDQ(at(p, placeNext), high)
	JMP(operand.LabelRef("loop"))
	Label("refill")
	MOVQ(at(high, 0), word)
	ADDQ(operand.U8(8), high)
	SUBQ(operand.U8(64), prev)
	Label("loop")
	TESTQ(word, word)
	JZ(operand.LabelRef("refill"))
	quotient, u, t := GP64(), GP64(), GP64()
	TZCNTQ(word, t)
	BLSRQ(word, word)
	MOVQ(t, quotient)
	SUBQ(prev, quotient)
	LEAQ(operand.Mem{Base: t, Disp: 1}, prev)
	MOVQ(pos, t)
	SHRQ(operand.U8(3), t)
	MOVQ(operand.Mem{Base: low, Index: t, Scale: 1}, u)
	MOVQ(pos, t)
	ANDQ(operand.U8(7), t)
	SHRXQ(t, u, u)
	if growth {
		ADDQ(k, quotient)
		ADDQ(quotient, pos)
		ANDQ(operand.U8(63), quotient)
		BZHIQ(quotient, u, u)
		XORL(t.As32(), t.As32())
		BTSQ(quotient, t)
		ADDQ(t, u)
	} else {
		ADDQ(k, pos)
		BZHIQ(k, u, u)
		SHLXQ(k, quotient, quotient)
		ADDQ(quotient, u)
	}
	ADDQ(bias, u)
	MOVQ(u, t)
	ANDQ(sign, t)
	NEGQ(t)
	SHRXQ(sign, u, u)
	XORQ(t, u)
	MOVQ(u, at(dst, 0))
	ADDQ(operand.U8(8), dst)
	DECQ(n)
	JNZ(operand.LabelRef("loop"))
	first := Load(Param("high"), GP64())
	SUBQ(first, high)
	MOVQ(high, at(p, placeNext))
	MOVQ(word, at(p, placeWord))
	MOVQ(prev, at(p, placePrev))
	MOVQ(pos, at(p, placePos))
	RET()
}

// codeEnds finds where the quotients of numbers end, a word of them at a time.
func codeEnds() {
	begin("codeEndsAVX512", "func(ends *uint16, high *byte, t *byte, n uint64)",
		"codeEndsAVX512 writes the positions of the first n ones of high, at least one, and up to 63 "+
			"further ones.")
	ends, high, t, n := load64("ends"), load64("high"), load64("t"), load64("n")
	numbers, word, base, step := ZMM(), GP64(), ZMM(), ZMM()
	VMOVDQU64(at(t, tableNumbers), numbers)
	VPXORQ(base, base, base)
	MOVQ(operand.U32(64), word)
	VPBROADCASTW(word.As32(), step)
	Label("loop")
	ones, some, found := GP64(), K(), ZMM()
	MOVQ(at(high, 0), word)
	KMOVQ(word, some)
	POPCNTQ(word, ones)
	VPCOMPRESSB_Z(numbers, some, found)
	half, below, above := YMM(), ZMM(), ZMM()
	VEXTRACTI64X4(operand.U8(1), found, half)
	VPMOVZXBW(halfOf(found), below)
	VPMOVZXBW(half, above)
	VPADDW(base, below, below)
	VPADDW(base, above, above)
	VPADDW(step, base, base)
	VMOVDQU64(below, at(ends, 0))
	VMOVDQU64(above, at(ends, 64))
	ADDQ(operand.U8(8), high)
	LEAQ(operand.Mem{Base: ends, Index: ones, Scale: 2}, ends)
	SUBQ(ones, n)
	JG(operand.LabelRef("loop"))
	end()
}

// Where the parts of codeTable lie.
const (
	tableNumbers = 64 * iota
	tableBytes
	tableSpread
	tableLanes
)

// decodeWide decodes numbers eight at a time, where the ends of their quotients are known. The ends
// also tell where growing low bits begin.
func decodeWide(name string, growth bool) {
	begin(name, "func(dst *uint64, ends *uint16, low *byte, t *byte, k, pos, bias, sign, n uint64)",
		name+" decodes n numbers, at least one, of a block whose low bits begin at bit pos, or else at "+
			"low. ends begins with the number before the first.")
	dst, ends, low, t := load64("dst"), load64("ends"), load64("low"), load64("t")
	k, n := load64("k"), load64("n")
	width, signs := XMM(), XMM()
	VMOVQ(k, width)
	sign := load64("sign")
	VMOVQ(sign, signs)
	bias, sided, none, one := filled(load64("bias")), filled(sign), ZMM(), filled64(1)
	VPXORQ(none, none, none)
	down := XMM()
	VPCMPEQW(down, down, down)
	all := K()
	KXNORQ(all, all, all)
	lowBits := fixedBits
	if growth {
		lowBits = growingBits
	}
	next := lowBits(&wideCodes{
		ends:  ends,
		low:   low,
		t:     t,
		k:     k,
		width: width,
		one:   one,
		down:  down,
		some:  all,
	})

	Label("loop")
	CMPQ(n, operand.U8(8))
	JGE(operand.LabelRef("whole"))
	left := GP64()
	XORL(left.As32(), left.As32())
	BTSQ(n, left)
	DECQ(left)
	KMOVQ(left, all)
	Label("whole")
	u := next()
	VPADDQ(bias, u, u)
	odd := ZMM()
	VPANDQ(sided, u, odd)
	VPSUBQ(odd, none, odd)
	VPSRLQ(signs, u, u)
	VPXORQ(odd, u, u)
	VMOVDQU64(u, all, at(dst, 0))
	ADDQ(operand.U8(64), dst)
	ADDQ(operand.U8(16), ends)
	SUBQ(operand.U8(8), n)
	JG(operand.LabelRef("loop"))
	end()
}

// wideCodes is what the loop of decodeWide goes on with.
type wideCodes struct {
	ends, low, t, k, width, some reg.Register
	one, down                    reg.VecVirtual // down is -1 in 16 bits
}

// quotients emits code that returns eight quotients, and the ends before them.
func (c *wideCodes) quotients() (q, before reg.VecVirtual) {
	short, ends := XMM(), ZMM()
	before = XMM()
	VMOVDQU(at(c.ends, 0), before)
	VMOVDQU(at(c.ends, 2), short)
	VPSUBW(before, short, short)
	VPADDW(c.down, short, short)
	VPMOVZXWQ(short, ends)
	return ends, before
}

// fixedBits is of low bits that do not grow: eight numbers have k bytes, in which their bits
// always begin at the same places.
func fixedBits(c *wideCodes) (next func() reg.VecVirtual) {
	from, shift, bytes, keep := ZMM(), ZMM(), ZMM(), ZMM()
	VMOVDQU64(at(c.t, tableLanes), from)
	VPMULLQ(filled(c.k), from, from)
	VPANDQ(filled64(7), from, shift)
	VPSRLQ(operand.U8(3), from, from)
	VPSHUFB(zmmAt(c.t, tableSpread), from, bytes)
	VPADDB(zmmAt(c.t, tableBytes), bytes, bytes)
	VPSLLQ(c.width, c.one, keep)
	VPSUBQ(c.one, keep, keep)
	return func() reg.VecVirtual {
		u := ZMM()
		VPERMB(at(c.low, 0), bytes, u)
		VPSRLVQ(shift, u, u)
		VPANDQ(keep, u, u)
		q, _ := c.quotients()
		VPSLLQ(c.width, q, q)
		VPADDQ(q, u, u)
		ADDQ(c.k, c.low)
		return u
	}
}

// growingBits is of low bits of which a number has as many more as its quotient says.
func growingBits(c *wideCodes) (next func() reg.VecVirtual) {
	place, step, first, bits := ZMM(), GP64(), XMM(), filled(c.k)
	VMOVDQU64(at(c.t, tableLanes), place)
	LEAQ(operand.Mem{Base: c.k, Disp: -1}, step)
	VPMULLQ(filled(step), place, place)
	VPADDQ(filled(load64("pos")), place, place)
	SHLQ(operand.U8(3), step)
	stride, seven, most := filled(step), filled64(7), filled64(63)
	VPBROADCASTW(at(c.ends, 0), first)
	return func() reg.VecVirtual {
		q, before := c.quotients()
		passed, from, u, some := XMM(), ZMM(), ZMM(), K()
		VPSUBW(first, before, passed)
		VPMOVZXWQ(passed, from)
		VPADDQ(place, from, from)
		VPADDQ(stride, place, place)
		shift, lead, keep := ZMM(), ZMM(), ZMM()
		VPANDQ(seven, from, shift)
		VPSRLQ(operand.U8(3), from, from)
		VPXORQ(u, u, u)
		KMOVQ(c.some, some)
		VPGATHERQQ(operand.Mem{Base: c.low, Index: from, Scale: 1}, some, u)
		VPSRLVQ(shift, u, u)
		VPADDQ(bits, q, q)
		VPANDQ(most, q, q)
		VPSLLVQ(q, c.one, lead)
		VPSUBQ(c.one, lead, keep)
		VPANDQ(keep, u, u)
		VPADDQ(lead, u, u)
		return u
	}
}

// filled fills a register of AVX-512 with a general one, filled64 with a constant.
func filled(r reg.Register) reg.VecVirtual {
	z := ZMM()
	VPBROADCASTQ(r, z)
	return z
}

func filled64(c uint64) reg.VecVirtual {
	r := GP64()
	MOVQ(operand.U64(c), r)
	return filled(r)
}

// zmmAt loads a register of AVX-512.
func zmmAt(base reg.Register, disp int) reg.VecVirtual {
	z := ZMM()
	VMOVDQU64(at(base, disp), z)
	return z
}

// chain adds up residuals one after the other, eight at a time: in a register by three shifts,
// and only the last sum is carried on. With order 0 there is nothing to add up.
func chain(name string, order int) {
	begin(name, "func(dst, res *uint64, factor, base, start, n uint64)",
		name+" is Chain, or Scale, of n residuals, at least one.")
	dst, res, n := load64("dst"), load64("res"), load64("n")
	factor, base, none, last, some := filled(load64("factor")), filled(load64("base")), ZMM(),
		filled64(7), K()
	VPXORQ(none, none, none)
	KXNORQ(some, some, some)
	var sum reg.VecVirtual
	if order > 0 {
		sum = filled(load64("start"))
	}
	Label("loop")
	CMPQ(n, operand.U8(8))
	JGE(operand.LabelRef("whole"))
	left := GP64()
	XORL(left.As32(), left.As32())
	BTSQ(n, left)
	DECQ(left)
	KMOVQ(left, some)
	Label("whole")
	x := ZMM()
	VMOVDQU64_Z(at(res, 0), some, x)
	VPMULLQ(factor, x, x)
	VPADDQ(base, x, x)
	if order > 0 {
		for _, by := range []uint8{7, 6, 4} {
			moved := ZMM()
			VALIGNQ(operand.U8(by), none, x, moved)
			VPADDQ(moved, x, x)
		}
		all := ZMM()
		VPERMQ(x, last, all)
		VPADDQ(sum, x, x)
		VPADDQ(all, sum, sum)
	}
	VMOVDQU64(x, some, at(dst, 0))
	ADDQ(operand.U8(64), res)
	ADDQ(operand.U8(64), dst)
	SUBQ(operand.U8(8), n)
	JG(operand.LabelRef("loop"))
	end()
}

// sums adds up rows.
func sums(v vectors) {
	begin("sums"+v.name, "func(s, res *uint64, n uint64)",
		"sums"+v.name+" is Sums of the lanes of its registers; n is above zero.")
	s, res, n := load64("s"), load64("res"), load64("n")
	var all []reg.VecVirtual
	for _, one := range v.regs {
		sum := one()
		if v.avx512 {
			VPXORQ(sum, sum, sum)
		} else {
			VPXOR(sum, sum, sum)
		}
		all = append(all, sum)
	}
	Label("loop")
	for i, sum := range all {
		VPADDQ(at(res, v.disps[i]), sum, sum)
	}
	ADDQ(operand.U8(rowBytes), res)
	DECQ(n)
	JNZ(operand.LabelRef("loop"))
	for i, sum := range all {
		v.move(sum, at(s, v.disps[i]))
	}
	end()
}
