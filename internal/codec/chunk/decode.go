package chunk

import (
	"fmt"
	"math/bits"
	"sync"

	"dalmatiner/internal/codec/intlist"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
)

// DecodeRange writes the words of the set slots of [from, from+len(dst)) of the chunk src to dst,
// and stale markers where dst has no value (point.Overwrite). It leaves the rest of dst as it is,
// so that a newer chunk can be laid over an older one. It decodes only the lanes that the range
// touches, and of the other pieces of a multi-part chunk only the headers.
//
// The error wraps ErrCorrupt, unless the range is not within the chunk. After an error dst
// is as it was.
func DecodeRange(dst []uint64, src []byte, from int) error {
	if from < 0 || from+len(dst) > Slots {
		return fmt.Errorf("slots [%d, %d) of a chunk of %d", from, from+len(dst), Slots)
	}
	switch {
	case IsMultiPart(src):
		return decodeMultiPart(dst, src, from)
	case HasStale(src):
		return decodeStale(dst, src, from)
	}
	var f frame
	r := newReader(src)
	if err := f.parse(&r); err != nil {
		return err
	}
	m := memories.Get().(*memory)
	defer m.release()
	return m.decodeFrame(dst, &r, &f, from)
}

// memory is what decoding a chunk needs, kept because setting it to zero would
// take as long as some chunks do.
type memory struct {
	values values
	lanes  intlist.Lanes
	dense  [Slots]uint64 // values without the gaps between them
	runs   [Slots]uint64 // words that stand for several values each
	second [Slots]uint64 // of the second list
}

// memories is shared because decoding has no owner.
var memories = sync.Pool{New: func() any { return new(memory) }}

// release gives m back, which holds nothing of the chunk then.
func (m *memory) release() {
	m.values.release()
	memories.Put(m)
}

// decodeFrame decodes a range of what is behind the header f.
func (m *memory) decodeFrame(dst []uint64, r *reader, f *frame, from int) error {
	// Cut the range to the slots between the first and the last set one.
	if skip := f.FirstOff - from; skip > 0 {
		dst, from = dst[min(skip, len(dst)):], from+skip
	}
	dst = dst[:max(0, min(len(dst), f.LastOff+1-from))]
	if f.shape == shapeMask {
		return m.decodeMasked(dst, r, f, from)
	}
	if err := m.values.parse(r, f); err != nil {
		return err
	}
	if len(dst) > 0 {
		m.decode(dst, from-f.FirstOff)
	}
	return nil
}

// decodeMasked decodes a range of a chunk with gaps.
func (m *memory) decodeMasked(dst []uint64, r *reader, f *frame, from int) error {
	inner, err := r.Mask(f.slots() - 2)
	if err != nil {
		return err
	}
	if n := inner.Rank(f.slots()-2) + 2; n != f.Count {
		return fmt.Errorf("%w: %d slots set, the header says %d", ErrCorrupt, n, f.Count)
	}
	if err := m.values.parse(r, f); err != nil {
		return err
	}
	if len(dst) == 0 {
		return nil
	}
	// Slot FirstOff is set, the mask tells of the ones behind it, and LastOff
	// is set again.
	at := from - f.FirstOff
	rank := func(i int) int {
		switch i {
		case 0:
			return 0
		case f.slots():
			return f.Count
		}
		return 1 + inner.Rank(i-1)
	}
	a, b := rank(at), rank(at+len(dst))
	if a == b {
		return nil
	}
	rest := m.dense[:b-a]
	m.decode(rest, a)
	for i := 0; i < len(dst); i += 64 {
		part := dst[i:min(i+64, len(dst))]
		set := f.setSlots(&inner, at+i, len(part))
		if set == ^uint64(0) {
			rest = rest[copy(part, rest):]
			continue
		}
		for ; set != 0; set &= set - 1 {
			part[bits.TrailingZeros64(set)] = rest[0]
			rest = rest[1:]
		}
	}
	return nil
}

// setSlots returns which of n slots, 1 to 64, from the one that is at behind FirstOff are set.
// inner tells of those between the first and the last set one.
func (f *frame) setSlots(inner *intlist.Mask, at, n int) (set uint64) {
	if at == 0 {
		set = 1 | inner.Window(0, n)<<1
	} else {
		set = inner.Window(at-1, n)
	}
	if last := f.slots() - 1 - at; last < n {
		set |= 1 << last
	}
	return set & (^uint64(0) >> (64 - n))
}

