package intlist

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Mask is a set of up to 768 indexes: set slots, positions of changes, or
// which of two parts a value belongs to.
type Mask [MaxLanes]uint64

// Set adds i.
func (m *Mask) Set(i int) { m[i>>6] |= 1 << (i & 63) }

// Has reports whether i is a member.
func (m *Mask) Has(i int) bool { return m[i>>6]>>(i&63)&1 != 0 }

// Window returns the n members from index i on, 1 to 64, as bits.
func (m *Mask) Window(i, n int) uint64 {
	w := m[i>>6] >> (i & 63)
	if next := i>>6 + 1; next < len(m) {
		w |= m[next] << 1 << (63 - i&63)
	}
	return w & (^uint64(0) >> (64 - n))
}

// Rank returns the number of members below i, which is at most MaxLen.
func (m *Mask) Rank(i int) int {
	n := 0
	for k := range i >> 6 {
		n += bits.OnesCount64(m[k])
	}
	if i&63 != 0 {
		n += bits.OnesCount64(m[i>>6] << (64 - i&63))
	}
	return n
}

// complement returns the indexes below n that are not members.
func (m *Mask) complement(n int) Mask {
	var c Mask
	for k, w := range m {
		c[k] = ^w
	}
	c.Truncate(n)
	return c
}

// Truncate removes the members from n on; n is at most MaxLen.
func (m *Mask) Truncate(n int) {
	m[n>>6] &= 1<<(n&63) - 1
	for k := n>>6 + 1; k < len(m); k++ {
		m[k] = 0
	}
}

// edges returns the indexes below n whose membership differs from that of the
// index a lag of 1 to 64 before; those below 0 are no members.
func (m *Mask) edges(n, lag int) Mask {
	var t Mask
	before := uint64(0)
	for k, w := range m {
		t[k] = w ^ (w<<lag | before>>(64-lag))
		before = w
	}
	t.Truncate(n)
	return t
}

// fromEdges is the inverse of edges.
func (m *Mask) fromEdges(n, lag int) Mask {
	if lag > 1 {
		return m.fromApart(n, lag)
	}
	var t Mask
	carry := uint64(0)
	for k, w := range m {
		w ^= w << 1
		w ^= w << 2
		w ^= w << 4
		w ^= w << 8
		w ^= w << 16
		w ^= w << 32
		t[k] = w ^ carry
		carry = -(t[k] >> 63)
	}
	t.Truncate(n)
	return t
}

// fromApart is fromEdges for any lag: what is known of an index says the same of those 1, 2,
// 4 … lags behind it.
func (m *Mask) fromApart(n, lag int) Mask {
	t := *m
	for ; lag < n; lag *= 2 {
		words, bits := lag>>6, lag&63
		for k := len(t) - 1; k >= words; k-- {
			w := t[k-words] << bits
			if k > words {
				w |= t[k-words-1] >> 1 >> (63 - bits)
			}
			t[k] ^= w
		}
	}
	t.Truncate(n)
	return t
}

// The encodings of a mask. All but the bitmap list the gaps between members of
// a set, Rice-coded above the smallest gap.
const (
	maskBitmap = iota
	maskOnes
	maskZeros
	maskEdges

	// riceNone marks gaps that are all equal and take no bits.
	riceNone = 15

	// In the first byte: the lag of maskEdges is not 1, and follows.
	lagFlag = 1 << 6
	maxLag  = 64

	// lagMin is the least number of gaps for which lags are tried.
	lagMin = 8
)

// lags are those that are tried: of programs that do something every so many slots.
var lags = [...]int{2, 3, 4, 5, 6, 7, 10, 12, 15, 20, 30, 31, 60, 61}

// MaskPlan is the cheapest encoding of a mask.
type MaskPlan struct {
	mode   int
	lag    int  // of maskEdges
	rice   uint // number of low bits of a gap, or riceNone
	minGap int
	count  int // gaps
	set    Mask
	Size   int // bytes
}

// gapList is scratch for PlanMask.
type gapList [MaxLen]uint16

