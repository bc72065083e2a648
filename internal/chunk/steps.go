package chunk

import (
	"math"
	"math/bits"

	"dalmatiner/internal/kernel"
	"dalmatiner/internal/point"
)

// Steps is a range of slots of a chunk, cut into steps: the first ends at Cut,
// the others have Every slots, the last may have fewer.
type Steps struct {
	From, To   int
	Cut, Every int
}

// Count returns the number of steps.
func (s Steps) Count() int { return s.index(s.To-1) + 1 }

// index returns the number of the step that holds a slot.
func (s Steps) index(slot int) int {
	if slot < s.Cut {
		return 0
	}
	return 1 + (slot-s.Cut)/s.Every
}

// end returns where the step that holds a slot ends.
func (s Steps) end(slot int) int {
	if slot < s.Cut {
		return min(s.Cut, s.To)
	}
	return min(slot-(slot-s.Cut)%s.Every+s.Every, s.To)
}

// Adder adds up the slots of chunks. Its zero value is ready; it is memory that
// is used again, for one goroutine.
type Adder struct {
	words  [Slots]uint64
	memory memory
	folder folder
	stepper
}

// Steps fills dst with the aggregates of the steps of the chunk src: what
// Summarize returns for the decoded words, bit for bit. After an error dst holds
// what could be decoded.
//
// Where steps have a lane or more, values of one list without gaps are added up
// as their lanes are decoded, without being written as words.
func (a *Adder) Steps(dst []Header, src []byte, s Steps) error {
	if s.Every >= Lane && !IsComposite(src) {
		if done, err := a.fold(dst, src, s); done || err != nil {
			return err
		}
	}
	words := a.words[:s.To-s.From]
	clear(words)
	err := DecodeRange(words, src, s.From)
	for i, at := 0, s.From; at < s.To; i++ {
		end := s.end(at)
		dst[i] = Summarize(words[at-s.From:end-s.From], at)
		at = end
	}
	return err
}

// fold reports whether it could do without the words.
func (a *Adder) fold(dst []Header, src []byte, s Steps) (done bool, err error) {
	clear(dst)
	var f frame
	r := reader{src: src}
	if err := f.parse(&r); err != nil {
		return false, err
	}
	if f.shape == shapeMask || f.class == classSplit {
		return false, nil
	}
	v := &a.memory.values
	defer v.release()
	if err := v.parse(&r, &f); err != nil {
		return false, err
	}
	t := &a.stepper
	t.begin(dst, s, &f)
	switch l := &v.lists[0]; {
	case t.from >= t.to:
		return true, nil
	case v.constant != 0:
		t.constant(v.constant)
		return true, nil
	case l.constant != 0:
		return false, nil
	case v.repeats:
		return l.kind == asInt && t.runs(&a.memory), nil
	default:
		return (l.kind == asInt || t.aligned(&l.ints.lay)) && t.lanes(l, &a.folder), nil
	}
}

// stepper adds up the steps of a chunk without gaps. Its slots come in order.
type stepper struct {
	Steps
	first    int // slot of the first value
	from, to int // slots that are set, of those wanted
	dst      []Header

	step int     // the one under way
	end  int     // its end, within the slots that are set
	open bool    // sum has a part of it
	sum  summary // of what came of it
}

func (t *stepper) begin(dst []Header, s Steps, f *frame) {
	t.Steps, t.dst, t.first = s, dst, f.FirstOff
	t.from, t.to = max(s.From, f.FirstOff), min(s.To, f.LastOff+1)
	t.step = s.index(t.from)
	t.end = min(s.end(t.from), t.to)
	t.open = false
	t.sum = summary{}
}

// next ends the step under way.
func (t *stepper) next() {
	t.step++
	t.end = min(t.end+t.Every, t.to)
}

// set makes h the aggregates of n slots from off on, without gaps. It writes field
// by field: a copy of the whole would wait for them to be written.
func (h *Header) set(off, n int, first, last, least, most uint64, sum Sum) {
	h.Count, h.FirstOff, h.LastOff = n, off, off+n-1
	h.First, h.Last, h.Min, h.Max = first, last, least, most
	h.Sum.Hi, h.Sum.Lo, h.Sum.Float = sum.Hi, sum.Lo, sum.Float
	h.Filled.Hi, h.Filled.Lo, h.Filled.Float = sum.Hi, sum.Lo, sum.Float
}

// ints takes in integers of the step under way, whose sum is sum.
func (t *stepper) ints(w stretch, sum Sum) {
	if !t.open && w.off+w.n == t.end {
		t.dst[t.step].set(w.off, w.n, w.first, w.last, w.least, w.most, sum)
		t.next()
		return
	}
	t.sum.ints(w, sum)
	t.close(w.off + w.n)
}

// floats takes in floats of one lane, whose sum in their order is sum.
func (t *stepper) floats(w stretch, sum float64) {
	if !t.open && w.off+w.n == t.end {
		t.dst[t.step].set(w.off, w.n, w.first, w.last, w.least, w.most, Sum{Float: canonical(0 + sum)})
		t.next()
		return
	}
	t.sum.floats(w, sum)
	t.close(w.off + w.n)
}

