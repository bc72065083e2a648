package exec

import (
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
	"dalmatiner/internal/query/holes"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/sumtree"
)

// spans reads a series span by span, for the windows right above it: their
// values come from aggregates, no slot has a value of its own. The rules are
// those of a leaf: a gap repeats the value before it, also one that lies in an
// earlier span, and a gap at the start takes the first value of the range.
type spans struct {
	*plan.Spans
	of      *leaf
	windows []*window
	columns []*columns

	given   int64 // spans
	begun   bool  // carry is known
	first   int64 // set slot of the range; its end if there is none
	carry   uint64
	cost    source.Cost
	holes   holes.Notes // each of several over a leaf finds the same
	elapsed time.Duration
}

// openSpans makes what reads spans, and hands them to who takes them.
func (x *executor) openSpans() {
	windows, roots := 0, 0
	for _, of := range x.plan.Spans {
		windows, roots = windows+len(of.Windows), roots+len(of.Roots)
	}
	all := make([]spans, len(x.plan.Spans)) // and what they point to: a query has thousands
	x.spans = make([]*spans, len(all))
	to, into := make([]*window, 0, windows), make([]*columns, 0, roots)
	for i, of := range x.plan.Spans {
		s, l := &all[i], x.nodes[of.Read.ID].(*leaf)
		x.spans[i] = s
		if l.spans == nil {
			l.spans = x.spans[i : i+1 : i+1]
		} else {
			l.spans = append(l.spans, s)
		}
		s.Spans, s.of = of, l
		for _, w := range of.Windows {
			to = append(to, x.nodes[w.ID].(*window))
		}
		for _, root := range of.Roots {
			into = append(into, x.columns[root])
		}
		s.windows, to = to[:len(to):len(to)], to[len(to):]
		s.columns, into = into[:len(into):len(into)], into[len(into):]
	}
}

