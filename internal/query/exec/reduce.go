package exec

import (
	"fmt"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
)

// reducer computes one value from the inputs of a window.
type reducer interface {
	// add takes inputs of the open window, at least one. c is their confidences
	// where the plan has them, else nil.
	add(v, c []float64)

	// close returns the window's value and its confidence, and opens the next.
	close(w *taken) (value, confidence float64)
}

// spanReducer is a reducer that can take the aggregates of spans in place of its
// inputs. Each span has so many slots, a whole window of them or fewer.
type spanReducer interface {
	reducer

	// spans appends the value of each span of a list. carry is the word that is
	// carried into the first.
	spans(dst []float64, list []chunk.Header, carry uint64, slots, size int64) []float64

	// sure returns the confidence of the value of a span.
	sure(h *chunk.Header, slots, size int64) float64
}

// taken is what a window has taken of its inputs.
type taken struct {
	size   int64   // inputs of a whole window
	filled int64   // inputs so far
	sure   float64 // sum of their confidences
}

// share returns the confidence of most aggregates: missing inputs count 0.
func (w *taken) share() float64 { return w.sure / float64(w.size) }

// mean returns the mean confidence of the inputs that are there.
func (w *taken) mean() float64 { return w.sure / float64(w.filled) }

// newReducer returns the reducer of windows of up to most inputs, of which a step is res
// ms.
func newReducer(op *plan.Window, most, res int64) reducer {
	fn := op.Fn
	switch fn {
	case function.Min, function.Max:
		return &extreme{least: fn == function.Min}
	case function.Count, function.Empty:
		return &counted{others: fn == function.Empty}
	case function.First, function.Last:
		return &ends{last: fn == function.Last}
	case function.Percentile:
		return &percentile{p: op.Number, most: most}
	case function.Median:
		return &percentile{p: 0.5, most: most}
	case function.Variance, function.Stddev:
		return &variance{root: fn == function.Stddev}
	case function.Increase:
		return &growth{}
	case function.Rate:
		return &growth{seconds: float64(res) / 1000}
	}
	f, ok := finders[fn]
	if !ok {
		panic(fmt.Sprintf("query: reducing function %d", fn))
	}
	f.threshold = op.Number
	return &f
}
