package exec

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query/holes"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/query/spacing"
)

// spans reads a series span by span, for the windows right above it: their
// values come from aggregates, no slot has a value of its own.
type spans struct {
	*plan.Spans
	of      *leaf
	windows []*window
	columns []*columns

	base    int64 // slot that the first span begins at, as if it was whole
	spared  int64 // spans before the range that are still to be given
	ahead   int64 // slots ahead of the first span that counters still have to look at
	given   int64 // spans
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
		s.Spans, s.of, s.base = of, l, l.begin-of.Before-of.Off
		if s.holes.Begin(l.of.from); of.Spared {
			s.spared = of.Before / of.Size
			s.given = s.spared
		}
		for _, w := range of.Windows {
			to = append(to, x.nodes[w.ID].(*window))
			s.ahead = max(s.ahead, to[len(to)-1].history)
		}
		for _, root := range of.Roots {
			into = append(into, x.columns[root])
		}
		s.windows, to = to[:len(to):len(to)], to[len(to):]
		s.columns, into = into[:len(into):len(into)], into[len(into):]
	}
}

// readSpans reads the spans that become complete in this round.
func (x *executor) readSpans() error {
	if err := x.readSideBySide(x.spans); err != nil || !x.final {
		return err
	}
	for _, s := range x.spans {
		if s.spared > 0 { // the range has no span
			if err := s.giveSpared(x.readers[0], nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSideBySide reads those of several series at once.
func (x *executor) readSideBySide(list []*spans) error {
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
	return s.Bounds == nil && o.Bounds == nil && s.Size == o.Size && s.base == o.base &&
		s.Off == o.Off && s.given == o.given && a.past == b.past && a.Shift == b.Shift &&
		a.Resolution == b.Resolution
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
	if err := r.lookBack(list, one.from); err != nil {
		return true, err
	}
	r.Series = r.Series[:0]
	for _, s := range list {
		r.Series = append(r.Series, s.of.Series)
	}
	all := r.Headers(n)
	return true, r.env.Together.AggregateEach(r.ctx, r.Series, one.from, one.slots, all,
		func(i int, cost source.Cost, err error) error {
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
	until := l.past
	if !x.final {
		until = min(until, max(s.base+s.Off, plan.SlotOf(x.bound-l.Shift, l.Resolution)))
	}
	if s.Bounds != nil {
		return s.dueBounds(until)
	}
	return s.due(until, x.final)
}

// dueBounds returns the next spans of unequal length that are complete at slot until, those of
// equal length together.
func (s *spans) dueBounds(until int64) (list [3]stretchOf, n int64) {
	past, count := s.given, int64(len(s.Bounds))-1
	for i := range list {
		p := &list[i]
		for past < count && s.base+s.Bounds[past+1] <= until && (p.n == 0 || s.Length(past) == p.slots) {
			if p.n == 0 {
				p.from, p.slots = s.base+s.Bounds[past], s.Length(past)
			}
			p.n++
			past++
		}
	}
	return list, past - s.given
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
	if x.plan.Explain {
		began := x.env.Now()
		defer func() { s.elapsed += x.env.Now().Sub(began) }()
	}
	for {
		parts, n := s.dueIn(x)
		if n == 0 {
			return nil
		}
		if err := s.readParts(x, parts, n); err != nil || s.Bounds == nil {
			return err
		}
	}
}

// readParts reads n spans.
func (s *spans) readParts(x *reader, parts [3]stretchOf, n int64) error {
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
	if s.spared > 0 && len(all) > 0 {
		if err := s.giveSpared(x, all); err != nil {
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

// giveSpared gives the spans before the range. They are read only where one of the first in the
// range has no value: else nobody looks at them.
func (s *spans) giveSpared(x *reader, first []chunk.Header) error {
	const known = plan.ChainLength + 1
	n := s.spared
	s.spared = 0
	without := func(h chunk.Header) bool { return h.Count == 0 || !tells(&h) }
	if len(first) < known || slices.ContainsFunc(first[:known], without) {
		list := make([]chunk.Header, n)
		if err := s.aggregate(x, s.base, s.Size, list); err != nil {
			return err
		}
		return s.give(x, list, stretchOf{s.base, s.Size, n})
	}
	for _, w := range s.windows {
		w.ready = gaps(w.ready, n, w.Confidence)
	}
	return nil
}

// stretchOf is n spans of so many slots each, one behind the other.
type stretchOf struct{ from, slots, n int64 }

// due returns the spans that are complete at slot until, and with last the short
// one behind them; n is how many they are together.
func (s *spans) due(until int64, last bool) (list [3]stretchOf, n int64) {
	l, first := s.of, s.base+s.Off
	given := s.given
	if whole := (until - s.base) / s.Size; given == 0 && s.Off > 0 && whole > 0 {
		list[0] = stretchOf{first, s.Size - s.Off, 1}
		given++
	}
	if whole := (until - s.base) / s.Size; whole > given {
		list[1] = stretchOf{s.base + given*s.Size, s.Size, whole - given}
	}
	if from := max(first, l.past-(l.past-s.base)%s.Size); last && from < l.past {
		list[2] = stretchOf{from, l.past - from, 1}
	}
	return list, list[0].n + list[1].n + list[2].n
}

func (s *spans) aggregate(x *reader, from, step int64, dst []chunk.Header) error {
	if len(dst) == 0 {
		return nil
	}
	if step == 0 { // the calendar may have spans without slots
		clear(dst)
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
	if len(list) == 0 {
		return nil
	}
	if err := s.lookBack(x, p.from); err != nil {
		return err
	}
	for _, w := range s.windows {
		if w.LooksBack() {
			if err := s.giveCounter(x, w, list, p); err != nil {
				return err
			}
			continue
		}
		for done := 0; done < len(list); {
			if done += w.spans(list[done:], p.slots); done == len(list) {
				break
			}
			if err := s.slotwise(x, p.from+int64(done)*p.slots, p.slots, w.slots); err != nil {
				return err
			}
			done++
		}
	}
	for _, c := range s.columns {
		for i := range list {
			if c.span(&list[i], p.slots) {
				continue
			}
			if err := s.slotwise(x, p.from+int64(i)*p.slots, p.slots, c.slots); err != nil {
				return err
			}
		}
	}
	if s.Counts {
		s.count(list, p)
	}
	return nil
}

// count adds the set slots of a list to those of the leaf, and notes them for those who take
// steps over. Spans without gaps that follow each other count together.
func (s *spans) count(list []chunk.Header, p stretchOf) {
	l := s.of
	full, from := int64(0), p.from
	for i := range list {
		h := &list[i]
		at := p.from + int64(i)*p.slots
		if at < l.begin {
			from = at + p.slots
			continue
		}
		if at < l.notePast {
			l.note(h)
		}
		if int64(h.Count) == p.slots {
			full += p.slots
			continue
		}
		l.of.take(from, full)
		if h.Count > 0 && at < l.of.past { // spans are not cut by the range
			l.of.add(int64(h.Count), at+int64(h.FirstOff), at+int64(h.LastOff))
		}
		from, full = at+p.slots, 0
	}
	l.of.take(from, full)
}

// note notes what a span has, for those who take steps over.
func (l *leaf) note(h *chunk.Header) {
	r := spacing.Run{N: 1, Count: int32(h.Count), First: int32(h.FirstOff), Last: int32(h.LastOff)}
	if h.Count == 0 {
		r.First, r.Last = 0, 0
	}
	l.runs = spacing.AppendRun(l.runs, r)
}

// slotwise reads the slots of a span one by one, where aggregates do not tell, and hands them to
// who takes them.
func (s *spans) slotwise(x *reader, from, slots int64,
	to func(words []uint64, from int64, last bool)) error {
	l := s.of
	for past := from + slots; from < past; {
		n := min(past-from, source.MaxSlots)
		if int64(len(x.Words)) < n {
			x.Words = make([]uint64, n)
		}
		words, skip := x.Words[:n], min(max(l.Oldest-from, 0), n)
		clear(words[:skip])
		if skip < n {
			cost, err := x.readWords(l, from+skip, words[skip:])
			if err != nil {
				return l.failed(err)
			}
			s.cost.Add(cost)
		}
		to(words, from, from+n == past)
		from += n
	}
	return nil
}

// valuesOf returns the values of words, gaps for those that are unset, and their confidences.
func valuesOf(words []uint64) (values, sure []float64) {
	values, sure = make([]float64, len(words)), make([]float64, len(words))
	for i, w := range words {
		if values[i] = math.NaN(); w>>56 != 0 {
			values[i] = point.Float(w)
		}
		if values[i] == values[i] {
			sure[i] = 1
		}
	}
	return values, sure
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