// PlanMask finds the smallest encoding of the members of m below n; with s.Dense also one
// that takes longer to find.
func PlanMask(m *Mask, n int, s *Scratch) MaskPlan {
	best := MaskPlan{mode: maskBitmap, set: *m, Size: 1 + bytesFor(n)}
	ones := m.Rank(n)
	if ones <= n/2+1 {
		best.try(maskOnes, 0, m, ones, &s.gaps)
	} else {
		zeros := m.complement(n)
		best.try(maskZeros, 0, &zeros, n-ones, &s.gaps)
	}
	edges := m.edges(n, 1)
	count := edges.Rank(n)
	if count <= min(ones, n-ones)+1 {
		best.try(maskEdges, 1, &edges, count, &s.gaps)
	}
	if least := min(ones, n-ones, count); s.Dense && least >= lagMin {
		best.tryLags(m, n, least, &s.gaps)
	}
	return best
}

// tryLags tries the lag that leaves the fewest edges, fewer than least.
func (p *MaskPlan) tryLags(m *Mask, n, least int, scratch *gapList) {
	lag := 0
	for _, l := range lags {
		if edges := m.edges(n, l); edges.Rank(n) < least {
			least, lag = edges.Rank(n), l
		}
	}
	if lag > 0 {
		edges := m.edges(n, lag)
		p.try(maskEdges, lag, &edges, least, scratch)
	}
}

func (p *MaskPlan) try(mode, lag int, set *Mask, count int, scratch *gapList) {
	gaps := scratch[:count]
	lo, hi, sum := set.gaps(gaps)
	rice, payload := uint(riceNone), 0
	if lo != hi {
		rice, payload = bestRice(gaps, lo, sum)
	}
	size := 1 + uvarintLen(uint64(count)) + uvarintLen(uint64(lo)) + bytesFor(payload)
	if lag > 1 {
		size++
	}
	if size < p.Size {
		*p = MaskPlan{mode: mode, lag: lag, rice: rice, minGap: lo, count: count, set: *set, Size: size}
	}
}

// gaps fills in the distances between the members, the first from -1.
func (m *Mask) gaps(gaps []uint16) (lo, hi, sum int) {
	if len(gaps) == 0 {
		return 0, 0, 0
	}
	i, prev := 0, -1
	lo = MaxLen
	for k, w := range m {
		for ; w != 0; w &= w - 1 {
			at := k<<6 + bits.TrailingZeros64(w)
			g := at - prev
			gaps[i] = uint16(g)
			lo, hi = min(lo, g), max(hi, g)
			prev = at
			i++
		}
	}
	return lo, hi, prev + 1
}

// bestRice returns the number of low bits that makes the gaps shortest, and
// their size in bits.
func bestRice(gaps []uint16, lo, sum int) (rice uint, size int) {
	mean := sum/len(gaps) - lo
	from := uint(max(bits.Len(uint(mean))-2, 0))
	var n [4]int
	for _, g := range gaps {
		v := (int(g) - lo) >> from
		n[0] += v
		n[1] += v >> 1
		n[2] += v >> 2
		n[3] += v >> 3
	}
	size = -1
	for i, high := range n {
		k := from + uint(i)
		if total := high + len(gaps)*int(k+1); size < 0 || total < size {
			rice, size = k, total
		}
	}
	return rice, size
}

// AppendTo appends the encoding of a mask over n indexes.
func (p *MaskPlan) AppendTo(dst []byte, n int) []byte {
	head := byte(p.mode) | byte(p.rice)<<2
	if p.lag > 1 {
		dst = append(dst, head|lagFlag, byte(p.lag))
	} else {
		dst = append(dst, head)
	}
	if p.mode == maskBitmap {
		for k := range bytesFor(n) {
			dst = append(dst, byte(p.set[k>>3]>>(8*(k&7))))
		}
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(p.count))
	dst = binary.AppendUvarint(dst, uint64(p.minGap))
	if p.rice == riceNone {
		return dst
	}
	w := BitWriter{Dst: dst}
	prev := -1
	for k, word := range p.set {
		for ; word != 0; word &= word - 1 {
			at := k<<6 + bits.TrailingZeros64(word)
			w.putRice(uint64(at-prev-p.minGap), p.rice)
			prev = at
		}
	}
	return w.Finish()
}

// putRice appends v: its upper bits as that many zeros and a one, then its
// lowest k bits.
func (b *BitWriter) putRice(v uint64, k uint) {
	b.putUnary(uint(v >> k))
	b.Put(v&(1<<k-1), k)
}

