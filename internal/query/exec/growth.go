package exec

import (
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/query/reduce"
	"dalmatiner/internal/query/source"
)

// growth returns what adds up a counter, of a window that looks back.
func (w *window) growth() *reduce.Growth { return w.reducer().(*reduce.Growth) }

// giveGrowth gives the value of a window over so many slots of a read.
func (w *window) giveGrowth(slots int64) {
	w.filled, w.sure = slots, float64(w.growth().Values())
	w.ready = w.close(w.ready)
}

// giveCounter gives a window of counters spans of so many slots.
func (s *spans) giveCounter(x *reader, w *window, list []chunk.Header, p stretchOf) error {
	of := &pieces{s, x}
	for i := range list {
		from := p.from + int64(i)*p.slots
		if err := w.growth().Take(of, &list[i], from, p.slots); err != nil {
			return err
		}
		w.giveGrowth(p.slots)
	}
	return nil
}

// pieces is a series, for what adds up a counter.
type pieces struct {
	*spans
	x *reader
}

func (p *pieces) Aggregate(from, step int64, dst []chunk.Header) error {
	return p.aggregate(p.x, from, step, dst)
}

func (p *pieces) Each(from, n int64, take func(words []uint64, from int64)) error {
	return p.slotwise(p.x, from, n, func(words []uint64, at int64, _ bool) { take(words, at) })
}

// lookBack looks at what is ahead of the first span, which begins at slot from.
func (s *spans) lookBack(x *reader, from int64) error {
	if s.ahead == 0 {
		return nil
	}
	var h [1]chunk.Header
	if err := s.aggregate(x, from-s.ahead, s.ahead, h[:]); err != nil {
		return err
	}
	return s.begin(x, &h[0], from)
}

// lookBack looks at what is ahead of the first span of series of which the same spans are due.
func (r *reader) lookBack(list []*spans, from int64) error {
	var some []*spans
	r.Series = r.Series[:0]
	for _, s := range list {
		if s.ahead > 0 {
			some = append(some, s)
			r.Series = append(r.Series, s.of.Series)
		}
	}
	if len(some) == 0 {
		return nil
	}
	slots := some[0].ahead
	var h [1]chunk.Header
	return r.env.Together.AggregateEach(r.ctx, r.Series, from-slots, slots, h[:],
		func(i int, cost source.Cost, err error) error {
			if err := some[i].took(cost, from, err); err != nil {
				return err
			}
			return some[i].begin(r, &h[0], from)
		})
}

// begin gives windows of counters the last value ahead of the first span: h has the aggregates of
// the slots before it.
func (s *spans) begin(x *reader, h *chunk.Header, from int64) (err error) {
	slots := s.ahead
	s.ahead = 0
	for _, w := range s.windows {
		switch {
		case !w.LooksBack() || h.Count == 0:
		case tells(h):
			w.growth().Begin(h.Last, from-slots+int64(h.LastOff))
		case err == nil: // the last point may be NaN
			err = (&pieces{s, x}).Each(from-slots, slots, w.growth().BeforeWords)
		}
	}
	return err
}
