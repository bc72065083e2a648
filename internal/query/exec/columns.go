package exec

import (
	"math"
	"slices"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/query/plan"
)

// columns reduces a series to the columns of a chart while it is computed, so
// that a long range takes the memory of its columns. A column knows the least
// and the greatest value in it: no spike is lost, however few columns there
// are. They are those of all values, filled gaps included, from the first one
// that is not before all points. NaN counts only if there is nothing else.
type columns struct {
	plan.Columns      // Off counts down to 0 with the first one
	sure         bool // confidences are wanted

	sums           []float64 // of the columns from the open one on, where the slots are added up apart
	left           int64     // values still to come that are before the first point
	taken          int64     // values from the begin of the range on that were not computed
	begun          bool      // left is known
	n, known       int64     // values in the open column, and those that count
	skipped        int64     // of them, before the first point
	sum, low, high float64
	confidence     float64 // sum of them

	avg, min, max, conf []float64
	lead                int // columns without a value that counts, because of left
}

// openColumns makes room for the columns of n values. sure asks for their confidences.
func openColumns(of *plan.Columns, n int64, sure bool) *columns {
	c := &columns{Columns: *of, sure: sure}
	count := c.Count(n)
	c.avg, c.min, c.max = make([]float64, 0, count), make([]float64, 0, count), make([]float64, 0, count)
	if c.sure {
		c.conf = make([]float64, 0, count)
	}
	return c
}

// skip says how many values of the range, from its begin on, are before the first point.
func (c *columns) skip(n int64) { c.begun, c.left = true, max(n-c.taken, 0) }

// keptColumns are the first columns of a root.
type keptColumns struct {
	avg, min, max, conf []float64
	lead                int
}

func (k *keptColumns) bytes() int64 {
	return 104 + 8*int64(cap(k.avg)+cap(k.min)+cap(k.max)+cap(k.conf))
}

// first returns the first n columns, to be kept.
func (c *columns) first(n int) keptColumns {
	k := keptColumns{avg: slices.Clone(c.avg[:n]), min: slices.Clone(c.min[:n]), max: slices.Clone(c.max[:n]), lead: c.lead}
	if c.sure {
		k.conf = slices.Clone(c.conf[:n])
	}
	return k
}

// takeOver takes the columns [from, to) of those that are kept, of so many values.
func (c *columns) takeOver(k *keptColumns, from, to int, values int64) {
	c.avg, c.min, c.max = append(c.avg, k.avg[from:to]...), append(c.min, k.min[from:to]...), append(c.max, k.max[from:to]...)
	if c.sure {
		c.conf = append(c.conf, k.conf[from:to]...)
	}
	c.lead += max(min(k.lead, to)-from, 0)
	if c.begun {
		c.left = max(c.left-values, 0)
	}
	c.taken = int64(len(c.avg)) * c.Step
}

// add takes the next values of the series. Their confidences are used if they
// are wanted.
func (c *columns) add(values, confidences []float64) {
	for i, v := range values {
		if c.sure {
			c.confidence += confidences[i]
		}
		if c.left > 0 {
			c.left--
			c.skipped++
		} else if v == v {
			// Of 0 and -0 the first stays, as in the aggregates of a chunk.
			if c.known == 0 || v < c.low {
				c.low = v
			}
			if c.known == 0 || v > c.high {
				c.high = v
			}
			c.sum += v
			c.known++
		}
		if c.n++; c.Off+c.n == c.Step {
			c.end()
		}
	}
}

// span takes a whole column as the aggregates of its slots, with the word that
// is carried into it. It reports false where these do not say what NaN does to
// the average: then the column is still open.
func (c *columns) span(h *chunk.Header, carry uint64, slots int64) bool {
	c.n, c.skipped, c.confidence = slots, min(c.left, slots), float64(h.Count)
	c.known = slots - c.skipped
	if c.known > 0 {
		if c.skipped > 0 { // up to the first point, which is in it
			c.sum = h.FilledTo(int(slots)).Float64()
			first := *h
			first.FirstOff = 0
			h = &first
		} else {
			c.sum = sumOf(h, carry, slots)
		}
		c.low, c.high = extremeOf(h, carry, h.Min, true), extremeOf(h, carry, h.Max, false)
	}
	if c.sum != c.sum {
		c.n, c.skipped, c.known, c.sum, c.confidence = 0, 0, 0, 0, 0
		return false
	}
	c.left -= c.skipped
	c.close()
	return true
}

// finish closes a short last column.
func (c *columns) finish() {
	if c.n > 0 {
		c.end()
	}
}

// end closes a column that has taken values.
func (c *columns) end() {
	if len(c.sums) > 0 {
		c.sum, c.sums = c.sums[0], c.sums[1:]
	}
	c.close()
}

// start returns when columns with a unit begin, in unix ms of the query.
func (c *columns) start(l *leaf) int64 { return c.First*l.Resolution + l.Shift }

func (c *columns) close() {
	avg, low, high := math.NaN(), math.NaN(), math.NaN()
	if c.known > 0 {
		avg, low, high = c.sum/float64(c.known), c.low, c.high
	} else if c.skipped == c.n {
		c.lead++
	}
	c.avg, c.min, c.max = append(c.avg, avg), append(c.min, low), append(c.max, high)
	if c.sure {
		c.conf = append(c.conf, c.confidence/float64(c.n))
	}
	c.Off, c.n, c.skipped, c.known, c.sum, c.confidence = 0, 0, 0, 0, 0, 0
}