// readSpans reads the spans that become complete in this round, of several
// series at once.
func (x *executor) readSpans() error {
	list := x.spans
	if len(x.readers) == 1 || len(list) < 2 {
		return x.readers[0].readAll(list)
	}
	const shares = 4 // of each reader: one that began with long series leaves others to the rest
	some := max(min(len(list)/(shares*len(x.readers)), x.env.AtOnce), 1)
	var next atomic.Int64
	errs := make([]error, len(x.readers))
	read := func(w int) {
		for errs[w] == nil {
			i := int(next.Add(int64(some))) - some
			if i >= len(list) {
				return
			}
			errs[w] = x.readers[w].readAll(list[i:min(i+some, len(list))])
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

// readAll reads the spans of this round of series, those together that have the same.
func (r *reader) readAll(list []*spans) error {
	for len(list) > 0 {
		n := 1
		for n < min(len(list), r.env.AtOnce) && list[n].like(list[0]) {
			n++
		}
		done := false
		var err error
		if n > 1 && r.env.Together != nil && !r.plan.Explain {
			done, err = r.readTogether(list[:n])
		}
		for i := 0; i < n && err == nil && !done; i++ {
			err = list[i].read(r)
		}
		if err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// like reports whether the same spans are due as of another series.
func (s *spans) like(o *spans) bool {
	a, b := s.of, o.of
	return s.Size == o.Size && s.Off == o.Off && s.given == o.given && a.From == b.From && a.Past == b.Past && a.Shift == b.Shift && a.Resolution == b.Resolution
}

// readTogether reads series of which the same spans are due. It reports whether it could: the
// spans have to be of one size.
func (r *reader) readTogether(list []*spans) (bool, error) {
	parts, n := list[0].dueIn(r)
	var one stretchOf
	for _, p := range parts {
		if p.n == n {
			one = p
		}
	}
	if one.n == 0 {
		return n == 0, nil
	}
	r.Series = r.Series[:0]
	for _, s := range list {
		r.Series = append(r.Series, s.of.Series)
	}
	all := r.Headers(n)
	return true, r.env.Together.AggregateEach(r.ctx, r.Series, one.from, one.slots, all, func(i int, cost source.Cost, err error) error {
		s := list[i]
		s.makeRoom(r, len(all))
		if err := s.took(cost, one.from+one.slots*one.n, err); err != nil {
			return err
		}
		if err := s.take(r, all, parts); err != nil {
			return err
		}
		return plan.GivenUp(r.ctx)
	})
}

// dueIn returns what is due in the round of a reader.
func (s *spans) dueIn(x *reader) (list [3]stretchOf, n int64) {
	l := s.of
	until := l.Past
	if !x.final {
		until = min(until, max(l.From, plan.SlotOf(x.bound-l.Shift, l.Resolution)))
	}
	return s.due(until, x.final)
}

// makeRoom makes room for values of so many spans.
func (s *spans) makeRoom(x *reader, n int) {
	for _, w := range s.windows {
		if v := w.ready.v; cap(v)-len(v) < n {
			w.ready.v = append(x.Room(len(v)+n), v...)
		}
	}
}

// read hands the windows and columns the spans of this round.
func (s *spans) read(x *reader) error {
	parts, n := s.dueIn(x)
	if n == 0 {
		return nil
	}
	if x.plan.Explain {
		began := x.env.Now()
		defer func() { s.elapsed += x.env.Now().Sub(began) }()
	}
	all := x.Headers(n)
	s.makeRoom(x, len(all))
	rest := all
	for _, p := range parts {
		if err := s.aggregate(x, p.from, p.slots, rest[:p.n]); err != nil {
			return err
		}
		rest = rest[p.n:]
	}
	return s.take(x, all, parts)
}

// take takes in what was read of the spans that are due.
func (s *spans) take(x *reader, all []chunk.Header, parts [3]stretchOf) error {
	if !s.begun {
		if err := s.begin(x, all, parts); err != nil {
			return err
		}
	}
	for _, p := range parts {
		if err := s.give(x, all[:p.n], p); err != nil {
			return err
		}
		all = all[p.n:]
		s.given += p.n
	}
	return nil
}

// stretchOf is n spans of so many slots each, one behind the other.
type stretchOf struct{ from, slots, n int64 }

// due returns the spans that are complete at slot until, and with last the short
// one behind them; n is how many they are together.
func (s *spans) due(until int64, last bool) (list [3]stretchOf, n int64) {
	l := s.of
	base := l.From - s.Off
	given := s.given
	if whole := (until - base) / s.Size; given == 0 && s.Off > 0 && whole > 0 {
		list[0] = stretchOf{l.From, s.Size - s.Off, 1}
		given++
	}
	if whole := (until - base) / s.Size; whole > given {
		list[1] = stretchOf{base + given*s.Size, s.Size, whole - given}
	}
	if from := max(l.From, l.Past-(l.Past-base)%s.Size); last && from < l.Past {
		list[2] = stretchOf{from, l.Past - from, 1}
	}
	return list, list[0].n + list[1].n + list[2].n
}

// begin finds the first value of the range: in what was read, or in the rest
// of it.
func (s *spans) begin(x *reader, read []chunk.Header, parts [3]stretchOf) error {
	s.begun = true
	slot := s.of.From
	for _, p := range parts {
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
	if slot < s.of.Past {
		if err := s.aggregate(x, slot, s.of.Past-slot, rest); err != nil {
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
	first := s.of.Past
	if h.Count > 0 {
		first = from + int64(h.FirstOff)
	}
	s.beginAt(x.executor, first)
}

// beginAt notes where the first set slot of the range is; its end if there is none.
func (s *spans) beginAt(x *executor, first int64) {
	s.first = first
	for _, c := range s.columns {
		c.skip(0)
		if !x.plan.Fill {
			c.skip(first - s.of.From)
		}
	}
}

func (s *spans) aggregate(x *reader, from, step int64, dst []chunk.Header) error {
	if len(dst) == 0 {
		return nil
	}
	l := s.of
	if err := plan.GivenUp(x.ctx); err != nil {
		return err
	}
	cost, err := l.Series.Aggregate(x.ctx, from, step, dst)
	return s.took(cost, from+step*int64(len(dst)), err)
}

// took notes what reading up to a slot took.
func (s *spans) took(cost source.Cost, past int64, err error) error {
	s.holes.Note(&cost, past)
	if err != nil {
		return s.of.failed(err)
	}
	s.cost.Add(cost)
	return nil
}

// give hands spans of so many slots to all windows and columns.
func (s *spans) give(x *reader, list []chunk.Header, p stretchOf) error {
	for _, w := range s.windows {
		w.spans(list, s.carry, p.slots)
	}
	if s.Counts {
		s.count(list[:s.counted(p)], p)
		if s.of.notePast > 0 {
			s.note(list, (p.from-s.of.From)/s.Size)
		}
	}
	if len(s.columns) == 0 {
		for i := len(list) - 1; i >= 0; i-- {
			if h := &list[i]; h.Count > 0 {
				s.carry = h.Last
				break
			}
		}
		return nil
	}
	for i := range list {
		h := &list[i]
		for _, c := range s.columns {
			if !c.span(h, s.carry, p.slots) {
				if err := s.slotwise(x, c, p.from+int64(i)*p.slots, p.slots); err != nil {
					return err
				}
			}
		}
		if h.Count > 0 {
			s.carry = h.Last
		}
	}
	return nil
}

// counted returns how many of a list of spans are in the range.
func (s *spans) counted(p stretchOf) int64 {
	if s.of.countPast == 0 || p.n == 0 {
		return p.n
	}
	return min(p.n, max(s.of.countPast-p.from, 0)/p.slots)
}

// count adds the set slots of a list to those of the leaf. Spans without gaps that
// follow each other count together.
func (s *spans) count(list []chunk.Header, p stretchOf) {
	l, full, from := s.of, int64(0), p.from
	for i := range list {
		h := &list[i]
		if int64(h.Count) == p.slots {
			full += p.slots
			continue
		}
		l.count(from, full)
		if from += full; h.Count > 0 {
			l.set += int64(h.Count)
			l.spacing.Span(from+int64(h.FirstOff), from+int64(h.LastOff), int64(h.Count))
		}
		from, full = from+p.slots, 0
	}
	l.count(from, full)
}

// count takes n set slots from one on.
func (l *leaf) count(from, n int64) {
	if n > 0 {
		l.set += n
		l.spacing.Points(from, n)
	}
}

// slotwise reads the slots of a column one by one: aggregates do not say what
// NaN among them does to its average.
func (s *spans) slotwise(x *reader, c *columns, from, slots int64) error {
	l := s.of
	total := sumtree.Total{Numbers: true}
	word, start := s.carry, from
	if c.left > 0 {
		word = point.Unset // what is before the first point does not count
	}
	carry := point.Float(s.carry)
	for past := from + slots; from < past; {
		n := min(past-from, source.MaxRead)
		words, values, sure := make([]uint64, n), make([]float64, n), make([]float64, n)
		if skip := min(max(l.Oldest-from, 0), n); skip < n {
			cost, err := x.readWords(l, from+skip, words[skip:])
			if err != nil {
				return l.failed(err)
			}
			s.cost.Add(cost)
		}
		total.Add(words, from)
		for i, w := range words {
			if w != point.Unset {
				carry, sure[i] = point.Float(w), 1
			}
			values[i] = carry
		}
		if from += n; from == past {
			sum, _ := total.End(word, start, past)
			c.sums = append(c.sums, sum.Float64())
		}
		c.add(values, sure)
	}
	return nil
}

// finish adds what reading took to that of the leaf.
func (s *spans) finish() {
	l := s.of
	l.asked += s.cost.Decoded
	l.cost.Add(s.cost)
	if s.Counts {
		l.holes = s.holes
	}
	l.took += s.elapsed
}

// spans closes a window for each of a list, with the word that is carried into
// the first.
func (w *window) spans(list []chunk.Header, carry uint64, slots int64) {
	w.ready.v = w.pushed.spans(w.ready.v, list, carry, slots, w.size)
	if !w.Confidence {
		return
	}
	for i := range list {
		w.ready.c = append(w.ready.c, w.pushed.sure(&list[i], slots, w.size))
	}
}
