package chunk

import (
	"math"
	"math/bits"

	"dalmatiner/internal/codec/intlist"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
)

// aligned reports whether every lane of the codec lies in one lane of the sums
// of floats, and has it to itself.
func (t *stepper) aligned(p *intlist.List) bool {
	return t.first%Lane == 0 && (p.Length() == Lane || p.Lanes() == 1)
}

// lanes takes in the values of a list, all lanes that are wanted side by side.
func (t *stepper) lanes(l *list, f *folder) bool {
	f.kind, f.cut = l.kind, t.end
	if l.kind.decimal() {
		f.quotient = l.kind.quotient()
	}
	p := &l.ints
	n := p.Length()
	j := (t.from - t.first) / n
	count := (t.to-t.first+n-1)/n - j
	base := t.first + j*n
	if t.from == base && t.to == base+count*n {
		if (t.end-base)%n == 0 && t.Every%n == 0 {
			return t.foldWhole(f, p, j, count)
		}
		if t.Every == n && !f.kind.bits() {
			return t.foldAcross(f, p, j, count, t.end-base)
		}
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

// foldWhole takes in count lanes from lane j on of which none is cut.
func (t *stepper) foldWhole(f *folder, p *intlist.List, j, count int) bool {
	n := p.Length()
	if f.kind != asInt || !p.FoldNarrow(&f.fold, j, count) {
		f.takeWhole(p, j, count)
	}
	off := t.first + j*n
	switch {
	case t.Every != n:
	case f.kind == asInt:
		return t.intLanes(&f.fold, count, off, n)
	case f.kind.decimal():
		return t.decimalLanes(f, count, off, n)
	}
	part := part{n: n}
	for k := range count {
		part.first = f.fold.First[k]
		part.take(&f.fold, f.kind, k)
		if !f.give(t, &part, off+k*n) {
			return false
		}
	}
	return true
}

// takeWhole takes in all values of count lanes from lane j on.
func (f *folder) takeWhole(p *intlist.List, j, count int) {
	prediction := p.Start(&f.fold, &f.lanes, j, count)
	if f.kind.bits() {
		f.fold.AllNoFloats()
	} else {
		f.fold.AllNoInts()
	}
	f.take(prediction, count, 0, p.Length())
}

// intLanes gives out steps that are a lane of integers each. Like give it reports
// false for values that no encoder wrote.
func (t *stepper) intLanes(f *kernel.Fold, count, off, n int) bool {
	dst := t.dst[t.step:][:count]
	t.step += count
	for k := range dst {
		least, most, sum := int64(f.Least[k]), int64(f.Most[k]), int64(f.Sum[k])
		if least < point.MinInt || most > point.MaxInt {
			return false
		}
		t.set(&dst[k], off, n, asInt.word(int64(f.First[k])), asInt.word(int64(f.Value[k])),
			asInt.word(least), asInt.word(most), Sum{Hi: sum >> 63, Lo: uint64(sum)})
		off += n
	}
	return true
}

// decimalLanes is intLanes for decimals, of which all lanes' become words at once.
func (t *stepper) decimalLanes(f *folder, count, off, n int) bool {
	var first, last, least, most [kernel.Lanes]uint64
	kernel.Decimals(first[:count], f.fold.First[:], f.quotient)
	kernel.Decimals(last[:count], f.fold.Value[:], f.quotient)
	kernel.Decimals(least[:count], f.fold.Least[:], f.quotient)
	kernel.Decimals(most[:count], f.fold.Most[:], f.quotient)
	dst := t.dst[t.step:][:count]
	t.step += count
	for k := range dst {
		if int64(f.fold.Least[k]) <= -maxDecimal || int64(f.fold.Most[k]) >= maxDecimal {
			return false
		}
		sum := canonical(0 + f.fold.FloatSum(k))
		t.set(&dst[k], off, n, first[k], last[k], least[k], most[k], Sum{Float: sum})
		off += n
	}
	return true
}

// foldAcross takes in count lanes from lane j on that are all cut before value cut: a
// step is the end of a lane and the begin of the next one, and of integers or
// decimals.
func (t *stepper) foldAcross(f *folder, p *intlist.List, j, count, cut int) bool {
	n := p.Length()
	prediction := p.Start(&f.fold, &f.lanes, j, count)
	f.fold.AllNoInts()
	f.take(prediction, count, 0, cut)
	begins, ends := f.fold, &f.fold
	f.fold.AllNoInts()
	f.take(prediction, count, cut, n)
	off := t.first + j*n
	part := part{n: cut, first: begins.First[0]}
	part.take(&begins, f.kind, 0)
	if !f.give(t, &part, off) {
		return false
	}
	for k := range count {
		part.n, part.first = n-cut, ends.First[k]
		part.take(ends, f.kind, k)
		if next := k + 1; next < count {
			part.n, part.last = n, begins.Value[next]
			part.least = uint64(min(int64(part.least), int64(begins.Least[next])))
			part.most = uint64(max(int64(part.most), int64(begins.Most[next])))
			part.sum = f.addParts(part.sum, f.kind.sumOf(&begins, next))
		}
		if !f.give(t, &part, off+k*n+cut) {
			return false
		}
	}
	return true
}

// addParts adds sums of parts in their order.
func (f *folder) addParts(a, b uint64) uint64 {
	if f.kind == asInt {
		return a + b
	}
	return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
}

// folder takes in the values of lanes side by side.
type folder struct {
	kind     transform
	quotient kernel.Quotient // of decimals
	cut      int             // end of a step, at or behind the slots that were taken in
	fold     kernel.Fold
	lanes    intlist.Lanes
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
func (p *part) take(f *kernel.Fold, kind transform, k int) {
	p.last, p.least, p.most, p.sum = f.Value[k], f.Least[k], f.Most[k], kind.sumOf(f, k)
}

// sumOf returns the sum of a lane: of integers, or the bits of that of floats.
func (kind transform) sumOf(f *kernel.Fold, lane int) uint64 {
	if kind == asInt {
		return f.Sum[lane]
	}
	return math.Float64bits(f.FloatSum(lane))
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
func (f *folder) run(p *intlist.List, j, count int, cuts uint64) {
	prediction := p.Start(&f.fold, &f.lanes, j, count)
	at := 0
	if prediction.Order == 0 {
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
	if f.kind.bits() {
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
	p.take(&f.fold, f.kind, k)
}

// take takes in the values [from, to) of count lanes.
func (f *folder) take(p kernel.Prediction, count, from, to int) {
	switch {
	case f.kind == asInt:
		kernel.FoldInts(&f.fold, &f.lanes.Residuals, p, count, from, to)
	case f.kind.decimal():
		kernel.FoldDecimals(&f.fold, &f.lanes.Residuals, p, f.quotient, count, from, to)
	default:
		kernel.FoldBits(&f.fold, &f.lanes.Residuals, p, uint(f.kind-asBits), count, from, to)
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
	case f.kind.decimal():
		if least <= -maxDecimal || most >= maxDecimal {
			return false
		}
		q := &f.quotient
		w.first, w.last = q.Word(int64(p.first)), q.Word(int64(p.last))
		w.least, w.most = q.Word(least), q.Word(most)
	default:
		w.first, w.last = f.kind.word(int64(p.first)), f.kind.word(int64(p.last))
		if low, high := math.Float64frombits(p.least), math.Float64frombits(p.most); low <= high {
			w.least, w.most = point.FromFloat(low), point.FromFloat(high)
		}
	}
	t.floats(w, math.Float64frombits(p.sum))
	return true
}
