package intlist

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"dalmatiner/internal/codec/kernel"
)

const (
	// riceBlock residuals have one parameter: their low bits fill whole bytes.
	riceBlock  = kernel.CodeBlock
	riceBlocks = (MaxLen + riceBlock - 1) / riceBlock
	// The byte of the parameters: the least of them, the bits of each above it, and
	// whether residuals have signs.
	riceLeast  = 31
	riceWidth  = 5 // shift
	riceWidest = 3
	riceZigzag = 1 << 7
)

// codedResiduals are residuals one behind the other, and what the kernels write behind them.
type codedResiduals [MaxLen + riceBlock]uint64

// rice is a Rice code for residuals (Rice, Plaunt: "Adaptive Variable-Length Coding for
// Efficient Compression of Spacecraft Television Data", 1971), with a parameter for every
// 64 of them, and quotients apart from low bits. With growth it is an exponential Golomb
// code (Teuhola: "A Compression Method for Clustered Bit-Vectors", 1978): for residuals of
// which some are much larger than the others.
type rice struct {
	growth bool // a residual has as many low bits more as its quotient says
	zigzag bool
	sparse bool  // residuals that are 0 are left out
	where  Mask  // of sparse: the others
	least  int64 // of sparse without zigzag: the smallest of them
	count  int   // residuals that are coded
	k      [riceBlocks]uint8
	low    []byte
	high   []byte

	bytes int // of the encoder: all of it
}

// bias is what is added to a coded number before its sign is undone.
func (c *rice) bias() uint64 {
	switch {
	case !c.sparse:
		return 0
	case c.zigzag:
		return 1
	}
	return uint64(c.least)
}

// blocks returns the number of parameters.
func (c *rice) blocks() int { return (c.count + riceBlock - 1) / riceBlock }

// lowBits returns how many low bits there are, if the quotients are total in sum.
func (c *rice) lowBits(total int) int {
	n := 0
	for b := range c.blocks() {
		n += min(riceBlock, c.count-b*riceBlock) * int(c.k[b])
	}
	if c.growth {
		n += total
	}
	return n
}

// rice reads a code of the residuals of m integers; growth and sparse of c are known.
func (r *Reader) rice(c *rice, m int) error {
	head := r.U8()
	c.zigzag, c.count, c.least = head&riceZigzag != 0, m, 0
	if c.sparse {
		if !c.zigzag {
			c.least = r.Varint()
		}
		var err error
		if c.where, err = r.Mask(m); err != nil {
			return err
		}
		c.count = c.where.Rank(m)
	}
	width := uint(head >> riceWidth & riceWidest)
	parameters := BitReader{Src: r.Take(bytesFor(c.blocks() * int(width)))}
	for b := range c.blocks() {
		c.k[b] = head&riceLeast + uint8(parameters.Get(width))
	}
	quotients, err := r.quotients(c)
	c.low = r.Take(bytesFor(c.lowBits(quotients)))
	if err == nil && (len(c.high) > maxStream || len(c.low) > maxStream) {
		err = fmt.Errorf("%w: code of %d and %d bytes", ErrCorrupt, len(c.high), len(c.low))
	}
	return err
}

// quotients finds where the quotients end and returns their sum.
func (r *Reader) quotients(c *rice) (total int, err error) {
	ones, n := 0, 0
	for ; ones < c.count && n < len(r.Src); n += 8 {
		ones += bits.OnesCount64(loadWord(r.Src, n))
	}
	if r.Bad || ones < c.count {
		return 0, fmt.Errorf("%w: %d quotients of %d residuals", ErrCorrupt, ones, c.count)
	}
	if n == 0 {
		c.high = nil
		return 0, nil
	}
	last := loadWord(r.Src, n-8)
	for ; ones > c.count; ones-- {
		last &^= 1 << (bits.Len64(last) - 1)
	}
	end := 8*(n-8) + bits.Len64(last)
	if c.high = r.Take(bytesFor(end)); end&7 != 0 && c.high[end>>3]>>(end&7) != 0 {
		return 0, fmt.Errorf("%w: more than %d quotients", ErrCorrupt, c.count)
	}
	return end - c.count, nil
}

// unpack writes the residuals of count lanes from lane j on of m to q.Residuals. A code begins
// where the one before it ends: those behind the last lane are not read.
func (c *rice) unpack(q *Lanes, m int, lay *layout, j, count int) {
	residuals := c.residuals(q, min((j+count)*lay.length, m))[:len(q.coded[0])]
	clear(residuals[m : lay.lanes*lay.length])
	n := lay.length
	src := residuals[j*n:]
	at := 0
	for ; at+kernel.TurnColumns <= n; at += kernel.TurnColumns {
		kernel.Turn(q.Residuals[kernel.Lanes*at:], kernel.Lanes, src[at:], n, count)
	}
	for ; at < n; at++ {
		for l := range count {
			q.Residuals[kernel.Lanes*at+l] = src[l*n+at]
		}
	}
}

