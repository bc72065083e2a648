package reduce

import (
	"math"

	"dalmatiner/internal/query/function"
)

// Test says which values a function of thresholds looks for, and what it gives of them: the
// first one, the last one or their number.
type Test struct {
	Below      bool
	Confidence bool // it is compared, not the value
	What       function.Op
}

// Of reports whether a value passes, by its confidence where that is compared.
func (t Test) Of(v, sure, number float64) bool {
	if t.Confidence {
		v = sure
	}
	return t.Below && v < number || !t.Below && v > number
}

var tests = map[function.Op]Test{
	function.FirstAbove:     {What: function.First},
	function.FirstBelow:     {What: function.First, Below: true},
	function.LastAbove:      {What: function.Last},
	function.LastBelow:      {What: function.Last, Below: true},
	function.CountAbove:     {What: function.Count},
	function.CountBelow:     {What: function.Count, Below: true},
	function.FirstAboveConf: {What: function.First, Confidence: true},
	function.FirstBelowConf: {What: function.First, Confidence: true, Below: true},
	function.LastAboveConf:  {What: function.Last, Confidence: true},
	function.LastBelowConf:  {What: function.Last, Confidence: true, Below: true},
	function.CountAboveConf: {What: function.Count, Confidence: true},
	function.CountBelowConf: {What: function.Count, Confidence: true, Below: true},
}

// finder looks for the values that pass a test.
type finder struct {
	Test
	number float64
	value  float64 // the first or last one
	found  int64
}

func (r *finder) Add(v, c []float64) {
	for i, f := range v {
		sure := 0.0
		if c != nil {
			sure = c[i]
		}
		if f != f || !r.Of(f, sure, r.number) {
			continue
		}
		if r.found++; r.found == 1 || r.What == function.Last {
			r.value = f
		}
	}
}

func (r *finder) Close() float64 {
	v := r.value
	if r.What == function.Count {
		v = float64(r.found)
	}
	r.value, r.found = math.NaN(), 0
	return v
}