// close gives out the step under way if it ends at the slot at.
func (t *stepper) close(at int) {
	if t.open = at < t.end; !t.open {
		t.dst[t.step] = t.sum.header()
		t.sum = summary{}
		t.next()
	}
}

// constant takes in slots that all have one word.
func (t *stepper) constant(w uint64) {
	if point.KindOf(w) == point.KindFloat {
		t.constantFloat(w)
		return
	}
	k := point.Int(w)
	for at := t.from; at < t.to; t.next() {
		t.dst[t.step].set(at, t.end-at, w, w, w, w, product(k, t.end-at))
		at = t.end
	}
}

func (t *stepper) constantFloat(w uint64) {
	added, sum := 0, 0.0 // one by one
	for at := t.from; at < t.to; {
		n := min(t.end-at, Lane-at%Lane)
		if n < added {
			added, sum = 0, 0
		}
		v := point.Float(w)
		for ; added < n; added++ {
			sum += v
		}
		s := stretch{off: at, n: n, first: w, last: w}
		if v == v {
			s.least, s.most = w, w
		}
		t.floats(s, sum)
		at += n
	}
}

// maxRunInt bounds the integers that are added up in 64 bits over a chunk.
const maxRunInt = 1 << 53

// runs takes in integers that stand for several slots each.
func (t *stepper) runs(m *memory) bool {
	r := m.runsOf(t.from-t.first, t.to-t.first)
	s := stretch{off: t.from}
	var least, most, sum int64
	end := t.end
	for at := t.from; at < t.to; {
		w, past := r.next()
		past += t.from
		for k := point.Int(w); at < past; {
			if at == s.off {
				s.first, least, most, sum = w, k, k, 0
			}
			to := min(past, end)
			least, most, sum = min(least, k), max(most, k), sum+k*int64(to-at)
			if at = to; at < end {
				continue
			}
			if least < -maxRunInt || most > maxRunInt {
				return false
			}
			s.n, s.last, s.least, s.most = at-s.off, w, point.FromInt(least), point.FromInt(most)
			t.ints(s, product(sum, 1))
			s.off, end = at, t.end
		}
	}
	return true
}

// aligned reports whether every lane of the codec lies in one lane of the sums
// of floats, and has it to itself.
func (t *stepper) aligned(lay *layout) bool {
	return t.first%Lane == 0 && (lay.length == Lane || lay.lanes == 1)
}

// lanes takes in the values of a list, all lanes that are wanted side by side.
func (t *stepper) lanes(l *list, f *folder) bool {
	f.kind, f.cut = l.kind, t.end
	if l.kind >= asDecimal && l.kind < asBits {
		f.scale = pow10(int(l.kind - asDecimal))
	}
	p := &l.ints
	n := p.lay.length
	j := (t.from - t.first) / n
	count := (t.to-t.first+n-1)/n - j
	base := t.first + j*n
	if t.from == base && t.to == base+count*n && (t.end-base)%n == 0 && t.Every%n == 0 {
		return t.whole(f, p, j, count)
	}
	var all uint64
	for k := range count {
		f.cuts[k] = f.places(t, base+k*n, n)
		all |= f.cuts[k]
	}
	f.run(p, j, count, all)
	for k := range count {
		for i := range f.parts[k][:f.count[k]] {
			part := &f.parts[k][i]
			if !f.give(t, part, base+k*n+part.at) {
				return false
			}
		}
	}
	return true
}

// whole takes in count lanes from lane j on of which none is cut.
func (t *stepper) whole(f *folder, p *ints, j, count int) bool {
	n := p.lay.length
	prediction := p.start(&f.fold, &f.residuals, j, count)
	if f.kind >= asBits {
		f.fold.AllNoFloats()
	} else {
		f.fold.AllNoInts()
	}
	f.take(prediction, count, 0, n)
	off := t.first + j*n
	if f.kind == asInt && t.Every == n {
		return t.intLanes(&f.fold, count, off, n)
	}
	part := part{n: n}
	for k := range count {
		part.first = f.fold.First[k]
		part.take(&f.fold, k)
		if !f.give(t, &part, off+k*n) {
			return false
		}
	}
	return true
}

// intLanes gives out steps that are a lane of integers each. Like give it reports
// false for values that no encoder wrote.
func (t *stepper) intLanes(f *kernel.Fold, count, off, n int) bool {
	for k := range t.dst[t.step:][:count] {
		least, most, sum := int64(f.Least[k]), int64(f.Most[k]), int64(f.Sum[k])
		if least < point.MinInt || most > point.MaxInt {
			return false
		}
		t.dst[t.step].set(off, n, asInt.word(int64(f.First[k])), asInt.word(int64(f.Value[k])),
			asInt.word(least), asInt.word(most), Sum{Hi: sum >> 63, Lo: uint64(sum)})
		t.next()
		off += n
	}
	return true
}

