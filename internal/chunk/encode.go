package chunk

import (
	"encoding/binary"
	"fmt"

	"dalmatiner/internal/point"
)

// Encoder holds scratch memory for Append. The zero value is ready; it must
// not be used by two goroutines at once.
type Encoder struct {
	words   [Slots]uint64 // of the set slots
	values  [Slots]int64  // the same as integers
	runs    [Slots]uint64 // words that differ from the one before
	others  [Slots]uint64 // words of the second list of classSplit
	lists   [2][Slots]int64
	dense   ints
	sparse  ints
	res     residuals
	present mask
	odd     mask
	trial   []byte
}

// Append appends the encoding of the set words among words, which are the
// slots [off, off+len(words)) of the chunk, to dst. The words are normalised
// (package point). With no set word nothing is appended. It panics when the
// slots are not within the chunk.
func (e *Encoder) Append(dst []byte, off int, words []uint64) []byte {
	if off < 0 || off+len(words) > Slots {
		panic(fmt.Sprintf("slots [%d, %d) of a chunk of %d", off, off+len(words), Slots))
	}
	for len(words) > 0 && words[0] == point.Unset {
		words, off = words[1:], off+1
	}
	for len(words) > 0 && words[len(words)-1] == point.Unset {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return dst
	}
	f := frame{}
	f.FirstOff, f.LastOff = off, off+len(words)-1
	f.First, f.Last = words[0], words[len(words)-1]
	floats := e.collect(&f, words)
	switch {
	case floats == 0:
		f.class = classInts
		toInts(e.values[:f.Count], e.words[:f.Count])
		return e.appendScaled(dst, &f, words)
	case floats < f.Count:
		f.class = classSplit
		e.wordAggregates(&f, words)
		return e.appendSplit(dst, &f, asInt)
	}
	var odds int
	f.kind, odds = toDecimals(e.values[:f.Count], e.words[:f.Count], &e.odd)
	if odds == 0 {
		f.class = classDecimals
		return e.appendScaled(dst, &f, words)
	}
	f.class = classBits
	e.wordAggregates(&f, words)
	if odds == f.Count {
		return e.appendBits(dst, &f)
	}
	return e.appendOdd(dst, &f)
}

// collect gathers the set words, notes where they are and returns the number
// of floats among them.
func (e *Encoder) collect(f *frame, words []uint64) (floats int) {
	var high uint64
	n := 0
	for _, w := range words {
		e.words[n] = w
		if w != point.Unset {
			n++
		}
		high += w >> 63
	}
	f.Count = n
	if n == len(words) {
		f.shape = shapeRun
		if n == Slots {
			f.shape = shapeFull
		}
		return int(high)
	}
	f.shape = shapeMask
	e.present = mask{}
	for i, w := range words[1 : len(words)-1] {
		if w != point.Unset {
			e.present.set(i)
		}
	}
	return int(high)
}

// appendPresent appends the mask of shapeMask: the slots between the first and
// the last set one.
func (e *Encoder) appendPresent(dst []byte, f *frame) []byte {
	if f.shape != shapeMask {
		return dst
	}
	p := planMask(&e.present, f.slots()-2)
	return p.appendTo(dst, f.slots()-2)
}

// appendScaled encodes integers and decimals, which stand in e.values.
func (e *Encoder) appendScaled(dst []byte, f *frame, words []uint64) []byte {
	v := e.values[:f.Count]
	x := measure(v)
	f.min, f.span, f.first = x.min, x.max-x.min, v[0]
	switch {
	case f.shape == shapeMask:
		f.Sum, f.Filled = sumWords(words, f.FirstOff)
	case f.class == classDecimals:
		f.Sum.Float = sumFloats(words, f.FirstOff)
	}
	b := e.planBody(v, &x)
	f.changes = b.changes
	dst = f.appendForm(dst)
	dst = f.appendScaled(dst, v[len(v)-1], x.sum)
	dst = e.appendPresent(dst, f)
	if f.span == 0 {
		return dst
	}
	return b.appendTo(dst, &e.res)
}

// body is a list of integers, with repetitions taken out where that is
// smaller.
type body struct {
	list    []int64
	plan    *ints
	changes bool
	mask    maskPlan
	count   int // values with repetitions
}

// planBody chooses between all values and only those that differ from the one
// before. Above one change in four values the positions cost too much.
func (e *Encoder) planBody(v []int64, x *extent) body {
	b := body{list: v, plan: &e.dense, count: len(v)}
	if x.min == x.max {
		return b
	}
	size := planInts(&e.dense, v, x)
	if x.changes > len(v)/4 {
		return b
	}
	runs, changes := e.lists[1][:0], mask{}
	runs = append(runs, v[0])
	for i, k := range v[1:] {
		if k != v[i] {
			changes.set(i)
			runs = append(runs, k)
		}
	}
	p := planMask(&changes, len(v)-1)
	if p.size >= size {
		return b
	}
	rx := measure(runs)
	if p.size+planInts(&e.sparse, runs, &rx) < size {
		b.list, b.plan, b.changes, b.mask = runs, &e.sparse, true, p
	}
	return b
}

