package exec

import (
	"fmt"
	"math"

	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/holes"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/query/spacing"
)

// leaf reads one series: a slot that is set is its value with confidence 1, any other a gap.
type leaf struct {
	common
	*plan.Read
	old *filled // with compat, how gaps are filled; else nil

	begin, past int64 // slots of the range that the run computes
	pos         int64 // slots from here on are not yet given out
	of          share // of the range of the query
	asked       int64 // slots asked of the source

	spans []*spans // that read it, each of its size: then it is not pulled
	sums  []sums   // that are added up as it is read
	shown bool     // it is a result as it is
	exact []Exact  // of a leaf that is shown: in the order of its slots
	cost  source.Cost
	holes holes.Notes

	// What is noted of the slots before notePast, for those who take steps over.
	notePast int64
	runs     []spacing.Run // of a leaf that is read by spans
	slots    spacing.Slots // of one that is read slot by slot

	// Of ahead, under its lock.
	state   aheadState
	ready   block
	failure error
}

// share is the part of a query's range in one series, and what is set in it.
type share struct {
	from, past  int64 // slots
	set         int64
	first, last int64 // set slots, where there are any
}

// take takes n set slots from one on, as far as they are in the range.
func (s *share) take(from, n int64) {
	past := min(from+n, s.past)
	if from = max(from, s.from); from < past {
		s.add(past-from, from, past-1)
	}
}

// add takes n set slots from first to last, which come behind all others.
func (s *share) add(n, first, last int64) {
	if s.set == 0 {
		s.first = first
	}
	s.set += n
	s.last = last
}

// open makes the leaf ready to read.
func (l *leaf) open(x *executor, c common, read *plan.Read) {
	l.common, l.Read = c, read
	first := read.From + x.moved()/l.Resolution
	l.of = share{from: first, past: first + l.Values - l.Before}
	l.begin = first + (x.from-x.plan.Start)/l.Resolution
	l.past = l.of.past + (x.end-x.plan.End)/l.Resolution
	l.pos = l.begin - l.Before
	l.holes.Begin(l.of.from)
	if x.plan.Compat {
		l.of.past = read.Past
		l.past = read.Past
		l.old = openFilled(l)
	}
}

func (l *leaf) next(x *executor, dst block) (block, error) {
	return x.ahead.pull(l, x.readers[0], dst)
}

// produce reads what becomes complete in this round and was not read yet.
func (l *leaf) produce(r *reader, dst block) (block, error) {
	until := l.past
	if !r.final {
		until = min(until, max(l.pos, plan.SlotOf(r.bound-l.Shift, l.Resolution)))
	}
	if l.old != nil {
		return l.old.produce(r, dst, until)
	}
	if n := until - l.pos; n > 0 {
		words, from := r.Words[:n], l.pos
		if err := l.fetch(r, from, words); err != nil {
			return dst, err
		}
		l.pos = until
		for i := range l.sums {
			l.sums[i].take(words, from)
		}
		dst = l.append(dst, from, words)
		if l.shown {
			if err := l.noteExact(r, from, words, dst.v[len(dst.v)-int(n):]); err != nil {
				return dst, err
			}
		}
	}
	if r.final {
		for i := range l.sums {
			l.sums[i].finish(l.past)
		}
	}
	return dst, nil
}

// fetch fills words with the slots from from on. Slots that cannot be set are
// not asked for.
func (l *leaf) fetch(r *reader, from int64, words []uint64) error {
	if skip := min(max(l.Oldest-from, 0), int64(len(words))); skip > 0 {
		clear(words[:skip])
		words, from = words[skip:], from+skip
	}
	for len(words) > 0 {
		// A round may have a hundred thousand reads.
		if err := plan.GivenUp(r.ctx); err != nil {
			return err
		}
		n := min(len(words), source.MaxSlots)
		cost, err := r.readWords(l, from, words[:n])
		l.cost.Add(cost)
		l.holes.Note(&cost, from+int64(n))
		if err != nil {
			return l.failed(err)
		}
		l.asked += int64(n)
		words, from = words[n:], from+int64(n)
	}
	return nil
}

// failed names the series that could not be read.
func (l *leaf) failed(err error) error {
	if l.Events {
		return fmt.Errorf("count events of bucket %s: %w", metric.Quote(l.Bucket), err)
	}
	return fmt.Errorf("read %s of bucket %s: %w", metric.Text(l.Key), metric.Quote(l.Bucket), err)
}

// append appends the values of words, the slots from from on.
func (l *leaf) append(dst block, from int64, words []uint64) block {
	n := len(words)
	dst = dst.grow(n, l.Confidence)
	v := dst.v[len(dst.v)-n:][:n]
	for i := 0; i < n; {
		if k := kernel.Numbers(v[i:], words[i:]); k > 0 {
			l.set(from+int64(i), int64(k))
			i += k
		}
		gap := i
		for ; i < n && words[i]>>56 == 0; i++ {
			v[i] = math.NaN()
		}
		l.unset(from+int64(gap), int64(i-gap))
	}
	if l.Confidence {
		c := dst.c[len(dst.c)-n:][:n]
		for i, f := range v {
			c[i] = 0
			if f == f {
				c[i] = 1
			}
		}
	}
	return dst
}

// set takes n set slots from one on.
func (l *leaf) set(from, n int64) {
	l.of.take(max(from, l.begin), n-max(l.begin-from, 0))
	if l.notePast > 0 {
		if n = min(from+n, l.notePast) - max(from, l.begin); n > 0 {
			l.slots.Set(n)
		}
	}
}

// unset takes n slots without a point.
func (l *leaf) unset(from, n int64) {
	if l.notePast > 0 {
		l.slots.Gap(max(min(from+n, l.notePast)-max(from, l.begin), 0))
	}
}

// readWords reads slots as the query wants them.
func (x *executor) readWords(l *leaf, from int64, dst []uint64) (source.Cost, error) {
	if x.plan.Older {
		return l.Series.ReadOlder(x.ctx, from, dst)
	}
	return l.Series.Read(x.ctx, from, dst)
}
