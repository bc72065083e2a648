// Package reduce computes one value from those in a span: the functions over time of the
// language (docs/dql.md).
package reduce

import (
	"fmt"
	"math"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/stats"
)

// Reducer computes a value from the outputs of a span. NaN stands for a gap, and is passed over.
type Reducer interface {
	// Add takes outputs of the open span in their order, and their confidences where the
	// function looks at them.
	Add(v, c []float64)

	// Close returns the value of the span, NaN where it has none, and opens the next one.
	Close() float64
}

// Over is what a reducer is for.
type Over struct {
	Fn     function.Op
	Number float64 // argument of the function
	Most   int64   // outputs in a span

	Seconds float64 // of an output
	Apart   int64   // outputs from a value of a counter to the next one in another span, at most
}

// New returns the reducer of a function.
func New(of Over) Reducer {
	switch fn := of.Fn; fn {
	case function.Sum, function.Avg:
		return &total{mean: fn == function.Avg}
	case function.Min, function.Max:
		return NewExtreme(fn)
	case function.Count:
		return &counted{}
	case function.Empty:
		return &counted{others: true}
	case function.First, function.Last:
		return &ends{last: fn == function.Last, v: math.NaN()}
	case function.Percentile:
		return NewPercentile(of.Number, of.Most)
	case function.Median:
		return NewPercentile(0.5, of.Most)
	case function.Variance, function.Stddev:
		return &variance{root: fn == function.Stddev}
	case function.Increase, function.Rate:
		return &Growth{rate: fn == function.Rate, seconds: of.Seconds, apart: of.Apart}
	}
	test, ok := tests[of.Fn]
	if !ok {
		panic(fmt.Sprintf("query: reducing function %d", of.Fn))
	}
	return &finder{Test: test, number: of.Number, value: math.NaN()}
}

// total is a sum, or its mean.
type total struct {
	mean bool
	sum  stats.Sum
}

func (r *total) Add(v, _ []float64) {
	for _, f := range v {
		r.sum.Add(f)
	}
}

func (r *total) Close() float64 {
	v := math.NaN()
	switch {
	case r.sum.Count() == 0:
	case r.mean:
		v = r.sum.Mean()
	default:
		v = r.sum.Value()
	}
	r.sum = stats.Sum{}
	return v
}

// Extreme is the least or greatest value; of equal ones the first stays.
type Extreme struct {
	least bool
	v     float64
}

// NewExtreme returns the reducer of min or max.
func NewExtreme(fn function.Op) *Extreme {
	return &Extreme{least: fn == function.Min, v: math.NaN()}
}

// Add implements Reducer.
func (r *Extreme) Add(v, _ []float64) {
	best := r.v
	for _, f := range v {
		if r.least && f < best || !r.least && f > best || best != best {
			best = f
		}
	}
	r.v = best
}

// Close implements Reducer.
func (r *Extreme) Close() float64 {
	v := r.v
	r.v = math.NaN()
	return v
}

// counted counts the values, or the gaps.
type counted struct {
	others bool
	n      int64
}

func (r *counted) Add(v, _ []float64) {
	for _, f := range v {
		if (f == f) != r.others {
			r.n++
		}
	}
}

func (r *counted) Close() float64 {
	n := r.n
	r.n = 0
	return float64(n)
}

// ends is the first or the last value.
type ends struct {
	last bool
	v    float64
}

func (r *ends) Add(v, _ []float64) {
	if !r.last {
		for i := 0; i < len(v) && r.v != r.v; i++ {
			r.v = v[i]
		}
		return
	}
	for i := len(v) - 1; i >= 0; i-- {
		if v[i] == v[i] {
			r.v = v[i]
			return
		}
	}
}

func (r *ends) Close() float64 {
	v := r.v
	r.v = math.NaN()
	return v
}

// Percentile holds the values of a span and takes the one at ⌊(n−1)·p⌋ of n sorted ones.
type Percentile struct {
	p    float64
	most int64
	held []float64
}

// NewPercentile returns the reducer of a percentile, from 0 to 1, over so many values.
func NewPercentile(p float64, most int64) *Percentile { return &Percentile{p: p, most: most} }

// Add implements Reducer.
func (r *Percentile) Add(v, _ []float64) {
	if r.held == nil {
		r.held = make([]float64, 0, r.most)
	}
	for _, f := range v {
		if f == f {
			r.held = append(r.held, f)
		}
	}
}

// Close implements Reducer.
func (r *Percentile) Close() float64 {
	v := stats.Quantile(r.held, r.p)
	r.held = r.held[:0]
	return v
}

// variance is the population variance. It is carried value by value (Welford), which does
// not cancel as a sum of squares does, and does not depend on how values come.
type variance struct {
	root         bool // of it: the standard deviation
	n, mean, dev float64
}

func (r *variance) Add(v, _ []float64) {
	n, mean, dev := r.n, r.mean, r.dev
	for _, f := range v {
		if f != f {
			continue
		}
		n++
		delta := f - mean
		mean += delta / n
		dev += delta * (f - mean)
	}
	r.n, r.mean, r.dev = n, mean, dev
}

func (r *variance) Close() float64 {
	v := r.dev / r.n // not a number without a value
	if r.root {
		v = math.Sqrt(v)
	}
	r.n, r.mean, r.dev = 0, 0, 0
	return v
}
