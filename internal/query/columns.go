package query

import "math"

// MaxWidth is the most columns that Options.Width may ask for: more than any
// screen has.
const MaxWidth = 16384

// columns reduces a series to the columns of a chart while it is computed, so
// that a long range takes the memory of its columns. A column knows the least
// and the greatest value in it: no spike is lost, however few columns there
// are. NaN counts only if there is nothing else; where confidences are known,
// filled gaps do not count either.
type columns struct {
	step int64 // values per column; the last one may have fewer
	sure bool  // confidences are wanted

	n, known       int64 // values in the open column, and those that count
	sum, low, high float64
	confidence     float64 // sum of them

	avg, min, max, conf []float64
}

// newColumns returns the columns of a series of n values: as many as fit into
// width with equal whole numbers of values.
func newColumns(n, width int64, sure bool) *columns {
	c := &columns{step: max(1, (n+width-1)/width), sure: sure}
	count := c.count(n)
	c.avg, c.min, c.max = make([]float64, 0, count), make([]float64, 0, count), make([]float64, 0, count)
	return c
}

func (c *columns) count(n int64) int64 { return (n + c.step - 1) / c.step }

// add takes the next values of the series. Their confidences are used if they
// are wanted.
func (c *columns) add(values, confidences []float64) {
	for i, v := range values {
		counts := v == v
		if c.sure {
			c.confidence += confidences[i]
			counts = counts && confidences[i] > 0
		}
		if counts {
			if c.known == 0 {
				c.low, c.high = v, v
			}
			c.low, c.high = min(c.low, v), max(c.high, v)
			c.sum += v
			c.known++
		}
		if c.n++; c.n == c.step {
			c.close()
		}
	}
}

// finish closes a short last column.
func (c *columns) finish() {
	if c.n > 0 {
		c.close()
	}
}

func (c *columns) close() {
	avg, low, high := math.NaN(), math.NaN(), math.NaN()
	if c.known > 0 {
		avg, low, high = c.sum/float64(c.known), c.low, c.high
	}
	c.avg, c.min, c.max = append(c.avg, avg), append(c.min, low), append(c.max, high)
	if c.sure {
		c.conf = append(c.conf, c.confidence/float64(c.n))
	}
	c.n, c.known, c.sum, c.confidence = 0, 0, 0, 0
}
