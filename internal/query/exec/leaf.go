package exec

import (
	"fmt"
	"math"

	"dalmatiner/internal/kernel"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
	"dalmatiner/internal/query/holes"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/query/spacing"
)

// unknown stands for the first set slot of a leaf before it is looked for. SHIFT
// leads to slots before 1970, so that -1 is one.
const unknown = math.MinInt64

// leaf reads one series and fills its gaps: a gap repeats the value before
// it, a gap at the start of the range takes the first value in the range, and
// a range without values is all 0. The confidence is 1 for a set slot and 0
// for a filled one.
type leaf struct {
	common
	*plan.Read

	pos   int64 // slots from here on are not yet given out
	stop  int64 // end of the part at pos: Past, or before it where reads begin anew
	first int64 // first set slot of the part; stop if there is none
	carry float64
	word  uint64 // of the first set slot
	set   int64
	asked int64 // slots asked of the source

	spans   []*spans // that read it, each of its size: then it is not pulled
	sums    []sums   // that are added up as it is read
	cost    source.Cost
	spacing spacing.Spacing
	holes   holes.Notes

	countPast int64 // slots from here on do not count, where more than the range is read; else 0

	// What is noted of the spans [noteFrom, notePast) that count, for those who take steps over.
	noteFrom, notePast int64
	notes              []spacing.Run
	noting             bool          // of a leaf that is read slot by slot
	gaps               spacing.Slots // what is noted of it
	lastWord           uint64        // of the last set slot that is noted

	// Of ahead, under its lock.
	state   aheadState
	ready   block
	failure error
}

// open makes the leaf ready to read.
func (l *leaf) open(n *plan.Node, read *plan.Read) {
	l.Node, l.Read = n, read
	l.pos, l.stop, l.first = read.From, read.Past, unknown
	if n.Restart > 0 {
		l.stop = min(read.Past, read.From+n.Restart)
	}
}

func (l *leaf) coverage() (set, slots int64) { return l.set, l.Values }

func (l *leaf) next(x *executor, dst block) (block, error) {
	return x.ahead.pull(l, x.readers[0], dst)
}

// produce reads what becomes complete in this round and was not read yet.
func (l *leaf) produce(r *reader, dst block) (block, error) {
	until := l.Past
	if !r.final {
		until = min(until, max(l.pos, plan.SlotOf(r.bound-l.Shift, l.Resolution)))
	}
	for l.pos < until {
		var err error
		if dst, err = l.upTo(r, dst, min(until, l.stop)); err != nil {
			return dst, err
		}
		if l.pos == l.stop && l.stop < l.Past {
			l.restart()
		}
	}
	if r.final {
		l.endSums()
	}
	return dst, nil
}

// upTo appends the slots up to until, which belong to one part.
func (l *leaf) upTo(r *reader, dst block, until int64) (block, error) {
	n := until - l.pos
	words := r.Words[:n]
	read := false
	if l.first == unknown {
		if err := l.fetch(r, l.pos, words); err != nil {
			return dst, err
		}
		read = true
		if err := l.findFirst(r, words); err != nil {
			return dst, err
		}
	}
	if until <= l.first {
		l.pos = until
		l.sumUp(nil, until-n, n)
		return l.appendGap(dst, int(n)), nil
	}
	if !read {
		if err := l.fetch(r, l.pos, words); err != nil {
			return dst, err
		}
	}
	l.pos = until
	l.sumUp(words, until-n, n)
	return l.appendFilled(dst, until-n, words), nil
}

// findFirst looks for the first set slot of the range, first in words, the
// slots from pos on. When it is not there it reads ahead, and words is
// overwritten: everything in it was unset.
func (l *leaf) findFirst(r *reader, words []uint64) error {
	from := l.pos
	for {
		for i, w := range words {
			if w != point.Unset {
				l.first, l.carry, l.word = from+int64(i), point.Float(w), w
				return nil
			}
		}
		from += int64(len(words))
		from = min(max(from, l.Oldest), l.stop)
		if from == l.stop {
			l.first = l.stop
			return nil
		}
		words = r.Words[:min(int64(len(r.Words)), l.stop-from)]
		if err := l.fetch(r, from, words); err != nil {
			return err
		}
	}
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
		n := min(len(words), source.MaxRead)
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
		return fmt.Errorf("count events of bucket %s: %w", metric.Quoted(l.Bucket), err)
	}
	return fmt.Errorf("read %s of bucket %s: %w", metric.Text(l.Key), metric.Quoted(l.Bucket), err)
}

func (l *leaf) appendGap(dst block, n int) block {
	dst = dst.grow(n, l.Confidence)
	v := dst.v[len(dst.v)-n:]
	for i := range v {
		v[i] = l.carry
	}
	if l.Confidence {
		clear(dst.c[len(dst.c)-n:])
	}
	if l.noting {
		l.gaps.Gap(int64(n))
	}
	return dst
}

// appendFilled appends the values of words, the slots from from on, with gaps
// filled.
func (l *leaf) appendFilled(dst block, from int64, words []uint64) block {
	n := len(words)
	dst = dst.grow(n, l.Confidence)
	v := dst.v[len(dst.v)-n:][:n]
	carry, set := l.carry, int64(0)
	for i := 0; i < n; {
		if k := kernel.Numbers(v[i:], words[i:]); k > 0 {
			l.spacing.Points(from+int64(i), int64(k))
			i += k
			set += int64(k)
			carry = v[i-1]
			if l.noting {
				l.gaps.Set(int64(k))
				l.lastWord = words[i-1]
			}
		}
		begin := i
		for ; i < n && words[i] == point.Unset; i++ {
			v[i] = carry
		}
		if l.noting {
			l.gaps.Gap(int64(i - begin))
		}
	}
	l.carry = carry
	l.set += set
	if l.Confidence {
		c := dst.c[len(dst.c)-n:][:n]
		for i, w := range words {
			c[i] = 0
			if w != point.Unset {
				c[i] = 1
			}
		}
	}
	return dst
}

// readWords reads slots as the query wants them.
func (x *executor) readWords(l *leaf, from int64, dst []uint64) (source.Cost, error) {
	if x.plan.Older {
		return l.Series.ReadOlder(x.ctx, from, dst)
	}
	return l.Series.Read(x.ctx, from, dst)
}