func (b *body) appendTo(dst []byte, res *residuals) []byte {
	return b.plan.appendTo(b.appendChanges(dst), b.list, res)
}

func (b *body) appendChanges(dst []byte) []byte {
	if !b.changes {
		return dst
	}
	return b.mask.appendTo(dst, b.count-1)
}

// wordAggregates fills in the aggregates of classBits and classSplit.
func (e *Encoder) wordAggregates(f *frame, words []uint64) {
	f.Sum, f.Filled = sumWords(words, f.FirstOff)
	f.constant = true
	for _, w := range e.words[:f.Count] {
		f.constant = f.constant && w == f.First
		if v := point.Float(w); v != v {
			continue
		}
		if f.Min == point.Unset {
			f.Min, f.Max = w, w
		} else if Less(w, f.Min) {
			f.Min = w
		} else if Less(f.Max, w) {
			f.Max = w
		}
	}
}

// appendPrefix appends what ints has to know of a list beside the header.
func appendPrefix(dst []byte, t transform, x *extent, first int64) []byte {
	dst = append(dst, byte(t))
	dst = binary.AppendUvarint(dst, zigzag(x.min))
	dst = binary.AppendUvarint(dst, uint64(x.max-x.min))
	if x.min != x.max {
		dst = binary.AppendUvarint(dst, uint64(first-x.min))
	}
	return dst
}

// appendBits encodes floats by their bits.
func (e *Encoder) appendBits(dst []byte, f *frame) []byte {
	if f.constant {
		return e.appendPresent(f.appendWords(f.appendForm(dst)), f)
	}
	v := e.lists[0][:f.Count]
	t := toBits(v, e.words[:f.Count])
	x := measure(v)
	b := e.planBody(v, &x)
	f.changes = b.changes
	dst = f.appendWords(f.appendForm(dst))
	dst = e.appendPresent(dst, f)
	dst = b.appendChanges(dst)
	dst = appendPrefix(dst, t, &x, v[0])
	return b.plan.appendTo(dst, b.list, &e.res)
}

// appendOdd encodes floats of which some are no decimals: by their bits, or as
// two lists, whichever is smaller.
func (e *Encoder) appendOdd(dst []byte, f *frame) []byte {
	start := len(dst)
	dst = e.appendBits(dst, f)
	if f.constant {
		return dst
	}
	split := *f
	split.class, split.changes = classSplit, false
	e.trial = e.appendSplit(e.trial[:0], &split, f.kind)
	if len(e.trial) < len(dst)-start {
		dst = append(dst[:start], e.trial...)
	}
	return dst
}

// appendSplit encodes two lists: the integers, or the decimals of kind t, and
// the other words.
func (e *Encoder) appendSplit(dst []byte, f *frame, t transform) []byte {
	runs, changes := e.runs[:1], mask{}
	runs[0] = e.words[0]
	for i, w := range e.words[1:f.Count] {
		if w != e.words[i] {
			changes.set(i)
			runs = append(runs, w)
		}
	}
	f.changes = len(runs) <= f.Count/4
	if !f.changes {
		runs = e.words[:f.Count]
	}
	dst = f.appendWords(f.appendForm(dst))
	dst = e.appendPresent(dst, f)
	if f.changes {
		p := planMask(&changes, f.Count-1)
		dst = p.appendTo(dst, f.Count-1)
	}
	var kinds mask
	a, b := e.lists[0][:0], e.others[:0]
	for i, w := range runs {
		if k, ok := t.value(w); ok {
			a = append(a, k)
		} else {
			kinds.set(i)
			b = append(b, w)
		}
	}
	p := planMask(&kinds, len(runs))
	dst = p.appendTo(dst, len(runs))
	dst = e.appendList(dst, a, t)
	v := e.lists[1][:len(b)]
	if t == asInt {
		var odd mask
		if u, odds := toDecimals(v, b, &odd); odds == 0 {
			return e.appendList(dst, v, u)
		}
	}
	u := toBits(v, b)
	return e.appendList(dst, v, u)
}

// appendList appends a list with its prefix.
func (e *Encoder) appendList(dst []byte, v []int64, t transform) []byte {
	x := measure(v)
	dst = appendPrefix(dst, t, &x, v[0])
	if x.min == x.max {
		return dst
	}
	planInts(&e.dense, v, &x)
	return e.dense.appendTo(dst, v, &e.res)
}
