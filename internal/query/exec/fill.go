package exec

import "math"

// fill puts values into gaps, with confidence 0. What is before the range is not known to it: a
// gap before the first value stays, and so does one behind the last value that a line would
// end at.
type fill struct {
	over
	with string // previous, zero or linear; null leaves all as it is

	begun bool
	last  float64
	open  int64 // of linear: gap since the last value, not yet given out
	seen  int64 // inputs
	blank int64 // inputs before the range that are still to come, which it does not look at
}

func newFill(o over, with string) *fill {
	f := &fill{over: o, with: with}
	if with == "previous" || with == "linear" {
		f.blank = o.Before
	}
	return f
}

func (f *fill) next(x *executor, dst block) (block, error) {
	in, err := f.in.pull(x, x.scratch())
	if err != nil {
		return dst, err
	}
	for i, v := range in.v {
		f.seen++
		switch {
		case f.blank > 0:
			f.blank--
			dst = dst.put(math.NaN(), 0, f.Confidence)
		case v == v:
			dst, f.open = line(dst, f.last, v, f.open, f.Confidence), 0
			f.begun, f.last = true, v
			sure := 0.0
			if f.Confidence {
				sure = in.c[i]
			}
			dst = dst.put(v, sure, f.Confidence)
		case f.with == "linear" && f.begun:
			f.open++
		default:
			dst = dst.put(f.instead(), 0, f.Confidence)
		}
	}
	x.release(in)
	if f.seen == f.in.all {
		dst, f.open = gaps(dst, f.open, f.Confidence), 0
	}
	return dst, nil
}

// instead returns what stands in a gap.
func (f *fill) instead() float64 {
	switch {
	case f.with == "zero":
		return 0
	case f.with == "previous" && f.begun:
		return f.last
	}
	return math.NaN()
}

// line appends n values between two, on the line from one to the other.
func line(dst block, from, to float64, n int64, conf bool) block {
	for i := range n {
		dst = dst.put(from+(to-from)*(float64(i+1)/float64(n+1)), 0, conf)
	}
	return dst
}

// gaps appends n gaps.
func gaps(dst block, n int64, conf bool) block {
	for range n {
		dst = dst.put(math.NaN(), 0, conf)
	}
	return dst
}
