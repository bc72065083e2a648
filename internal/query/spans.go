package query

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
)

const (
	// minSpan is the fewest slots of a span for which aggregates are asked for:
	// they take 13 times the memory of a word, and per span the time of several.
	minSpan = 16
	// spanRounds is how much longer rounds are where nothing but spans is read.
	spanRounds = 32
)

// spans reads a series span by span, for the windows right above it: their
// values come from aggregates, no slot has a value of its own. The rules are
// those of a leaf: a gap repeats the value before it, also one that lies in an
// earlier span, and a gap at the start takes the first value of the range.
type spans struct {
	of      *leaf
	size    int64
	windows []*window
	columns []*columns
	off     int64 // slots that the first span lacks at its begin
	counts  bool  // others over the same leaf do not count its set slots

	given int64 // spans
	begun bool  // carry is known
	first int64 // set slot of the range; its end if there is none
	carry uint64
	cost  Cost
	holes holes // each of several over a leaf finds the same
	took  time.Duration
}

// spanReducer is a reducer that can take the aggregates of a span in place of
// its inputs: of its slots, of which the last span may have fewer, with the word
// carried into it.
type spanReducer interface {
	reducer
	span(h *chunk.Header, carry uint64, slots int64)
}

// spanOf returns the node as a window that can work with spans, and its reducer;
// nil for others.
func spanOf(n node) (*window, spanReducer) {
	w, ok := n.(*window)
	if !ok || w.size < minSpan {
		return nil, nil
	}
	by, _ := w.by.(spanReducer)
	return w, by
}

// slotwise reports whether any leaf is read slot by slot.
func (p *planner) slotwise() bool {
	for _, l := range p.leaves {
		if !l.pushed() {
			return true
		}
	}
	return false
}

const (
	// aloneSlots is what a query reads by itself in less time than it takes to
	// wake another processor and to wait for it.
	aloneSlots = 64 << 10
	// headerSlots is how many slots take the time of a header.
	headerSlots = 50
)

// work returns how many slots take the time of all that is read.
func (p *planner) work() int64 {
	slots := int64(0)
	for _, l := range p.leaves {
		n := l.n
		if l.pushed() && !slices.ContainsFunc(l.spans, func(s *spans) bool { return s.size < chunkSlots }) {
			n = n / chunkSlots * headerSlots
		}
		slots += n
	}
	return slots
}

// helpers returns how many goroutines beside its own the query may have. What
// is little is read alone, and so is what EXPLAIN shows, or times would not add
// up.
func (p *planner) helpers() int {
	if p.explain || p.work() <= p.alone {
		return 0
	}
	return min(p.shared.most(), max(len(p.spans), len(p.leaves))-1)
}

// readers returns how many series of spans are read at a time at most. Each
// holds the aggregates of its round meanwhile, less than a word per slot.
func (p *planner) readers() int { return min(len(p.spans), 1+p.helpers()) }

