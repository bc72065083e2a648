package plan

import (
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/source"
)

// Node is an operator of a plan. Equal expressions of a query are one node.
type Node struct {
	Op         Op
	ID         int   // position in Plan.Nodes
	Resolution int64 // ms per output, of those of a Calendar about
	Values     int64 // outputs in all
	First      int64 // unix ms at which the first output of the range begins
	Before     int64 // the first so many of them are before the range, for those who look back
	Form       int   // nodes of equal form complete equally many outputs each round
	// Restart is after how many outputs the reads below began anew, as the
	// original's do; 0 = never.
	Restart    int64
	Late       bool // outputs may be held back until the end and come at once
	Confidence bool // the confidences of its outputs are wanted
	Uses       int  // nodes and results that read it
	Inputs     []*Node
	Calendar   *Calendar // when the outputs begin, where they are not Resolution apart; else nil
	What       string    // its name for EXPLAIN, if that is asked for

	slotwise bool     // its outputs are wanted by something else than windows over spans
	firm     bool     // its outputs before the range are needed, and not only to hold values
	marked   bool     // needConfidence was here
	one      [1]*Node // Inputs, where there is one
}

// Op is what a node computes: one of the types of this file.
type Op any

// Read reads one series: a slot that is set is its value, any other a gap. With compat gaps are
// filled: a gap repeats the value before it, a gap at the start of the range takes the first
// value in the range, and a range without values is all 0.
type Read struct {
	Series     source.Series
	Bucket     string // its name
	Key        []byte
	Shift      int64 // ms into the past
	From, Past int64 // slots of the range
	Oldest     int64 // slots before this one cannot be set
	Events     bool  // its points are numbers of events; then Key is empty

	Spans []*Spans // by which it is read, each of its size; then its slots are not
	Sums  []Sum    // that are added up as its slots are read
}

// Pushed reports whether nothing but spans of the series is read.
func (r *Read) Pushed() bool { return len(r.Spans) > 0 }

// Spans are stretches of equal length of a read, of which only aggregates are wanted.
type Spans struct {
	Read    *Node
	Size    int64   // slots
	Bounds  []int64 // as of Window
	Before  int64   // slots before the range that spans are made of, too
	Spared  bool    // those spans are needed only where one of the first in the range has no value
	Off     int64   // slots that the first span lacks at its begin
	Windows []*Node // that take them
	Roots   []int   // whose columns take them
	Counts  bool    // others over the same read do not count its set slots
}

// Sum is what a read adds up of its slots for a window or for columns right above it.
// Values would not do: a float sum depends on where in its chunk a slot lies, and which
// values are integers, whose sums are exact.
type Sum struct {
	Size   int64   // slots
	Bounds []int64 // as of Window
	Before int64   // slots before the range that are added up, too
	Off    int64   // slots that the first one lacks at its begin
	Window *Node   // nil for columns
	Root   int     // whose columns take it, without a window
}

// Operators of one input.
type (
	// Scalar computes with a constant, value by value.
	Scalar struct {
		Fn       function.Op
		Constant float64
	}
	// Map computes value by value without one.
	Map struct{ Fn function.Op }
	// Replace puts a constant in place of values with little confidence.
	Replace struct{ Threshold, With float64 }
	// Step computes from each value and the one before it.
	Step struct{ Fn function.Op }
	// Fill puts values into gaps: previous, null, zero or linear.
	Fill struct{ With string }
	// Nothing is a series without values.
	Nothing struct{}
	// Confidence gives the confidences as values.
	Confidence struct{}
	// MovingAvg is the mean of each value and those before it within Size.
	MovingAvg struct{ Size int64 }
	// Ewma is an exponentially weighted mean. With a Span, in ms, the weight of a value is that
	// of the time since the value before it.
	Ewma struct {
		Alpha float64
		Span  int64
	}
	// Window gives one value per Size inputs.
	Window struct {
		Fn     function.Op
		Number float64 // argument
		Size   int64
		// Bounds are the first inputs of windows of unequal length, and behind them the number
		// of inputs. Size is that of the longest one then. They are nil where all have Size.
		Bounds []int64
		// At most one of these: values come from spans of the read below, or from sums
		// that it adds up, and not from its outputs.
		Spans, Sums bool
	}
	// Histogram counts Size inputs into an HDR histogram, and gives what is asked of it
	// in turns.
	Histogram struct {
		Highest int64
		Digits  int
		Size    int64
		Asked   []Statistic
	}
	// PickStatistic takes one of the numbers of a histogram.
	PickStatistic struct{ Index int } // in Histogram.Asked
)

// Statistic is a number out of a histogram.
type Statistic struct {
	Fn         function.Op
	Percentile float64 // 0 to 100
}

// Operators of many inputs.
type (
	// Combine makes one series from several, value by value in their order.
	Combine struct {
		Fn      function.Op
		Aligned bool      // inputs become complete in step
		Strict  bool      // of operators and their functions: no value where an input has none
		Weights []float64 // of the confidences, with sum 1; nil for the plain mean
		Splits  []uint8   // of each input, where they are joined as a tree; nil for one after the other
	}
	// Across makes one series where each output needs all inputs at once: a quantile, or
	// the k-th greatest or least value.
	Across struct {
		Fn       function.Op
		Quantile float64
		Rank     int // from 1
	}
	// Pick shows the values of its first input that are within a threshold, the second.
	Pick struct{ Fn function.Op }
)

// needConfidence marks the node, and what it reads, as needing confidences where want is
// set or an operator on the way uses them: with compat more of them do.
func (n *Node) needConfidence(want, compat bool) {
	switch op := n.Op.(type) {
	case *Histogram:
		n.ask(false, false, compat)
	case *Nothing:
		n.ask(want, false, compat)
	case *Pick:
		if n.enter(want) {
			n.Inputs[0].needConfidence(want, compat)
			n.Inputs[1].needConfidence(false, compat)
		}
	case *Replace, *Confidence:
		n.ask(want, true, compat)
	case *Fill:
		n.ask(want, want || compat, compat)
	case *Window:
		n.ask(want, want || op.Fn.ReadsConfidence(compat), compat)
	default:
		n.ask(want, want, compat)
	}
}

// ask marks the node, and asks its inputs for confidences if below is set.
func (n *Node) ask(want, below, compat bool) {
	if n.enter(want) {
		for _, in := range n.Inputs {
			in.needConfidence(below, compat)
		}
	}
}

// enter reports whether needConfidence has to go on below the node.
func (n *Node) enter(want bool) bool {
	if n.marked && (n.Confidence || !want) {
		return false
	}
	n.marked = true
	n.Confidence = n.Confidence || want
	return true
}
