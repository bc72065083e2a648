package chunk

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"dalmatiner/internal/codec/intlist"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
)

// Encoder encodes chunks. It holds scratch memory. The zero value is ready; it must not be
// used by two goroutines at once.
type Encoder struct {
	set      [Slots]uint64 // words of the set slots, where there are others
	values   [Slots]int64  // the same as integers
	unmarked [Slots]uint64 // the words without stale markers, where there are such
	runs     [Slots]uint64 // words that differ from the one before
	others   [Slots]uint64 // words of the second list of classSplit
	lists    [2][Slots]int64
	every    intlist.List // of every value
	changed  intlist.List // of those that differ from the one before
	dense    bool         // AppendDense
	scratch  intlist.Scratch
	count    int // set words of the last Append
	present  intlist.Mask
	odd      intlist.Mask
	trial    []byte
}

// Append appends the encoding of words, which are the slots [off, off+len(words)) of a
// chunk, to dst and returns it. The words are normalised (package point), and are neither
// written to nor kept. The same set slots give the same bytes, whatever was encoded before.
// With no set word nothing is appended. It panics when the slots are not within the chunk.
func (e *Encoder) Append(dst []byte, off int, words []uint64) []byte {
	e.dense, e.scratch.Dense = false, false
	return e.append(dst, off, words)
}

// AppendDense is Append for chunks that are written once and stay: it takes longer, and
// so does reading them, and they are smaller.
func (e *Encoder) AppendDense(dst []byte, off int, words []uint64) []byte {
	e.dense, e.scratch.Dense = true, true
	return e.append(dst, off, words)
}

func (e *Encoder) append(dst []byte, off int, words []uint64) []byte {
	if off < 0 || off+len(words) > Slots {
		panic(fmt.Sprintf("slots [%d, %d) of a chunk of %d", off, off+len(words), Slots))
	}
	for len(words) > 0 && words[0] == point.Unset {
		words, off = words[1:], off+1
	}
	for len(words) > 0 && words[len(words)-1] == point.Unset {
		words = words[:len(words)-1]
	}
	e.count = len(words)
	if len(words) == 0 {
		return dst
	}
	f := frame{}
	f.FirstOff, f.LastOff = off, off+len(words)-1
	f.First, f.Last = words[0], words[len(words)-1]
	if constant(words) {
		if words[0] == point.Stale {
			return e.appendStale(dst, off, words)
		}
		return e.appendConstant(dst, &f, words)
	}
	set, floats, stale := e.collect(&f, words)
	if stale {
		return e.appendStale(dst, off, words)
	}
	e.count = f.Count
	switch {
	case floats == 0:
		f.class = classInts
		kernel.Integers(e.values[:f.Count], set)
		return e.appendScaled(dst, &f, words)
	case floats < f.Count:
		f.class = classSplit
		f.aggregate(words, set)
		return e.appendSplit(dst, &f, set, asInt)
	}
	var odds int
	f.kind, odds = toDecimals(e.values[:f.Count], set, &e.odd)
	if odds == 0 {
		f.class = classDecimals
		return e.appendScaled(dst, &f, words)
	}
	f.class = classBits
	f.aggregate(words, set)
	return e.appendOdd(dst, &f, set, odds)
}

// Count returns how many set words the last Append encoded, stale markers among them.
func (e *Encoder) Count() int { return e.count }

// constant reports whether all words are the same. Most other data is told
// apart at once, and no other kind of series is as frequent.
func constant(words []uint64) bool {
	for _, w := range words[1:] {
		if w != words[0] {
			return false
		}
	}
	return true
}

// appendConstant encodes words that are all the same.
func (e *Encoder) appendConstant(dst []byte, f *frame, words []uint64) []byte {
	f.Count = len(words)
	f.setDense()
	w := words[0]
	if point.KindOf(w) == point.KindInt {
		f.min = point.Int(w)
		return f.appendScaled(f.appendForm(dst), Sum{})
	}
	f.kind, _ = toDecimals(e.values[:1], words[:1], &e.odd)
	if e.odd.Has(0) {
		f.class, f.constant = classBits, true
		f.aggregate(words, words[:1])
		return f.appendWords(f.appendForm(dst))
	}
	f.class, f.min = classDecimals, e.values[0]
	f.Sum.Float = sumFloats(words, f.FirstOff)
	return f.appendScaled(f.appendForm(dst), product(f.min, f.Count))
}

// setDense sets the shape of slots without gaps.
func (f *frame) setDense() {
	f.shape = shapeRun
	if f.Count == Slots {
		f.shape = shapeFull
	}
}