// values reads the words of the set slots, by their rank.
type values struct {
	constant uint64 // the word of all values, or 0
	repeats  bool
	split    bool
	changes  intlist.Mask // bit i: value i+1 differs from value i
	kinds    intlist.Mask // bit i: run i is in the second list
	lists    [2]list
}

// parse sets all of v that decode looks at.
func (v *values) parse(r *reader, f *frame) error {
	v.constant, v.repeats, v.split = 0, false, false
	if f.constant {
		v.constant = f.First
		return r.end()
	}
	n := f.Count
	var err error
	if f.changes {
		if v.changes, err = r.Mask(n - 1); err != nil {
			return err
		}
		v.repeats = true
		n = v.changes.Rank(n-1) + 1
	}
	switch f.class {
	case classInts, classDecimals:
		v.lists[0].kind, v.lists[0].constant = f.kind, 0
		err = r.List(&v.lists[0].ints, n, f.min, uint64(f.span), f.first)
	case classBits:
		if f.implied {
			err = r.readImplied(&v.lists[0], n, f)
		} else {
			err = r.list(&v.lists[0], n)
		}
	default:
		err = v.parseSplit(r, n)
	}
	if err != nil {
		return err
	}
	return r.end()
}

// release lets go of the bytes of the chunk.
func (v *values) release() {
	for i := range v.lists {
		v.lists[i].ints.Release()
	}
}

func (v *values) parseSplit(r *reader, n int) error {
	var err error
	if v.kinds, err = r.Mask(n); err != nil {
		return err
	}
	v.split = true
	second := v.kinds.Rank(n)
	if second == 0 || second == n {
		return fmt.Errorf("%w: two lists, %d of %d values in the second", ErrCorrupt, second, n)
	}
	if err := r.list(&v.lists[0], n-second); err != nil {
		return err
	}
	return r.list(&v.lists[1], second)
}

// end checks that nothing is left.
func (r *reader) end() error {
	if len(r.Src) != 0 {
		return fmt.Errorf("%w: %d bytes behind the end", ErrCorrupt, len(r.Src))
	}
	return nil
}

// decode writes the values from rank a on to dst.
func (m *memory) decode(dst []uint64, a int) {
	switch v := &m.values; {
	case v.constant != 0:
		kernel.Fill(dst, v.constant)
	case v.repeats:
		m.decodeRepeats(dst, a)
	default:
		m.decodeRuns(dst, a)
	}
}

// decodeRepeats lays every run over the values that repeat it.
func (m *memory) decodeRepeats(dst []uint64, a int) {
	r := m.runsOf(a, a+len(dst))
	if len(r.words) > len(dst)/shortRun {
		r.spread(dst)
		return
	}
	for at := 0; at < len(dst); {
		w, end := r.next()
		kernel.Fill(dst[at:end], w)
		at = end
	}
}

// shortRun is the length of runs, on average, below which values are written one by one.
const shortRun = 8

// spread writes the values one by one.
func (r *runs) spread(dst []uint64) {
	i := 0
	for at := 0; at < len(dst); at += 64 {
		part := dst[at:min(at+64, len(dst))]
		ends := r.changes.Window(r.a+at, len(part))
		for k := range part {
			part[k] = r.words[i]
			i += int(ends & 1)
			ends >>= 1
		}
	}
}

// runs are the words of a range of values that repeat one another.
type runs struct {
	words   []uint64
	i       int // in words
	changes *intlist.Mask
	ends    uint64 // change bits of block k that are to come
	k       int
	a, n    int // the first value, and how many there are
}

// runsOf decodes the runs of the values [a, b).
func (m *memory) runsOf(a, b int) runs {
	changes, k := &m.values.changes, a>>6
	return runs{
		words:   m.runWords(a, b),
		changes: changes,
		k:       k,
		ends:    changes[k] &^ (1<<(a&63) - 1),
		a:       a,
		n:       b - a,
	}
}