// readSpans reads the spans that become complete in this round, of several
// series at once.
func (x *executor) readSpans() error {
	list := x.plan.spans
	if len(x.readers) == 1 || len(list) < 2 {
		for _, s := range list {
			if err := s.read(x.readers[0]); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	errs := make([]error, len(x.readers))
	read := func(w int) {
		for errs[w] == nil {
			i := int(next.Add(1)) - 1
			if i >= len(list) {
				return
			}
			errs[w] = list[i].read(x.readers[w])
		}
		next.Store(int64(len(list)))
	}
	var wg sync.WaitGroup
	for w := 1; w < min(len(x.readers), len(list)); w++ {
		wg.Go(func() { read(w) })
	}
	read(0)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// read hands the windows and columns the spans of this round.
func (s *spans) read(x *reader) error {
	l := s.of
	until := l.end
	if !x.final {
		until = min(until, max(l.pos, slotOf(x.bound-l.shift, l.res)))
	}
	pieces, n := s.due(until, x.final)
	if n == 0 {
		return nil
	}
	if x.plan.explain {
		began := x.now()
		defer func() { s.took += x.now().Sub(began) }()
	}
	if int64(cap(x.headers)) < n {
		x.headers = make([]chunk.Header, n)
	}
	all := x.headers[:n]
	clear(all)
	for _, w := range s.windows {
		w.ready.v = slices.Grow(w.ready.v, len(all))
	}
	rest := all
	for _, p := range pieces {
		if err := s.aggregate(x, p.from, p.slots, rest[:p.n]); err != nil {
			return err
		}
		rest = rest[p.n:]
	}
	if !s.begun {
		if err := s.begin(x, all, pieces); err != nil {
			return err
		}
	}
	for _, p := range pieces {
		if err := s.give(x, all[:p.n], p); err != nil {
			return err
		}
		all = all[p.n:]
	}
	s.given += n
	return nil
}

// stretchOf is n spans of so many slots each, one behind the other.
type stretchOf struct{ from, slots, n int64 }

// due returns the spans that are complete at slot until, and with last the short
// one behind them; n is how many they are together.
func (s *spans) due(until int64, last bool) (list [3]stretchOf, n int64) {
	l := s.of
	base := l.pos - s.off
	given := s.given
	if whole := (until - base) / s.size; given == 0 && s.off > 0 && whole > 0 {
		list[0] = stretchOf{l.pos, s.size - s.off, 1}
		given++
	}
	if whole := (until - base) / s.size; whole > given {
		list[1] = stretchOf{base + given*s.size, s.size, whole - given}
	}
	if from := max(l.pos, l.end-(l.end-base)%s.size); last && from < l.end {
		list[2] = stretchOf{from, l.end - from, 1}
	}
	return list, list[0].n + list[1].n + list[2].n
}

// begin finds the first value of the range: in what was read, or in the rest
// of it.
func (s *spans) begin(x *reader, read []chunk.Header, pieces [3]stretchOf) error {
	s.begun = true
	slot := s.of.pos
	for _, p := range pieces {
		slot = max(slot, p.from+p.n*p.slots)
		for i := range p.n {
			if h := &read[i]; h.Count > 0 {
				s.found(x, p.from+i*p.slots, h)
				return nil
			}
		}
		read = read[p.n:]
	}
	rest := make([]chunk.Header, 1)
	if slot < s.of.end {
		if err := s.aggregate(x, slot, s.of.end-slot, rest); err != nil {
			return err
		}
	}
	s.found(x, slot, &rest[0])
	return nil
}

// found notes the first value of the range: that of a span from slot from on,
// or none.
func (s *spans) found(x *reader, from int64, h *chunk.Header) {
	s.carry = h.First
	s.first = s.of.end
	if h.Count > 0 {
		s.first = from + int64(h.FirstOff)
	}
	for _, c := range s.columns {
		c.skip(0)
		if !x.plan.opt.Fill {
			c.skip(s.first - s.of.pos)
		}
	}
}

func (s *spans) aggregate(x *reader, from, step int64, dst []chunk.Header) error {
	if len(dst) == 0 {
		return nil
	}
	l := s.of
	if err := givenUp(x.ctx); err != nil {
		return err
	}
	cost, err := x.plan.adder.Aggregate(x.ctx, l.bucket, l.key, from, step, dst)
	s.holes.note(&cost, from+step*int64(len(dst)))
	if err != nil {
		return l.failed(err)
	}
	s.cost.Add(cost)
	return nil
}

// give hands spans of so many slots to all windows and columns.
func (s *spans) give(x *reader, list []chunk.Header, p stretchOf) error {
	for _, w := range s.windows {
		w.spans(list, s.carry, p.slots)
	}
	for i := range list {
		h, from := &list[i], p.from+int64(i)*p.slots
		for _, c := range s.columns {
			if !c.span(h, s.carry, p.slots) {
				if err := s.slotwise(x, c, from, p.slots); err != nil {
					return err
				}
			}
		}
		if h.Count == 0 {
			continue
		}
		s.carry = h.Last
		if s.counts {
			s.of.set += int64(h.Count)
			s.of.spacing.span(from+int64(h.FirstOff), from+int64(h.LastOff), int64(h.Count))
		}
	}
	return nil
}

// finish adds what reading took to that of the leaf.
func (s *spans) finish() {
	l := s.of
	l.asked += s.cost.Decoded
	l.cost.Add(s.cost)
	if s.counts {
		l.holes = s.holes
	}
	l.took += s.took
}

// spans closes a window for each of a list, with the word that is carried into
// the first.
func (w *window) spans(list []chunk.Header, carry uint64, slots int64) {
	for i := range list {
		h := &list[i]
		w.pushed.span(h, carry, slots)
		w.give(slots, int64(h.Count), w.pushed)
		if h.Count > 0 {
			carry = h.Last
		}
	}
}

// pushed reports whether the leaf is read by spans, and not pulled.
func (l *leaf) pushed() bool { return len(l.spans) > 0 }

func (r *total) span(h *chunk.Header, carry uint64, slots int64) {
	r.sum, r.last = sumOf(h, carry, slots), lastOf(h, carry)
}

func (r *extreme) span(h *chunk.Header, carry uint64, _ int64) {
	if r.least {
		r.v = extremeOf(h, carry, h.Min, true)
	} else {
		r.v = extremeOf(h, carry, h.Max, false)
	}
}

func (r *counted) span(h *chunk.Header, _ uint64, _ int64) { r.set = int64(h.Count) }

func (r *ends) span(h *chunk.Header, carry uint64, slots int64) {
	set := h.Count > 0
	if r.last {
		r.v, set = lastOf(h, carry), set && int64(h.LastOff) == slots-1
	} else if set = set && h.FirstOff == 0; set {
		r.v = point.Float(h.First)
	} else {
		r.v = point.Float(carry)
	}
	if r.c = 0; set {
		r.c = 1
	}
}

// sumOf returns the sum of a span's slots with gaps filled.
func sumOf(h *chunk.Header, carry uint64, slots int64) float64 {
	switch int64(h.Count) {
	case slots:
		return h.Sum.Float64()
	case 0:
		return chunk.Repeat(carry, int(slots)).Float64()
	}
	return chunk.Repeat(carry, h.FirstOff).Plus(h.FilledTo(int(slots))).Float64()
}

// lastOf returns the last value of a span with gaps filled.
func lastOf(h *chunk.Header, carry uint64) float64 {
	if h.Count == 0 {
		return point.Float(carry)
	}
	return point.Float(h.Last)
}

// extremeOf returns the least or greatest value of a span with gaps filled;
// word is that of the set slots, 0 where all are NaN.
func extremeOf(h *chunk.Header, carry, word uint64, least bool) float64 {
	if h.Count == 0 {
		return point.Float(carry)
	}
	if word == point.Unset {
		word = h.First
	}
	set := [1]float64{point.Float(word)}
	switch {
	case h.FirstOff == 0:
		return set[0]
	case least:
		return minOf(point.Float(carry), set[:])
	}
	return maxOf(point.Float(carry), set[:])
}
