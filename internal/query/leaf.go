package query

import (
	"fmt"
	"math"

	"dalmatiner/internal/kernel"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
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
	bucket Bucket
	key    []byte
	shift  int64 // ms into the past

	pos, end int64 // slots not yet given out
	oldest   int64 // slots before this one cannot be set
	stop     int64 // end of the piece at pos: end, or before it where reads begin anew
	first    int64 // first set slot of the piece; stop if there is none
	carry    float64
	word     uint64 // of the first set slot
	set      int64
	asked    int64 // slots asked of the source

	spans   []*spans // that read it, each of its size: then it is not pulled
	sums    []sums   // that are added up as it is read
	cost    Cost
	spacing spacing
	holes   holes

	// Of ahead, under its lock.
	state   aheadState
	ready   block
	failure error
}

// slotOf returns the slot that a time in unix ms falls into. Before 1970 it is
// negative, and never set.
func slotOf(ms, res int64) int64 {
	slot := ms / res
	if ms%res < 0 {
		slot--
	}
	return slot
}

func (l *leaf) needConfidence(want bool) { l.enter(want) }

func (l *leaf) coverage() (set, slots int64) { return l.set, l.n }

func (l *leaf) next(x *executor, dst block) (block, error) {
	return x.ahead.pull(l, x.readers[0], dst)
}

// produce reads what becomes complete in this round and was not read yet.
func (l *leaf) produce(r *reader, dst block) (block, error) {
	until := l.end
	if !r.final {
		until = min(until, max(l.pos, slotOf(r.bound-l.shift, l.res)))
	}
	for l.pos < until {
		var err error
		if dst, err = l.upTo(r, dst, min(until, l.stop)); err != nil {
			return dst, err
		}
		if l.pos == l.stop && l.stop < l.end {
			l.nextPiece()
		}
	}
	if r.final {
		l.endSums()
	}
	return dst, nil
}

// upTo appends the slots up to until, which belong to one piece.
func (l *leaf) upTo(r *reader, dst block, until int64) (block, error) {
	n := until - l.pos
	words := r.words[:n]
	read := false
	if l.first == unknown {
		if err := l.read(r, l.pos, words); err != nil {
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
		if err := l.read(r, l.pos, words); err != nil {
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
		from = min(max(from, l.oldest), l.stop)
		if from == l.stop {
			l.first = l.stop
			return nil
		}
		words = r.words[:min(int64(len(r.words)), l.stop-from)]
		if err := l.read(r, from, words); err != nil {
			return err
		}
	}
}

// read fills words with the slots from from on. Slots that cannot be set are
// not asked for.
func (l *leaf) read(r *reader, from int64, words []uint64) error {
	if skip := min(max(l.oldest-from, 0), int64(len(words))); skip > 0 {
		clear(words[:skip])
		words, from = words[skip:], from+skip
	}
	for len(words) > 0 {
		// A round may have a hundred thousand reads.
		if err := givenUp(r.ctx); err != nil {
			return err
		}
		n := min(len(words), MaxRead)
		cost, err := r.readWords(l, from, words[:n])
		l.cost.Add(cost)
		l.holes.note(&cost, from+int64(n))
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
	return fmt.Errorf("read %s of bucket %s: %w", metric.Text(l.key), metric.Quoted(l.bucket.Name), err)
}

func (l *leaf) appendGap(dst block, n int) block {
	dst = dst.grow(n, l.conf)
	v := dst.v[len(dst.v)-n:]
	for i := range v {
		v[i] = l.carry
	}
	if l.conf {
		clear(dst.c[len(dst.c)-n:])
	}
	return dst
}

// appendFilled appends the values of words, the slots from from on, with gaps
// filled.
func (l *leaf) appendFilled(dst block, from int64, words []uint64) block {
	n := len(words)
	dst = dst.grow(n, l.conf)
	v := dst.v[len(dst.v)-n:][:n]
	carry, set := l.carry, int64(0)
	for i := 0; i < n; {
		if k := kernel.Numbers(v[i:], words[i:]); k > 0 {
			l.spacing.points(from+int64(i), int64(k))
			i += k
			set += int64(k)
			carry = v[i-1]
		}
		for ; i < n && words[i] == point.Unset; i++ {
			v[i] = carry
		}
	}
	l.carry = carry
	l.set += set
	if l.conf {
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

// grow returns b longer by n undefined values, and as many confidences where
// conf is set.
func (b block) grow(n int, conf bool) block {
	b.v = extend(b.v, n)
	if conf {
		b.c = extend(b.c, n)
	}
	return b
}

func extend(s []float64, n int) []float64 {
	if len(s)+n > cap(s) {
		s = append(make([]float64, 0, max(2*cap(s), len(s)+n)), s...)
	}
	return s[:len(s)+n]
}