// residuals returns the first n residuals, which lie in q with room behind them.
func (c *rice) residuals(q *Lanes, n int) []uint64 {
	if !c.sparse {
		c.read(q.coded[0][:n], q)
		return q.coded[0][:n]
	}
	some := q.coded[0][:c.where.Rank(n)]
	c.read(some, q)
	c.spread(q.coded[1][:n], some)
	return q.coded[1][:n]
}

// spread writes residuals to their places of dst, which has as many, and zeros between them.
func (c *rice) spread(dst, residuals []uint64) {
	clear(dst)
	for k := 0; len(residuals) > 0; k++ {
		for word := c.where[k]; word != 0 && len(residuals) > 0; word &= word - 1 {
			dst[k<<6+bits.TrailingZeros64(word)] = residuals[0]
			residuals = residuals[1:]
		}
	}
}

// streams is memory for the bytes of a code, which the kernel reads a little beyond.
type streams struct {
	high, low [maxStream + kernel.CodeSpare]byte
}

// maxStream is more than the quotients or the low bits take where they are smaller than
// packed residuals.
const maxStream = 8 * MaxLen

// paddedCopy copies src to dst and clears what is read behind it.
func paddedCopy(dst, src []byte) []byte {
	n := copy(dst, src)
	clear(dst[n : n+kernel.CodeSpare])
	return dst[:n+kernel.CodeSpare]
}

// read decodes the first residuals.
func (c *rice) read(dst []uint64, q *Lanes) {
	codes := kernel.Codes{
		High: paddedCopy(q.streams.high[:], c.high), Low: paddedCopy(q.streams.low[:], c.low),
		K:      c.k[:c.blocks()],
		Growth: c.growth, Bias: c.bias(), Signed: c.zigzag,
	}
	codes.Decode(dst, &q.ends)
}

// numbers fills dst with the coded numbers of raw, less base, and returns them and the bits
// that any of them has. dst has room for one more.
func numbers(c *rice, dst, raw []uint64, base uint64) (u []uint64, all uint64) {
	if !c.sparse {
		u = dst[:len(raw)]
		return u, kernel.Excess(u, raw, base, c.zigzag)
	}
	sign, bias, n := uint64(0), c.bias(), 0
	if c.zigzag {
		sign = 1
	}
	for _, x := range raw {
		d := x - base
		dst[n] = (d<<sign ^ uint64(int64(d)>>63)&-sign) - bias
		some := (d | -d) >> 63 // 0 where d is: the next one lies over it
		all |= dst[n] & -some
		n += int(some)
	}
	return dst[:n], all
}

func (c *rice) size() int { return c.bytes }

// width returns the least parameter and the bits of each above it.
func (c *rice) width() (least uint8, width uint) {
	if c.count == 0 {
		return 0, 0
	}
	k := c.k[:c.blocks()]
	least = slices.Min(k)
	return least, uint(bits.Len8(slices.Max(k) - least))
}

// appendTo appends the residuals, of which c was planned.
func (c *rice) appendTo(dst []byte, residuals []uint64, s *Scratch) []byte {
	least, width := c.width()
	head := least | uint8(width)<<riceWidth
	if c.zigzag {
		head |= riceZigzag
	}
	dst = append(dst, head)
	if c.sparse {
		if !c.zigzag {
			dst = binary.AppendUvarint(dst, Zigzag(c.least))
		}
		where := PlanMask(&c.where, len(residuals), s)
		dst = where.AppendTo(dst, len(residuals))
	}
	u, _ := numbers(c, s.coded[:], residuals, 0)
	w := BitWriter{Dst: dst}
	for _, k := range c.k[:c.blocks()] {
		w.Put(uint64(k-least), width)
	}
	return c.appendLow(c.appendQuotients(w.Finish(), u), u)
}

// appendQuotients appends that of each number as so many zeros and a one.
func (c *rice) appendQuotients(dst []byte, u []uint64) []byte {
	var w BitWriter
	w.Dst = dst
	for b, part := range blocks(u) {
		k := c.k[b]
		for _, x := range part {
			q := uint(x >> k)
			if c.growth {
				q = uint(bits.Len64(x+1<<k)-1) - uint(k)
			}
			w.skip(q)
			w.acc |= 1 << w.n
			w.n++
		}
	}
	w.skip(0)
	return w.Finish()
}

// appendLow appends the low bits of each number.
func (c *rice) appendLow(dst []byte, u []uint64) []byte {
	w := BitWriter{Dst: dst}
	for b, part := range blocks(u) {
		k := uint(c.k[b])
		if c.growth {
			for _, x := range part {
				x += 1 << k
				width := uint(bits.Len64(x) - 1)
				w.Put(x&^(1<<width), width)
			}
			continue
		}
		for _, x := range part {
			w.Put(x&(1<<k-1), k)
		}
	}
	return w.Finish()
}

// skip appends zeros. It leaves room for a bit.
func (b *BitWriter) skip(zeros uint) {
	for b.n += zeros; b.n >= 64; b.n -= 64 {
		b.Dst = binary.LittleEndian.AppendUint64(b.Dst, b.acc)
		b.acc = 0
	}
}

// putUnary appends zeros and a one.
func (b *BitWriter) putUnary(zeros uint) {
	b.skip(zeros)
	b.Put(1, 1)
}
