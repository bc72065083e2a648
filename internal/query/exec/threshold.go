package exec

import (
	"dalmatiner/internal/query/function"
)

// finder looks for the inputs above or below a threshold.
type finder struct {
	threshold float64
	below     bool
	byConf    bool // the confidence is compared, not the value
	what      function.Op

	value  float64
	own    float64 // confidence of the value
	found  int64   // matches in the window
	passed float64 // sum of the confidences before the match, in scan direction
	steps  float64 // inputs before it
}

// finders is what each function of the kind looks for, as the function that
// is named by function.First, function.Last or function.Count.
var finders = map[function.Op]finder{
	function.FirstAbove:     {what: function.First},
	function.FirstBelow:     {what: function.First, below: true},
	function.LastAbove:      {what: function.Last},
	function.LastBelow:      {what: function.Last, below: true},
	function.CountAbove:     {what: function.Count},
	function.CountBelow:     {what: function.Count, below: true},
	function.FirstAboveConf: {what: function.First, byConf: true},
	function.FirstBelowConf: {what: function.First, byConf: true, below: true},
	function.LastAboveConf:  {what: function.Last, byConf: true},
	function.LastBelowConf:  {what: function.Last, byConf: true, below: true},
	function.CountAboveConf: {what: function.Count, byConf: true},
	function.CountBelowConf: {what: function.Count, byConf: true, below: true},
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
		} else if r.found == 0 || r.what == function.Last {
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
	case r.what == function.Last:
		r.value, r.own, r.passed, r.steps = v, sure, 0, 0
	case r.what == function.First && r.found == 1:
		r.value, r.own = v, sure
	}
}

// close returns the value found; its confidence is its own if confidences are
// compared, else that of what was passed before it.
func (r *finder) close(w *taken) (v, c float64) {
	switch {
	case r.found == 0:
	case r.what == function.Count:
		v, c = float64(r.found), w.mean()
	case r.byConf:
		v, c = r.value, r.own
	default:
		v, c = r.value, r.passed/(r.steps+1)
	}
	*r = finder{threshold: r.threshold, below: r.below, byConf: r.byConf, what: r.what}
	return v, c
}