// getRice reads what putRice wrote; limit bounds the result.
func (r *BitReader) getRice(k uint, limit int) (int, bool) {
	w := bitsAt(r.Src, r.pos, 64)
	zeros := uint(bits.TrailingZeros64(w))
	if zeros+1+k <= 64 {
		r.pos += int(zeros + 1 + k)
		v := int(zeros<<k | uint(w>>(zeros+1))&(1<<k-1))
		return v, v <= limit && !r.HasOverrun()
	}
	zeros = 0
	for w == 0 {
		zeros += 64
		r.pos += 64
		if r.HasOverrun() || zeros > uint(limit) {
			return 0, false
		}
		w = bitsAt(r.Src, r.pos, 64)
	}
	n := uint(bits.TrailingZeros64(w))
	r.pos += int(n + 1)
	v := int((zeros+n)<<k) | int(r.Get(k))
	return v, v <= limit && !r.HasOverrun()
}

// Mask reads a mask over n indexes, n at most MaxLen.
func (r *Reader) Mask(n int) (m Mask, err error) {
	head := r.U8()
	mode, rice, lag := int(head&3), uint(head&^lagFlag>>2), 1
	if head&lagFlag != 0 {
		if lag = int(r.U8()); lag < 2 || lag > maxLag || mode != maskEdges {
			return m, fmt.Errorf("%w: mask of form %#x with lag %d", ErrCorrupt, head, lag)
		}
	}
	if mode == maskBitmap {
		bitmap := r.Take(bytesFor(n))
		if r.Bad || rice != 0 {
			return m, fmt.Errorf("%w: bitmap of %d positions is cut off", ErrCorrupt, n)
		}
		for k, b := range bitmap {
			m[k>>3] |= uint64(b) << (8 * (k & 7))
		}
		m.Truncate(n) // or the spare bits would be counted as members
		return m, nil
	}
	count, lo := r.Uvarint(), r.Uvarint()
	if r.Bad || count > uint64(n) || lo > uint64(n) || (rice > 10 && rice != riceNone) {
		return m, fmt.Errorf("%w: mask of %d positions with %d gaps of at least %d", ErrCorrupt, n, count,
			lo)
	}
	if m, err = r.gaps(int(count), int(lo), rice, n); err != nil {
		return m, err
	}
	switch mode {
	case maskZeros:
		m = m.complement(n)
	case maskEdges:
		m = m.fromEdges(n, lag)
	}
	return m, nil
}

// gaps reads count gaps and returns the members they lead to.
func (r *Reader) gaps(count, lo int, rice uint, n int) (m Mask, err error) {
	b := BitReader{Src: r.Src}
	at := -1
	for left := count; left > 0; {
		if rice != riceNone && b.pos>>3+8 <= len(b.Src) {
			done := m.fill(&b, &at, left, lo, rice, n)
			if left -= done; done > 0 {
				continue
			}
		}
		gap, ok := 0, true
		if rice != riceNone {
			gap, ok = b.getRice(rice, n)
		}
		at += gap + lo
		if !ok || at < 0 || at >= n {
			return m, fmt.Errorf("%w: mask leaves its %d positions", ErrCorrupt, n)
		}
		m.Set(at)
		left--
	}
	r.Src = b.Rest()
	return m, nil
}

// fill reads the next gaps, at most count, as long as they lie within the word at
// the position of b and lead to one of the n positions. It returns how many gaps
// it read. at is the last member so far.
func (m *Mask) fill(b *BitReader, at *int, count, lo int, rice uint, n int) (done int) {
	skip := uint(b.pos & 7)
	w := binary.LittleEndian.Uint64(b.Src[b.pos>>3:]) >> skip
	there, i := 64-skip, *at
	// Where the next gap begins has to wait for the one before: shifts are by less than 64, so
	// that each is one instruction.
	low, width := uint64(1)<<(rice&63)-1, rice+1
	for done < count && w != 0 {
		zeros := uint(bits.TrailingZeros64(w))
		used := zeros + width
		if used > there {
			break
		}
		next := i + lo + int(uint64(zeros)<<(rice&63)|w>>((zeros+1)&63)&low)
		if uint(next) >= uint(n) {
			break
		}
		m.Set(next)
		i = next
		w >>= used & 63
		there -= used
		done++
	}
	b.pos += int(64 - skip - there)
	*at = i
	return done
}
