package plan

import "dalmatiner/internal/codec/chunk"

// MaxWidth is the most columns that Options.Width may ask for: more than any
// screen has.
const MaxWidth = 16384

// Columns are what the values of a result are reduced to for a chart: as many as fit into
// a width with equal whole numbers of values.
type Columns struct {
	Step  int64  // values per column; the last one may have fewer
	Off   int64  // values that the first one lacks at its begin
	Unit  int64  // that step and begin are multiples of; 0 = they are not
	First int64  // slot that the first one begins at, where they have a unit
	Spans *Spans // that they come from; nil where they take values
}

// newColumns returns the columns of a series of n values.
func newColumns(n, width int64) *Columns {
	return &Columns{Step: max(1, (n+width-1)/width)}
}

// Count returns how many columns n values have.
func (c *Columns) Count(n int64) int64 {
	if n == 0 {
		return 0
	}
	return (n + c.Off + c.Step - 1) / c.Step
}

// units are the slots of what the store keeps aggregates of, the largest first:
// 120, 10 and single chunks.
var units = [...]int64{120 * chunk.Slots, 10 * chunk.Slots, chunk.Slots}

// align makes columns of slots begin at multiples of their length where that is
// at least two of a unit. Then they are whole units whose aggregates need no reading of
// what is below. There are fewer of them by it, by a third at most. A range that begins
// before 1970 is left as it is: two columns would have to meet there.
func (c *Columns) align(first, n, width int64) {
	if first < 0 {
		return
	}
	for _, u := range units {
		if c.Step < 2*u {
			continue
		}
		c.Unit, c.Step = u, (c.Step+u-1)/u*u
		for c.Off = first % c.Step; c.Count(n) > width; c.Off = first % c.Step {
			c.Step += u
		}
		c.First = first - c.Off
		return
	}
}
