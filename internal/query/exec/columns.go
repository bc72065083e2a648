package exec

import (
	"math"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/codec/sumtree"
	"dalmatiner/internal/query/plan"
)

// columns reduces a series to the columns of a chart while it is computed, so
// that a long range takes the memory of its columns. A column knows the least
// and the greatest value in it: no spike is lost, however few columns there
// are. Gaps do not count; a column without a value is one.
type columns struct {
	plan.Columns      // Off counts down to 0 with the first one
	sure         bool // confidences are wanted

	// of the columns from the open one on, where the slots are added up apart
	means       []float64
	apart       *sumtree.Total // of the slots of the open column, where aggregates do not tell
	n, known    int64          // outputs in the open column, and values among them
	sum, scaled float64        // of the values, and of the values times a number that keeps it finite
	low, high   float64
	confidence  float64 // sum of them

	avg, min, max, conf []float64
}

// openColumns makes room for the columns of n values. sure asks for their confidences.
func openColumns(of *plan.Columns, n int64, sure bool) *columns {
	c := &columns{Columns: *of, sure: sure}
	count := c.Count(n)
	c.avg, c.min, c.max = make([]float64, 0, count), make([]float64, 0, count),
		make([]float64, 0, count)
	if c.sure {
		c.conf = make([]float64, 0, count)
	}
	return c
}

// keptColumns are the first columns of a root.
type keptColumns struct {
	avg, min, max, conf []float64
}

func (k *keptColumns) bytes() int64 {
	return 96 + 8*int64(cap(k.avg)+cap(k.min)+cap(k.max)+cap(k.conf))
}

// first returns the first n columns, to be kept.
func (c *columns) first(n int) keptColumns {
	k := keptColumns{
		avg: slices.Clone(c.avg[:n]),
		min: slices.Clone(c.min[:n]),
		max: slices.Clone(c.max[:n]),
	}
	if c.sure {
		k.conf = slices.Clone(c.conf[:n])
	}
	return k
}

// takeOver takes the columns [from, to) of those that are kept.
func (c *columns) takeOver(k *keptColumns, from, to int) {
	c.avg, c.min, c.max = append(c.avg, k.avg[from:to]...), append(c.min, k.min[from:to]...),
		append(c.max, k.max[from:to]...)
	if c.sure {
		c.conf = append(c.conf, k.conf[from:to]...)
	}
}

// add takes the next values of the series. Their confidences are used if they
// are wanted.
func (c *columns) add(values, confidences []float64) {
	for i, v := range values {
		if c.sure {
			c.confidence += confidences[i]
		}
		if v == v {
			// Of 0 and -0 the first stays, as in the aggregates of a chunk.
			if c.known == 0 || v < c.low {
				c.low = v
			}
			if c.known == 0 || v > c.high {
				c.high = v
			}
			c.sum += v
			c.scaled += v * sumtree.MeanScale
			c.known++
		}
		if c.n++; c.Off+c.n == c.Step {
			c.end()
		}
	}
}

// span takes a whole column as the aggregates of its slots. It reports false where these do not
// tell the average: then the column is still open.
func (c *columns) span(h *chunk.Header, slots int64) bool {
	if h.Count == 0 {
		c.n = slots
		c.close(math.NaN())
		return true
	}
	mean, ok := h.Mean()
	if !ok {
		return false
	}
	c.n, c.known, c.confidence = slots, int64(h.Count), float64(h.Count)
	c.low, c.high = point.Float(h.Min), point.Float(h.Max)
	c.close(mean)
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
	mean := math.NaN()
	switch {
	case len(c.means) > 0:
		mean, c.means = c.means[0], c.means[1:]
	case c.known > 0:
		mean = sumtree.Mean(c.sum, c.scaled, c.known, c.low, c.high)
	}
	c.close(mean)
}

// start returns when columns with a unit begin, in unix ms of the query.
func (c *columns) start(l *leaf) int64 { return c.First*l.Resolution + l.Shift }

func (c *columns) close(mean float64) {
	if c.known == 0 {
		c.low, c.high = math.NaN(), math.NaN()
	}
	c.avg, c.min, c.max = append(c.avg, mean), append(c.min, c.low), append(c.max, c.high)
	if c.sure {
		c.conf = append(c.conf, c.confidence/float64(c.n))
	}
	c.Off, c.n, c.known, c.sum, c.scaled, c.confidence = 0, 0, 0, 0, 0, 0
}

// slots takes slots of the open column.
func (c *columns) slots(words []uint64, from int64, last bool) {
	if c.apart == nil {
		c.apart = &sumtree.Total{Means: true}
	}
	c.apart.Add(words, from)
	if last {
		c.means = append(c.means, c.apart.Mean())
		c.apart = nil
	}
	values, sure := valuesOf(words)
	c.add(values, sure)
}