// collect returns the set words and how many of them are floats, and notes
// where they are. Where there are stale markers it only says so.
func (e *Encoder) collect(f *frame, words []uint64) (set []uint64, floats int, stale bool) {
	f.Count = len(words)
	switch k := kernel.KindsOf(words); {
	case k.Ints():
		f.setDense()
		return words, 0, false
	case k.Floats():
		f.setDense()
		return words, f.Count, false
	}
	var others, unset, markers uint64
	for _, w := range words {
		_, other := bits.Sub64(w, firstFloat, 0)
		others += other
		_, low := bits.Sub64(w, point.Stale+1, 0)
		unset += low
		markers += low & w
	}
	if markers > 0 {
		return nil, 0, true
	}
	floats = len(words) - int(others)
	if unset == 0 {
		f.setDense()
		return words, floats, false
	}
	f.Count -= int(unset)
	f.shape = shapeMask
	e.present = intlist.Mask{}
	e.set[0] = words[0]
	n := 1
	for i, w := range words[1:] { // an unset word stays behind the set ones until another comes
		e.set[n] = w
		some := (w | -w) >> 63
		n += int(some)
		e.present[i>>6] |= some << (i & 63)
	}
	e.present.Truncate(len(words) - 2) // the last one is known to be set
	return e.set[:f.Count], floats, false
}

// appendPresent appends the mask of shapeMask: the slots between the first and
// the last set one.
func (e *Encoder) appendPresent(dst []byte, f *frame) []byte {
	if f.shape != shapeMask {
		return dst
	}
	p := intlist.PlanMask(&e.present, f.slots()-2, &e.scratch)
	return p.AppendTo(dst, f.slots()-2)
}

// appendScaled encodes integers and decimals, which stand in e.values.
func (e *Encoder) appendScaled(dst []byte, f *frame, words []uint64) []byte {
	v := e.values[:f.Count]
	x := intlist.Measure(v)
	f.min, f.span, f.first, f.last = x.Min, x.Max-x.Min, v[0], v[len(v)-1]
	f.Rises = x.Min1 >= 0
	switch {
	case f.class == classInts:
	case f.shape == shapeMask:
		f.Sum = sumWords(words, f.FirstOff)
	default:
		f.Sum.Float = sumFloats(words, f.FirstOff)
	}
	b := e.planBody(v, &x)
	f.changes = b.changes
	dst = f.appendForm(dst)
	dst = f.appendScaled(dst, sumOf(&x))
	dst = e.appendPresent(dst, f)
	if f.span == 0 {
		return dst
	}
	return b.appendTo(dst, &e.scratch)
}

// sumOf is the sum of the integers that x was measured of.
func sumOf(x *intlist.Extent) Sum {
	s := Sum{Hi: x.High >> 32, Lo: uint64(x.High) << 32}
	s.AddInt(x.Low)
	return s
}

// body is a list of integers, with repetitions taken out where that is
// smaller.
type body struct {
	list    []int64
	plan    *intlist.List
	changes bool
	mask    intlist.MaskPlan
	count   int // values with repetitions
}

// planBody chooses between all values and only those that differ from the one
// before. Below one change in four values these are nearly always shorter, so that all
// values are looked at quickly. Above, they are tried for dense chunks only, where the
// list of all values does not leave repetitions out itself.
func (e *Encoder) planBody(v []int64, x *intlist.Extent) body {
	b := body{list: v, plan: &e.every, count: len(v)}
	if x.Min == x.Max {
		return b
	}
	var size int
	if x.Changes <= len(v)/4 {
		size = e.every.Plan(v, x, &e.scratch)
	} else {
		size = e.plan(&e.every, v, x)
		if !e.dense || len(v)-x.Changes < len(v)/runsGain {
			return b
		}
		size -= size / runsGain
	}
	runs, changes := e.takeRuns(v)
	if e.every.Sparse() && !intlist.Drifts(runs) {
		return b
	}
	p := intlist.PlanMask(&changes, len(v)-1, &e.scratch)
	if p.Size >= size {
		return b
	}
	rx := intlist.Measure(runs)
	if p.Size+e.plan(&e.changed, runs, &rx) < size {
		b.list, b.plan, b.changes, b.mask = runs, &e.changed, true, p
	}
	return b
}

// takeRuns returns the values that differ from the one before, and where they do.
func (e *Encoder) takeRuns(v []int64) (runs []int64, changes intlist.Mask) {
	to := &e.lists[1]
	to[0] = v[0]
	n := 1
	for i, k := range v[1:] { // an equal one stays behind the runs until another comes
		to[n] = k
		d := uint64(k ^ v[i])
		other := (d | -d) >> 63
		n += int(other)
		changes[i>>6] |= other << (i & 63)
	}
	return to[:n], changes
}

// runsGain is the share of a list that taking out repetitions has to save where they are
// not frequent, because it takes longer to read.
const runsGain = 32

func (b *body) appendTo(dst []byte, s *intlist.Scratch) []byte {
	return b.plan.AppendTo(b.appendChanges(dst), b.list, s)
}

func (b *body) appendChanges(dst []byte) []byte {
	if !b.changes {
		return dst
	}
	return b.mask.AppendTo(dst, b.count-1)
}