// folder takes in the values of lanes side by side.
type folder struct {
	kind      transform
	scale     float64 // of decimals
	cut       int     // end of a step, at or behind the slots that were taken in
	fold      kernel.Fold
	residuals kernel.Residuals
	// By lane: the cuts of its values as bits, and its parts between them.
	cuts  [kernel.Lanes]uint64
	parts [kernel.Lanes][maxParts]part
	count [kernel.Lanes]int
}

// maxParts is the most steps that a lane has values of: two cuts are a lane or
// more apart.
const maxParts = 2

// part is what was taken in of a lane between two cuts.
type part struct {
	at, n                         int // place of the first value, and how many
	first, last, least, most, sum uint64
}

// take fills in what is known at the end of a part of lane k.
func (p *part) take(f *kernel.Fold, k int) {
	p.last, p.least, p.most, p.sum = f.Value[k], f.Least[k], f.Most[k], f.Sum[k]
}

// places returns where the steps of the n slots from base on begin and end, as
// bits.
func (f *folder) places(t *stepper, base, n int) uint64 {
	at, to := max(t.from, base), min(t.to, base+n)
	places := uint64(1)<<(at-base) | uint64(1)<<(to-base)
	for ; f.cut < to; f.cut += t.Every {
		if f.cut > at {
			places |= 1 << (f.cut - base)
		}
	}
	return places
}

// run takes in the values of lanes from cut to cut.
func (f *folder) run(p *ints, j, count int, cuts uint64) {
	prediction := p.start(&f.fold, &f.residuals, j, count)
	at := 0
	if p.form == formOffset {
		at = bits.TrailingZeros64(cuts) // nothing depends on what is before
	}
	clear(f.count[:])
	open := [kernel.Lanes]bool{}
	for ; cuts != 0; cuts &= cuts - 1 {
		to := bits.TrailingZeros64(cuts)
		f.take(prediction, count, at, to)
		for k := range count {
			if open[k] && f.parts[k][f.count[k]].at == at {
				f.parts[k][f.count[k]].first = f.fold.First[k]
			}
			if f.cuts[k]>>to&1 == 0 {
				continue
			}
			if open[k] {
				f.close(k, to)
			}
			if open[k] = f.cuts[k]>>to > 1; open[k] {
				f.open(k, to)
			}
		}
		at = to
	}
}

// open begins a part of a lane.
func (f *folder) open(k, at int) {
	f.parts[k][f.count[k]].at = at
	f.empty(k)
}

// empty sets a lane to what it is before the first value of a part.
func (f *folder) empty(k int) {
	if f.kind >= asBits {
		f.fold.NoFloats(k)
	} else {
		f.fold.NoInts(k)
	}
}

// close ends it.
func (f *folder) close(k, to int) {
	p := &f.parts[k][f.count[k]]
	f.count[k]++
	p.n = to - p.at
	p.take(&f.fold, k)
}

// take takes in the values [from, to) of count lanes.
func (f *folder) take(p kernel.Prediction, count, from, to int) {
	switch {
	case f.kind == asInt:
		kernel.FoldInts(&f.fold, &f.residuals, p, count, from, to)
	case f.kind < asBits:
		kernel.FoldDecimals(&f.fold, &f.residuals, p, f.scale, count, from, to)
	default:
		kernel.FoldBits(&f.fold, &f.residuals, p, uint(f.kind-asBits), count, from, to)
	}
}

// maxDecimal bounds the integers of which the kernels make decimals.
const maxDecimal = 1 << 51

// give takes a part, whose first slot is off, in. It reports false for values
// that no encoder wrote: their words would not be what was added up.
func (f *folder) give(t *stepper, p *part, off int) bool {
	w := stretch{off: off, n: p.n}
	least, most := int64(p.least), int64(p.most)
	switch {
	case f.kind == asInt:
		if least < point.MinInt || most > point.MaxInt {
			return false
		}
		w.first, w.last = point.FromInt(int64(p.first)), point.FromInt(int64(p.last))
		w.least, w.most = point.FromInt(least), point.FromInt(most)
		t.ints(w, product(int64(p.sum), 1))
		return true
	case f.kind < asBits:
		if least <= -maxDecimal || most >= maxDecimal {
			return false
		}
		w.first, w.last = kernel.Decimal(int64(p.first), f.scale), kernel.Decimal(int64(p.last), f.scale)
		w.least, w.most = kernel.Decimal(least, f.scale), kernel.Decimal(most, f.scale)
	default:
		shift := uint(f.kind - asBits)
		w.first, w.last = p.first<<shift|floatMarker, p.last<<shift|floatMarker
		if math.Float64frombits(p.least) <= math.Float64frombits(p.most) {
			w.least, w.most = p.least>>1|floatMarker, p.most>>1|floatMarker
		}
	}
	t.floats(w, math.Float64frombits(p.sum))
	return true
}
