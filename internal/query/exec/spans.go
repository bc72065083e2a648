package exec

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
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

	given int64 // spans
	begun bool  // carry is known
	first int64 // set slot of the range; its end if there is none
	carry uint64
	cost  source.Cost
	holes holes // each of several over a leaf finds the same
	took  time.Duration
}

// openSpans makes what reads spans, and hands them to who takes them.
func (x *executor) openSpans(of *plan.Spans) *spans {
	s := &spans{Spans: of, of: x.nodes[of.Read.ID].(*leaf)}
	for _, w := range of.Windows {
		s.windows = append(s.windows, x.nodes[w.ID].(*window))
	}
	for _, root := range of.Roots {
		s.columns = append(s.columns, x.columns[root])
	}
	s.of.spans = append(s.of.spans, s)
	return s
}

// readSpans reads the spans that become complete in this round, of several
// series at once.
func (x *executor) readSpans() error {
	list := x.spans
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
	until := l.Past
	if !x.final {
		until = min(until, max(l.From, plan.SlotOf(x.bound-l.Shift, l.Resolution)))
	}
	parts, n := s.due(until, x.final)
	if n == 0 {
		return nil
	}
	if x.plan.Explain {
		began := x.env.Now()
		defer func() { s.took += x.env.Now().Sub(began) }()
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
	for _, p := range parts {
		if err := s.aggregate(x, p.from, p.slots, rest[:p.n]); err != nil {
			return err
		}
		rest = rest[p.n:]
	}
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
	s.first = s.of.Past
	if h.Count > 0 {
		s.first = from + int64(h.FirstOff)
	}
	for _, c := range s.columns {
		c.skip(0)
		if !x.plan.Fill {
			c.skip(s.first - s.of.From)
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
		if s.Counts {
			s.of.set += int64(h.Count)
			s.of.spacing.span(from+int64(h.FirstOff), from+int64(h.LastOff), int64(h.Count))
		}
	}
	return nil
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
