package statsd

import (
	"math"
	"math/bits"

	"dalmatiner/internal/codec/floatsum"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/acked"
)

// total is a sum. Integers stay integers as long as their sum has 63 bits; doubles are added
// without the errors of rounding piling up.
type total struct {
	whole int64
	rest  floatsum.Sum
}

// add adds a number as often as a rate says.
func (t *total) add(n number, r rate) {
	if n.isWhole && r.times > 0 {
		if t.addWhole(n.whole, r.times) {
			return
		}
	}
	t.rest.Add(n.float * r.each)
}

// addWhole adds n × times; it is false where that, or the sum, has more than 63 bits.
func (t *total) addWhole(n, times int64) bool {
	size := uint64(n)
	if n < 0 {
		size = -size
	}
	high, low := bits.Mul64(size, uint64(times))
	if high != 0 || low > math.MaxInt64 {
		return false
	}
	product := int64(low)
	if n < 0 {
		product = -product
	}
	sum := t.whole + product
	if (sum > t.whole) != (product > 0) && product != 0 {
		return false
	}
	t.whole = sum
	return true
}

// float returns the sum as a double.
func (t *total) float() float64 {
	if t.rest == (floatsum.Sum{}) {
		return float64(t.whole)
	}
	sum := t.rest
	sum.Add(float64(t.whole))
	return sum.Value()
}

// word returns the sum as a point has it.
func (t *total) word() uint64 {
	if t.rest == (floatsum.Sum{}) {
		return point.FromInt(t.whole)
	}
	return acked.Word(t.float())
}