// aggregate fills in the aggregates of classBits and classSplit.
func (f *frame) aggregate(words, set []uint64) {
	f.Sum = sumWords(words, f.FirstOff)
	f.constant, f.Rises = true, finite(f.First)
	before := f.First
	for _, w := range set {
		f.constant = f.constant && w == f.First
		f.Rises = f.Rises && rises(before, w)
		before = w
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

// implies reports whether a reader of the header knows the prefix of a list, but for its kind.
// It does unless NaN or negative floats are in it.
func (f *frame) implies(t transform, x *intlist.Extent, first int64) bool {
	return f.Min == t.word(x.Min) && f.Max == t.word(x.Max) && f.First == t.word(first)
}

// appendPrefix appends what ints has to know of a list beside the header.
func appendPrefix(dst []byte, t transform, x *intlist.Extent, first int64) []byte {
	dst = append(dst, byte(t))
	dst = binary.AppendUvarint(dst, intlist.Zigzag(x.Min))
	dst = binary.AppendUvarint(dst, uint64(x.Max-x.Min))
	if x.Min != x.Max {
		dst = binary.AppendUvarint(dst, uint64(first-x.Min))
	}
	return dst
}

// appendBits encodes floats by their bits.
func (e *Encoder) appendBits(dst []byte, f *frame, set []uint64) []byte {
	if f.constant {
		return e.appendPresent(f.appendWords(f.appendForm(dst)), f)
	}
	t := toBits(e.lists[0][:f.Count], set)
	return e.appendAlone(dst, f, t)
}

// appendAlone encodes floats by one list, whose integers are those of kind t.
func (e *Encoder) appendAlone(dst []byte, f *frame, t transform) []byte {
	v := e.lists[0][:f.Count]
	x := intlist.Measure(v)
	b := e.planBody(v, &x)
	f.changes, f.implied = b.changes, f.implies(t, &x, v[0])
	dst = f.appendWords(f.appendForm(dst))
	dst = e.appendPresent(dst, f)
	dst = b.appendChanges(dst)
	if f.implied {
		dst = append(dst, byte(t))
	} else {
		dst = appendPrefix(dst, t, &x, v[0])
	}
	return b.plan.AppendTo(dst, b.list, &e.scratch)
}

// appendOdd encodes floats of which some, odds, are no decimals: by their bits, near decimals,
// or as two lists, whatever is smallest.
func (e *Encoder) appendOdd(dst []byte, f *frame, set []uint64, odds int) []byte {
	start := len(dst)
	dst = e.appendBits(dst, f, set)
	if f.constant {
		return dst
	}
	try := func(t transform, odds int) {
		if odds == f.Count {
			return
		}
		g := *f
		g.changes, g.implied = false, false
		if odds > 0 {
			g.class = classSplit
			e.trial = e.appendSplit(e.trial[:0], &g, set, t)
		} else {
			t.values(e.lists[0][:], set)
			e.trial = e.appendAlone(e.trial[:0], &g, t)
		}
		if len(e.trial) < len(dst)-start {
			dst = append(dst[:start], e.trial...)
		}
	}
	try(f.kind, odds)
	try(toNear(set))
	return dst
}

// appendSplit encodes two lists: the integers, or the decimals of kind t, and
// the other words.
func (e *Encoder) appendSplit(dst []byte, f *frame, set []uint64, t transform) []byte {
	runs, changes := e.runs[:1], intlist.Mask{}
	runs[0] = set[0]
	for i, w := range set[1:] {
		if w != set[i] {
			changes.Set(i)
			runs = append(runs, w)
		}
	}
	f.changes = len(runs) <= f.Count/4
	if !f.changes {
		runs = set
	}
	dst = f.appendWords(f.appendForm(dst))
	dst = e.appendPresent(dst, f)
	if f.changes {
		p := intlist.PlanMask(&changes, f.Count-1, &e.scratch)
		dst = p.AppendTo(dst, f.Count-1)
	}
	var kinds intlist.Mask
	a, b := e.lists[0][:0], e.others[:0]
	for i, w := range runs {
		if k, ok := t.value(w); ok {
			a = append(a, k)
		} else {
			kinds.Set(i)
			b = append(b, w)
		}
	}
	p := intlist.PlanMask(&kinds, len(runs), &e.scratch)
	dst = p.AppendTo(dst, len(runs))
	dst = e.appendList(dst, a, t)
	v := e.lists[1][:len(b)]
	if t == asInt {
		var odd intlist.Mask
		if u, odds := toDecimals(v, b, &odd); odds == 0 {
			return e.appendList(dst, v, u)
		}
	}
	if u, odds := toNear(b); odds == 0 {
		u.values(v, b)
		return e.appendList(dst, v, u)
	}
	u := toBits(v, b)
	return e.appendList(dst, v, u)
}

// plan chooses the form of a list.
func (e *Encoder) plan(p *intlist.List, v []int64, x *intlist.Extent) int {
	if e.dense {
		return p.PlanDense(v, x, &e.scratch)
	}
	return p.Plan(v, x, &e.scratch)
}

// appendList appends a list with its prefix.
func (e *Encoder) appendList(dst []byte, v []int64, t transform) []byte {
	x := intlist.Measure(v)
	if x.Min == x.Max && t.bits() {
		return appendWord(append(dst, byte(asWord)), t.word(x.Min))
	}
	dst = appendPrefix(dst, t, &x, v[0])
	if x.Min == x.Max {
		return dst
	}
	e.plan(&e.every, v, &x)
	return e.every.AppendTo(dst, v, &e.scratch)
}
