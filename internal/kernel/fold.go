package kernel

import "math"

// Fold is what is known of up to four lanes whose values are taken in one after
// the other, without being written anywhere. All arrays are by lane.
type Fold struct {
	// Value and Step are the value and the first difference before the next
	// value; a prediction that does not look at them leaves Step alone.
	Value, Step [Lanes]uint64
	// First is the value that the last call took in first.
	First [Lanes]uint64
	// Least and Most are integers, of FoldBits doubles. Sum is one of integers
	// modulo 2^64, of FoldDecimals and FoldBits a double.
	Least, Most, Sum [Lanes]uint64
}

// NoInts and NoFloats set a lane to what it is before its first value. Least is
// above Most then, and stays so while FoldBits meets nothing but NaN.
func (f *Fold) NoInts(lane int) {
	f.Least[lane], f.Most[lane], f.Sum[lane] = math.MaxInt64, 1<<63, 0
}

// NoFloats is NoInts for FoldBits.
func (f *Fold) NoFloats(lane int) {
	f.Least[lane], f.Most[lane], f.Sum[lane] = math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), 0
}

// Prediction tells how values follow from residuals: Order 0 to 2 is how often
// they are added up, after Base was added to each.
type Prediction struct {
	Order int
	Base  uint64
}

// FoldInts takes in the values of the residuals [from, to) of each lane.
func FoldInts(f *Fold, res *Residuals, p Prediction, from, to int) {
	if checkFold(p, from, to) {
		foldInts(f, res, p, from, to)
	}
}

// FoldDecimals is FoldInts whose sums are those of the float words of the
// quotients of the values, as int64, and scale, added in their order. They are
// right where Least and Most are within ±2^51.
func FoldDecimals(f *Fold, res *Residuals, p Prediction, scale float64, from, to int) {
	if checkFold(p, from, to) {
		foldDecimals(f, res, p, scale, from, to)
	}
}

// FoldBits takes in floats whose words are the values below the marker, less
// shift zeros at the end. Of equal numbers the first counts, NaN only in the sum.
func FoldBits(f *Fold, res *Residuals, p Prediction, shift uint, from, to int) {
	if checkFold(p, from, to) {
		foldBits(f, res, p, shift&63, from, to)
	}
}

// checkFold reports whether there is anything to do.
func checkFold(p Prediction, from, to int) bool {
	if p.Order < 0 || p.Order > 2 || from < 0 || from > to || to > MaxLane {
		panic("kernel: values that no lane has")
	}
	return from < to
}

// next returns the value of a residual of a lane.
func (f *Fold) next(p Prediction, lane int, residual uint64) uint64 {
	x := residual + p.Base
	switch p.Order {
	case 1:
		x += f.Value[lane]
	case 2:
		f.Step[lane] += x
		x = f.Value[lane] + f.Step[lane]
	}
	f.Value[lane] = x
	return x
}

// each calls take for the values of all lanes.
func (f *Fold) each(res *Residuals, p Prediction, from, to int, take func(lane int, x uint64)) {
	for lane := range Lanes {
		for i := from; i < to; i++ {
			x := f.next(p, lane, res[Lanes*i+lane])
			if i == from {
				f.First[lane] = x
			}
			take(lane, x)
		}
	}
}

// extremes takes in an integer.
func (f *Fold) extremes(lane int, x uint64) {
	f.Least[lane] = uint64(min(int64(f.Least[lane]), int64(x)))
	f.Most[lane] = uint64(max(int64(f.Most[lane]), int64(x)))
}

// add takes in a double.
func (f *Fold) add(lane int, v float64) {
	f.Sum[lane] = math.Float64bits(math.Float64frombits(f.Sum[lane]) + v)
}

func foldIntsGo(f *Fold, res *Residuals, p Prediction, from, to int) {
	f.each(res, p, from, to, func(lane int, x uint64) {
		f.extremes(lane, x)
		f.Sum[lane] += x
	})
}

func foldDecimalsGo(f *Fold, res *Residuals, p Prediction, scale float64, from, to int) {
	f.each(res, p, from, to, func(lane int, x uint64) {
		f.extremes(lane, x)
		f.add(lane, math.Float64frombits(Decimal(int64(x), scale)<<1))
	})
}

func foldBitsGo(f *Fold, res *Residuals, p Prediction, shift uint, from, to int) {
	f.each(res, p, from, to, func(lane int, x uint64) {
		v := math.Float64frombits(x << shift << 1)
		if v < math.Float64frombits(f.Least[lane]) {
			f.Least[lane] = math.Float64bits(v)
		}
		if v > math.Float64frombits(f.Most[lane]) {
			f.Most[lane] = math.Float64bits(v)
		}
		f.add(lane, v)
	})
}