// runWords decodes the words of the runs that the values [a, b) belong to into m.runs.
func (m *memory) runWords(a, b int) []uint64 {
	changes := &m.values.changes
	ra, rb := changes.Rank(a), changes.Rank(b-1)+1
	words := m.runs[:rb-ra]
	m.decodeRuns(words, ra)
	return words
}

// next returns the word of the next run and where it ends, counted from the
// first value.
func (r *runs) next() (w uint64, end int) {
	w = r.words[r.i]
	if r.i++; r.i == len(r.words) {
		return w, r.n
	}
	// Change bit i ends the run of value i.
	for r.ends == 0 {
		r.k++
		r.ends = r.changes[r.k]
	}
	end = r.k<<6 + bits.TrailingZeros64(r.ends) + 1 - r.a
	r.ends &= r.ends - 1
	return w, end
}

// decodeRuns writes runs from number a on; without repeats these are values.
func (m *memory) decodeRuns(dst []uint64, a int) {
	if v := &m.values; !v.split {
		v.lists[0].decode(&m.lanes, dst, a)
		return
	}
	m.decodeSplit(dst, a)
}

func (m *memory) decodeSplit(dst []uint64, a int) {
	v := &m.values
	b := a + len(dst)
	from, to := v.kinds.Rank(a), v.kinds.Rank(b)
	n := to - from
	if n > 0 {
		v.lists[1].decode(&m.lanes, m.second[:n], from)
	}
	if n < len(dst) {
		v.lists[0].decode(&m.lanes, dst[:len(dst)-n], a-from)
	}
	// The first list lies at the start of dst: merging from the end never
	// overwrites a word that is still to be moved.
	i := len(dst) - n
	for k := len(dst) - 1; k >= 0; k-- {
		if v.kinds.Has(a + k) {
			n--
			dst[k] = m.second[n]
		} else {
			i--
			dst[k] = dst[i]
		}
	}
}

// list is a list of integers that stand for words.
type list struct {
	kind     transform
	constant uint64
	ints     intlist.List
}

// list reads a list of m values with its prefix.
func (r *reader) list(l *list, m int) error {
	l.kind, l.constant = transform(r.U8()), 0
	if l.kind == asWord {
		l.constant = r.word()
		if r.Bad || point.KindOf(l.constant) != point.KindFloat {
			return fmt.Errorf("%w: list of %d floats that is cut off", ErrCorrupt, m)
		}
		return nil
	}
	least, span := r.Varint(), r.Uvarint()
	if r.Bad || !l.kind.isDefined() {
		return fmt.Errorf("%w: list of %d values of kind %d", ErrCorrupt, m, l.kind)
	}
	if span == 0 {
		l.constant = l.kind.word(least)
		return nil
	}
	first := least + int64(r.Uvarint())
	return r.List(&l.ints, m, least, span, first)
}

// readImplied reads a list of m values whose prefix is in the header.
func (r *reader) readImplied(l *list, m int, f *frame) error {
	l.kind, l.constant = transform(r.U8()), 0
	if r.Bad || l.kind == asInt || !l.kind.isDefined() {
		return fmt.Errorf("%w: list of %d floats of kind %d", ErrCorrupt, m, l.kind)
	}
	least, ok1 := l.kind.value(f.Min)
	most, ok2 := l.kind.value(f.Max)
	first, ok3 := l.kind.value(f.First)
	if !ok1 || !ok2 || !ok3 || least >= most {
		return fmt.Errorf("%w: the header of %d floats has others than their list", ErrCorrupt, m)
	}
	return r.List(&l.ints, m, least, uint64(most-least), first)
}

// decode writes the words from number a on to dst.
func (l *list) decode(q *intlist.Lanes, dst []uint64, a int) {
	if l.constant != 0 {
		kernel.Fill(dst, l.constant)
		return
	}
	if len(dst) == 0 {
		return
	}
	if l.ints.IsCoded() {
		l.kind.words(dst, l.ints.DecodeCoded(q, a+len(dst))[a:])
		return
	}
	n := l.ints.Length()
	j := a / n
	skip := a - j*n
	count := (skip + len(dst) + n - 1) / n
	l.ints.Decode(q, j, count)
	for k := range count {
		part := dst[:min(len(dst), n-skip)]
		l.kind.words(part, q.Values[k][skip:])
		dst, skip = dst[len(part):], 0
	}
}
