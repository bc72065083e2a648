package query

// finder looks for the inputs above or below a threshold.
type finder struct {
	threshold float64
	below     bool
	byConf    bool // the confidence is compared, not the value
	what      opFunc

	value  float64
	own    float64 // confidence of the value
	found  int64   // matches in the window
	passed float64 // sum of the confidences before the match, in scan direction
	steps  float64 // inputs before it
}

// finders is what each function of the kind looks for, as the function that
// is named by fnFirst, fnLast or fnCount.
var finders = map[opFunc]finder{
	fnFirstAbove:     {what: fnFirst},
	fnFirstBelow:     {what: fnFirst, below: true},
	fnLastAbove:      {what: fnLast},
	fnLastBelow:      {what: fnLast, below: true},
	fnCountAbove:     {what: fnCount},
	fnCountBelow:     {what: fnCount, below: true},
	fnFirstAboveConf: {what: fnFirst, byConf: true},
	fnFirstBelowConf: {what: fnFirst, byConf: true, below: true},
	fnLastAboveConf:  {what: fnLast, byConf: true},
	fnLastBelowConf:  {what: fnLast, byConf: true, below: true},
	fnCountAboveConf: {what: fnCount, byConf: true},
	fnCountBelowConf: {what: fnCount, byConf: true, below: true},
}

func (r *finder) add(v, c []float64) {
	for i, f := range v {
		sure := 0.0
		if c != nil {
			sure = c[i]
		}
		tested := f
		if r.byConf {
			tested = sure
		}
		if r.below && tested < r.threshold || !r.below && tested > r.threshold {
			r.match(f, sure)
		} else if r.found == 0 || r.what == fnLast {
			r.passed += sure
			r.steps++
		}
	}
}

// match takes an input that was looked for. What is passed before the first
// one was passed already; what is passed before the last one, coming from the
// end, is still to come.
func (r *finder) match(v, sure float64) {
	r.found++
	switch {
	case r.what == fnLast:
		r.value, r.own, r.passed, r.steps = v, sure, 0, 0
	case r.what == fnFirst && r.found == 1:
		r.value, r.own = v, sure
	}
}

// close returns the value found; its confidence is its own if confidences are
// compared, else that of what was passed before it.
func (r *finder) close(w *window) (v, c float64) {
	switch {
	case r.found == 0:
	case r.what == fnCount:
		v, c = float64(r.found), w.mean()
	case r.byConf:
		v, c = r.value, r.own
	default:
		v, c = r.value, r.passed/(r.steps+1)
	}
	*r = finder{threshold: r.threshold, below: r.below, byConf: r.byConf, what: r.what}
	return v, c
}
