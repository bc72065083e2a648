package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// match compares names and takes points while they are those that are expected.
// A point has prefix bytes, the same in all, the length of its name in two bytes,
// the name, suffix bytes that are a size of 8, and the value.
func match(name, doc string, prefix, suffix int) {
	begin(name, "func(words *uint64, names *byte, spans *uint32, n uint64, buf *byte, size uint64) "+
		"(points, used uint64)",
		name+" is "+doc+" of n names, above zero, which all lie within names.")
	words, names, spans, n := load64("words"), load64("names"), load64("spans"), load64("n")
	p, past := load64("buf"), load64("size")
	ADDQ(p, past)
	Label("next")
	// Where a point with the expected name would end is known before its own is
	// read: a name of another length is another one.
	want, size, behind := GP64(), GP64(), GP64()
	MOVL(at(spans, 0), want.As32())
	MOVL(at(spans, 4), size.As32())
	SUBL(want.As32(), size.As32())
	JZ(operand.LabelRef("done"))
	sent, value := at(p, prefix+2), operand.Mem{
		Base:  p,
		Index: size,
		Scale: 1,
		Disp:  prefix + 2 + suffix,
	}
	LEAQ(from(at(p, prefix+2+suffix), size, 8), behind)
	CMPQ(behind, past)
	JA(operand.LabelRef("done"))
	if prefix > 0 { // of nine bytes: two words that overlap
		first := load64("buf")
		for _, disp := range []int{0, prefix - 8} {
			word := GP64()
			MOVQ(at(first, disp), word)
			CMPQ(word, at(p, disp))
			JNE(operand.LabelRef("done"))
		}
	}
	length := GP64()
	MOVWLZX(at(p, prefix), length.As32())
	ROLW(operand.U8(8), length.As16())
	CMPL(size.As32(), length.As32())
	JNE(operand.LabelRef("done"))
	ADDQ(names, want)
	sameName(operand.Mem{Base: want}, sent, size)
	Label("same")
	takeWord(words, value, suffix)
	ADDQ(operand.U8(8), spans)
	MOVQ(behind, p)
	SUBQ(operand.U8(1), n)
	JNZ(operand.LabelRef("next"))
	Label("done")
	total := load64("n")
	SUBQ(n, total)
	Store(total, Return("points"))
	first := load64("buf")
	SUBQ(first, p)
	Store(p, Return("used"))
	end()
}

// takeWord appends the value at m to words, or goes to done when it is not one that
// is stored as it comes.
func takeWord(words reg.Register, m operand.Mem, suffix int) {
	if suffix > 0 {
		size := m
		size.Disp -= suffix
		CMPL(size, operand.U32(8<<24))
		JNE(operand.LabelRef("done"))
	}
	w := GP64()
	MOVQ(m, w)
	BSWAPQ(w)
	CMPB(m, operand.U8(1)) // an integer
	JEQ(operand.LabelRef("take"))
	CMPB(m, operand.U8(4)) // a float
	JB(operand.LabelRef("done"))
	Label("take")
	MOVQ(w, at(words, 0))
	ADDQ(operand.U8(8), words)
}

// sameName goes to same when size bytes at a and b are the same, else to done.
// Pieces overlap, so that nothing is read behind either.
func sameName(a, b operand.Mem, size reg.GPVirtual) {
	last := func(m operand.Mem, bytes int) operand.Mem { return from(m, size, -bytes) }
	CMPQ(size, operand.U8(16))
	JB(operand.LabelRef("short"))
	CMPQ(size, operand.U8(32))
	JA(operand.LabelRef("long"))
	x, y := XMM(), XMM()
	VMOVDQU(a, x)
	VPXOR(b, x, x)
	VMOVDQU(last(a, 16), y)
	VPXOR(last(b, 16), y, y)
	VPOR(x, y, y)
	VPTEST(y, y)
	JZ(operand.LabelRef("same"))
	JMP(operand.LabelRef("done"))
	sameLong(a, b, size)
	sameShort(a, b, size)
}

// from moves an operand by a register and a number of bytes.
func from(m operand.Mem, index reg.Register, disp int) operand.Mem {
	m.Index, m.Scale, m.Disp = index, 1, m.Disp+disp
	return m
}

func sameLong(a, b operand.Mem, size reg.GPVirtual) {
	Label("long")
	done, stop, bits := GP64(), GP64(), GP64()
	XORL(done.As32(), done.As32())
	LEAQ(operand.Mem{Base: size, Disp: -32}, stop)
	piece := YMM()
	Label("piece")
	VMOVDQU(from(a, done, 0), piece)
	VPCMPEQB(from(b, done, 0), piece, piece)
	VPMOVMSKB(piece, bits.As32())
	CMPL(bits.As32(), operand.I8(-1))
	JNE(operand.LabelRef("done"))
	ADDQ(operand.U8(32), done)
	CMPQ(done, stop)
	JB(operand.LabelRef("piece"))
	VMOVDQU(from(a, size, -32), piece)
	VPCMPEQB(from(b, size, -32), piece, piece)
	VPMOVMSKB(piece, bits.As32())
	CMPL(bits.As32(), operand.I8(-1))
	JEQ(operand.LabelRef("same"))
	JMP(operand.LabelRef("done"))
}

func sameShort(a, b operand.Mem, size reg.GPVirtual) {
	last := func(m operand.Mem, bytes int) operand.Mem { return from(m, size, -bytes) }
	Label("short")
	l, r := GP64(), GP64()
	for _, bytes := range []int{8, 4} {
		mov, xor, or, lw, rw := MOVQ, XORQ, ORQ, reg.Register(l), reg.Register(r)
		if bytes == 4 {
			mov, xor, or, lw, rw = MOVL, XORL, ORL, l.As32(), r.As32()
		}
		shorter := map[int]string{8: "four", 4: "few"}[bytes]
		CMPQ(size, operand.U8(uint8(bytes)))
		JB(operand.LabelRef(shorter))
		mov(a, lw)
		xor(b, lw)
		mov(last(a, bytes), rw)
		xor(last(b, bytes), rw)
		or(lw, rw)
		JZ(operand.LabelRef("same"))
		JMP(operand.LabelRef("done"))
		Label(shorter)
	}
	// One to three: the first, the last, and the middle one.
	middle := GP64()
	MOVQ(size, middle)
	SHRQ(operand.U8(1), middle)
	for _, pair := range [][2]operand.Mem{{a, b}, {from(a, middle, 0), from(b, middle, 0)},
		{last(a, 1), last(b, 1)}} {
		c, d := GP64(), GP64()
		MOVBLZX(pair[0], c.As32())
		MOVBLZX(pair[1], d.As32())
		CMPL(c.As32(), d.As32())
		JNE(operand.LabelRef("done"))
	}
	JMP(operand.LabelRef("same"))
}
