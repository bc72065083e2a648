package kernel

import (
	"math"

	"dalmatiner/internal/codec/floatsum"
)

// Fold is what is known of lanes whose values are taken in one after the other,
// without being written anywhere. All arrays are by lane.
type Fold struct {
	// Value and Step are the value and the first difference before the next
	// value; a prediction that does not look at them leaves Step alone.
	Value, Step [Lanes]uint64
	// First is the value that the last call took in first.
	First [Lanes]uint64
	// Least and Most are integers, of FoldBits doubles. Sum is one of integers
	// modulo 2^64; of FoldDecimals and FoldBits it and Rest are the two doubles of
	// a floatsum.Sum.
	Least, Most, Sum, Rest [Lanes]uint64
}

// FloatSum returns the sum of the floats of a lane.
func (f *Fold) FloatSum(lane int) float64 { return f.floats(lane).Value() }

func (f *Fold) floats(lane int) floatsum.Sum {
	return floatsum.Sum{Float: math.Float64frombits(f.Sum[lane]),
		Rest: math.Float64frombits(f.Rest[lane])}
}

func (f *Fold) setFloats(lane int, s floatsum.Sum) {
	f.Sum[lane], f.Rest[lane] = math.Float64bits(s.Float), math.Float64bits(s.Rest)
}

// What a lane is before its first value. Least is above Most then, and stays so
// while FoldBits meets nothing but NaN.
var (
	noLeast, noMost     = everyLane(math.MaxInt64), everyLane(1 << 63)
	noLowest, noHighest = everyLane(math.Float64bits(math.Inf(1))),
		everyLane(math.Float64bits(math.Inf(-1)))
)

func everyLane(v uint64) (all [Lanes]uint64) {
	for l := range all {
		all[l] = v
	}
	return all
}

// NoInts and NoFloats set a lane to what it is before its first value, the latter
// for FoldBits.
func (f *Fold) NoInts(lane int) {
	f.Least[lane], f.Most[lane], f.Sum[lane], f.Rest[lane] = noLeast[0], noMost[0], 0, 0
}

// NoFloats is NoInts for FoldBits.
func (f *Fold) NoFloats(lane int) {
	f.Least[lane], f.Most[lane], f.Sum[lane], f.Rest[lane] = noLowest[0], noHighest[0], 0, 0
}

// AllNoInts and AllNoFloats do it to all lanes.
func (f *Fold) AllNoInts() {
	f.Least, f.Most, f.Sum, f.Rest = noLeast, noMost, [Lanes]uint64{}, [Lanes]uint64{}
}

// AllNoFloats is AllNoInts for FoldBits.
func (f *Fold) AllNoFloats() {
	f.Least, f.Most, f.Sum, f.Rest = noLowest, noHighest, [Lanes]uint64{}, [Lanes]uint64{}
}

// Prediction tells how values follow from residuals: Order 0 to 2 is how often
// they are added up, after Base was added to each.
type Prediction struct {
	Order int
	Base  uint64
}

// FoldInts takes in the values of the residuals [from, to) of each of the first
// lanes, 1 to 12. What becomes of the others is not defined.
func FoldInts(f *Fold, res *Residuals, p Prediction, lanes, from, to int) {
	if checkFold(p, lanes, from, to) {
		foldInts(f, res, p, lanes, from, to)
	}
}

// FoldDecimals is FoldInts whose sums are those of the floats that stand for the values, as int64,
// added in their order by package floatsum. They are right where Least and Most are within ±2^51.
func FoldDecimals(f *Fold, res *Residuals, p Prediction, q Quotient, lanes, from, to int) {
	if checkFold(p, lanes, from, to) {
		foldDecimals(f, res, p, q, lanes, from, to)
	}
}

// FoldBits takes in floats, of whose words the values are what Bits makes them of. Of equal
// numbers the first counts, NaN only in the sum.
func FoldBits(f *Fold, res *Residuals, p Prediction, shift uint, lanes, from, to int) {
	if checkFold(p, lanes, from, to) {
		foldBits(f, res, p, shift&63, lanes, from, to)
	}
}

// checkFold reports whether there is anything to do.
func checkFold(p Prediction, lanes, from, to int) bool {
	if p.Order < 0 || p.Order > 2 || lanes < 1 || lanes > Lanes || from < 0 || from > to ||
		to > MaxLane {
		panic("kernel: values that no lane has")
	}
	return from < to
}

// values predicts the values of the residuals [from, to) of a lane, at least one.
func (f *Fold) values(buf *[MaxLane]uint64, res *Residuals, p Prediction, lane, from,
	to int) []uint64 {
	v, in := buf[:to-from], res[Lanes*from+lane:]
	x, d := f.Value[lane], f.Step[lane]
	switch p.Order {
	case 0:
		for i := range v {
			v[i] = in[Lanes*i] + p.Base
		}
	case 1:
		for i := range v {
			x += in[Lanes*i] + p.Base
			v[i] = x
		}
	case 2:
		for i := range v {
			d += in[Lanes*i] + p.Base
			x += d
			v[i] = x
		}
	}
	f.First[lane], f.Value[lane], f.Step[lane] = v[0], v[len(v)-1], d
	return v
}

// extremes takes in the integers of a lane.
func (f *Fold) extremes(lane int, v []uint64) {
	least, most := int64(f.Least[lane]), int64(f.Most[lane])
	for _, x := range v {
		least, most = min(least, int64(x)), max(most, int64(x))
	}
	f.Least[lane], f.Most[lane] = uint64(least), uint64(most)
}

func foldIntsGo(f *Fold, res *Residuals, p Prediction, lanes, from, to int) {
	var buf [MaxLane]uint64
	for lane := range lanes {
		v := f.values(&buf, res, p, lane, from, to)
		f.extremes(lane, v)
		sum := f.Sum[lane]
		for _, x := range v {
			sum += x
		}
		f.Sum[lane] = sum
	}
}

func foldDecimalsGo(f *Fold, res *Residuals, p Prediction, q Quotient, lanes, from, to int) {
	var buf [MaxLane]uint64
	for lane := range lanes {
		v := f.values(&buf, res, p, lane, from, to)
		f.extremes(lane, v)
		sum := f.floats(lane)
		for _, x := range v {
			sum.Add(math.Float64frombits(q.bits(int64(x))))
		}
		f.setFloats(lane, sum)
	}
}

func foldBitsGo(f *Fold, res *Residuals, p Prediction, shift uint, lanes, from, to int) {
	var buf [MaxLane]uint64
	for lane := range lanes {
		least, most := math.Float64frombits(f.Least[lane]), math.Float64frombits(f.Most[lane])
		sum := f.floats(lane)
		for _, x := range f.values(&buf, res, p, lane, from, to) {
			v := math.Float64frombits(sendable(x << shift))
			if v < least {
				least = v
			}
			if v > most {
				most = v
			}
			sum.Add(v)
		}
		f.Least[lane], f.Most[lane] = math.Float64bits(least), math.Float64bits(most)
		f.setFloats(lane, sum)
	}
}
