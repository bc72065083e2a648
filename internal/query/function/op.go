package function

// AddsUp reports whether a window of the function is a sum, or the mean of one.
func (o Op) AddsUp() bool { return o == Sum || o == Avg }

// OverSpans reports whether a window of the function may take the aggregates of its slots
// in place of their values.
func (o Op) OverSpans() bool {
	switch o {
	case Sum, Avg, Min, Max, Count, Empty, First, Last, Increase, Rate:
		return true
	}
	return false
}

// ReadsConfidence reports whether a window of the function looks at the confidences of its
// inputs. With compat a gap is told by its confidence.
func (o Op) ReadsConfidence(compat bool) bool {
	switch o {
	case Count, Empty:
		return compat
	case FirstAboveConf, FirstBelowConf, LastAboveConf, LastBelowConf, CountAboveConf, CountBelowConf:
		return true
	}
	return false
}
