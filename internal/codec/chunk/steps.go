package chunk

import (
	"math/bits"

	"dalmatiner/internal/codec/floatsum"
	"dalmatiner/internal/codec/point"
)

// Steps is the range of slots [From, To) of a chunk, cut into steps. The first step ends at
// Cut, or at To if that is lower. Each step behind it has Every slots, and the last one may
// have fewer. From < To and From < Cut hold, and Every is at least 1.
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

// Adder adds up the slots of chunks. It holds scratch memory. The zero value is ready; it
// must not be used by two goroutines at once.
type Adder struct {
	words  [Slots]uint64
	memory memory
	folder folder
	stepper
}

// Steps sets dst[i] to the aggregates of step i of the chunk src: what Summarize returns
// for its decoded words, bit for bit, but for Rises: it may be false where only other steps
// of the chunk do not rise. dst has s.Count() elements. Offsets in them count from the start
// of the chunk. After an error, which wraps ErrCorrupt, all have a Count of 0.
//
// If steps have a lane or more, values of one list without gaps are added up as their lanes
// are decoded, and are never written as words.
func (a *Adder) Steps(dst []Header, src []byte, s Steps) error {
	if HasStale(src) {
		_, values, err := cutStale(src)
		if err != nil || len(values) == 0 {
			clear(dst)
			return err
		}
		src = values
	}
	if s.Every >= Lane && !IsMultiPart(src) {
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
	var f frame
	r := newReader(src)
	if err := f.parse(&r); err != nil {
		clear(dst)
		return false, err
	}
	if f.shape == shapeMask || f.class == classSplit {
		return false, nil
	}
	v := &a.memory.values
	err = v.parse(&r, &f)
	t := &a.stepper
	if t.begin(dst, s, &f); err != nil || t.from >= t.to {
		clear(dst)
		v.release()
		return err == nil, err
	}
	switch l := &v.lists[0]; {
	case v.constant != 0:
		done = true
		t.constant(v.constant)
	case l.constant != 0 || l.kind.isNear():
	case v.repeats:
		done = l.kind == asInt && t.runs(&a.memory)
	default:
		done = (l.kind == asInt || t.aligned(&l.ints)) && t.lanes(l, &a.folder)
	}
	v.release()
	// Of the steps between every field was set.
	clear(dst[:s.index(t.from)])
	clear(dst[t.step:])
	return done, nil
}

// stepper adds up the steps of a chunk without gaps. Its slots come in order.
type stepper struct {
	Steps
	first    int // slot of the first value
	from, to int // slots that are set, of those wanted
	rises    bool
	dst      []Header

	step int     // the one under way
	end  int     // its end, within the slots that are set
	open bool    // sum has a part of it
	sum  summary // of what came of it
}

func (t *stepper) begin(dst []Header, s Steps, f *frame) {
	t.Steps, t.dst, t.first, t.rises = s, dst, f.FirstOff, f.Rises
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
func (t *stepper) set(h *Header, off, n int, first, last, least, most uint64, sum Sum) {
	h.Count, h.FirstOff, h.LastOff = n, off, off+n-1
	h.First, h.Last, h.Min, h.Max = first, last, least, most
	h.Sum.Hi, h.Sum.Lo, h.Sum.Float = sum.Hi, sum.Lo, sum.Float
	h.Rises = t.rises
}

// ints takes in integers of the step under way, whose sum is sum.
func (t *stepper) ints(w stretch, sum Sum) {
	if !t.open && w.off+w.n == t.end {
		t.set(&t.dst[t.step], w.off, w.n, w.first, w.last, w.least, w.most, sum)
		t.next()
		return
	}
	w.rises = t.rises
	t.sum.ints(w, sum)
	t.close(w.off + w.n)
}

// floats takes in floats of one lane, whose sum in their order is sum.
func (t *stepper) floats(w stretch, sum float64) {
	if !t.open && w.off+w.n == t.end {
		t.set(&t.dst[t.step], w.off, w.n, w.first, w.last, w.least, w.most,
			Sum{Float: canonical(0 + sum)})
		t.next()
		return
	}
	w.rises = t.rises
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
		t.set(&t.dst[t.step], at, t.end-at, w, w, w, w, product(k, t.end-at))
		at = t.end
	}
}

func (t *stepper) constantFloat(w uint64) {
	added, sum := 0, floatsum.Sum{} // one by one
	for at := t.from; at < t.to; {
		n := min(t.end-at, Lane-at%Lane)
		if n < added {
			added, sum = 0, floatsum.Sum{}
		}
		v := point.Float(w)
		for ; added < n; added++ {
			sum.Add(v)
		}
		s := stretch{off: at, n: n, first: w, last: w}
		if v == v {
			s.least, s.most = w, w
		}
		t.floats(s, sum.Value())
		at += n
	}
}

// maxRunInt bounds the integers that are added up in 64 bits over a chunk.
const maxRunInt = 1 << 53

// runs takes in integers that stand for several slots each: in every step one value
// after the other up to the last one, which may go on in the next step.
func (t *stepper) runs(m *memory) bool {
	words, changes := m.runWords(t.from-t.first, t.to-t.first), &m.values.changes
	i := 0
	for at := t.from; at < t.to; t.next() {
		off, first := at, words[i]
		last, k := first, point.Int(first)
		least, most, sum := k, k, int64(0)
		for goesOn := true; goesOn; {
			n := min(t.end-at, 64)
			ends, from := changes.Window(at-t.first, n), 0
			at += n
			behind := ends >> (n - 1) // the last slot ends a run: the next one is of the next step
			if goesOn = at < t.end; !goesOn {
				ends &^= behind << (n - 1)
			}
			for ; ends != 0; ends &= ends - 1 {
				to := bits.TrailingZeros64(ends) + 1
				sum += k * int64(to-from)
				from = to
				i++
				last = words[i]
				k = point.Int(last)
				least, most = min(least, k), max(most, k)
			}
			sum += k * int64(n-from)
			if !goesOn && at < t.to {
				i += int(behind)
			}
		}
		if least < -maxRunInt || most > maxRunInt {
			return false
		}
		t.set(&t.dst[t.step], off, at-off, first, last, asInt.word(least), asInt.word(most),
			Sum{Hi: sum >> 63, Lo: uint64(sum)})
	}
	return true
}
