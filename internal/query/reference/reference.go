// Package reference evaluates queries the slow and obvious way: whole arrays of values and
// confidences, one rule of the language (docs/dql.md) after the other. It exists to be compared
// with the engine and knows no limits. It shares no code with the engine except the parser.
//
// It evaluates expressions of direct and wildcard selectors with all functions, and TOP and
// BOTTOM. The answers of the original (Old.Compat) have files of their own: compat*.go.
package reference

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dalmatiner/internal/query/dql"
)

// Source is what the reference reads.
type Source interface {
	// Find returns the id of a bucket and how many ms its slots have.
	Find(bucket string) (id uint64, resolution int64, err error)

	// Keys returns the keys of a bucket, in any order.
	Keys(bucket uint64) [][]byte

	// Word returns the word of a slot, which is not below 0.
	Word(bucket uint64, key []byte, slot int64) uint64
}

// Series is a series with everything known about it.
type Series struct {
	Values     []float64 // NaN is a gap
	Confidence []float64 // 0 to 1, one per value; 0 at gaps
	Resolution int64     // ms per value

	// Rule R12, of the metrics read for the series. All are 0 with Old.
	Points    int64 // set slots
	Promised  int64 // points that a sender of the same interval without losses has
	LastPoint int64 // time of the last point in unix ms, if HasPoint
	HasPoint  bool
	Ended     bool  // nothing is to be expected of any of the metrics
	Interval  int64 // ms from point to point, 0 when unknown

	Slots int64 // slots read for it, a metric that is read twice counts twice
	Set   int64 // with Old: how many of them are set

	// Scale is the greatest magnitude among the values that the series was
	// computed from: what rounding errors are relative to.
	Scale float64

	hidden bool     // topk or bottomk shows none of its values
	of     identity // of what is computed from one metric
	stars  []string // what those of its pattern stand for

	restart int // with Old: the reads below began anew after so many values

	// The rest is without Old.
	ahead   int       // so many of the values lie before the range
	words   []uint64  // of a series that was read and nothing else: one per value, 0 for NaN
	from    int64     // slot of the first word
	reads   []reading // the metrics read for it, each once
	counted int64     // points, of each metric at most those promised
}

// Coverage returns the share of the expected points that are there.
func (s *Series) Coverage() float64 {
	if s.Promised > 0 {
		return min(1, float64(s.counted)/float64(s.Promised))
	}
	return float64(s.Set) / float64(max(1, s.Slots))
}

// Old asks for the answers of the original.
type Old struct {
	Compat  bool
	Restart int64 // slots from one of its reads of a series to the next
}

// Errors of queries that have no answer.
var (
	// ErrMixedResolutions is returned for a combination of series of different resolutions.
	ErrMixedResolutions = errors.New("mixed resolutions")

	// ErrZero is returned for a division by the constant 0.
	ErrZero = errors.New("division by the constant 0")
)

type evaluator struct {
	src        Source
	start, end int64 // of the range, in ms
	now        int64
	old        Old
	found      bool // a selector has a hit
}

// Evaluate returns the series of every field in order, those of a pattern by
// key, and their values as the engine prints them.
func Evaluate(src Source, text string, now time.Time, old Old) ([]Series, error) {
	parse := dql.Parse
	if old.Compat {
		parse = dql.ParseCompat
	}
	q, err := parse(text)
	if err != nil {
		return nil, err
	}
	if q.Zone != nil {
		return nil, fmt.Errorf("%w: in a time zone", ErrTimes)
	}
	e := evaluator{src: src, old: old, now: now.UnixMilli(), found: old.Compat}
	if err := e.times(&q.Range, e.now); err != nil {
		return nil, err
	}
	list, err := e.fields(q.Fields)
	if err != nil || !e.found {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s Series) bool { return s.hidden })
	if q.Limit != nil {
		list = e.limit(list, q.Limit)
	}
	for i := range list {
		if !old.Compat {
			list[i].describe(min(e.end, e.now))
		}
	}
	return list, nil
}

func (e *evaluator) fields(fields []dql.Field) (list []Series, err error) {
	for _, f := range fields {
		var s []Series
		if e.old.Compat {
			s, err = e.evalCompat(f.Expr)
		} else {
			s, err = e.eval(f.Expr, nothing)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, s...)
	}
	return list, nil
}

// limit is TOP and BOTTOM (rule R11).
func (e *evaluator) limit(list []Series, l *dql.Limit) []Series {
	if int64(len(list)) <= l.N {
		return list
	}
	var numbers []float64
	for _, a := range l.By.Args {
		numbers = append(numbers, a.(*dql.Number).Value)
	}
	rank := func(s Series) float64 {
		switch {
		case len(s.Values) == 0:
			return math.NaN()
		case e.old.Compat:
			return windowCompat(l.By.Name, s, s.Resolution*int64(len(s.Values)), numbers).Values[0]
		}
		return windows(l.By.Name, s, len(s.Values), 0, numbers).Values[0]
	}
	slices.SortStableFunc(list, func(a, b Series) int {
		va, vb := rank(a), rank(b)
		switch {
		case math.IsNaN(va) && math.IsNaN(vb) || va == vb:
			return 0
		case math.IsNaN(vb) || l.Bottom && va < vb || !l.Bottom && va > vb:
			return -1
		}
		return 1
	})
	return list[:l.N]
}

// keys returns what a selector reads, in order.
func (e *evaluator) keys(of *dql.Select, bucket uint64) (keys [][]byte) {
	for _, key := range e.src.Keys(bucket) {
		matched := of.Metric.Parts != nil && match(of.Metric.Parts, key)
		e.found = e.found || bytes.Equal(key, of.Metric.Key) || matched
		if matched || e.old.Compat && of.Metric.Parts != nil && below(of.Metric.Parts, key) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	if of.Metric.Parts == nil {
		keys = [][]byte{of.Metric.Key}
	}
	return keys
}

func match(pattern []dql.Part, key []byte) bool {
	parts := partsOf(key)
	if len(parts) != len(pattern) {
		return false
	}
	for i, p := range pattern {
		if !p.Any && p.Text != parts[i] {
			return false
		}
	}
	return true
}

// slot returns the slot of a time.
func slot(ms, resolution int64) int64 {
	return int64(math.Floor(float64(ms) / float64(resolution)))
}

// arguments are those of a call, by their kind.
type arguments struct {
	series  []dql.Expr
	numbers []float64
	span    int64 // ms
	word    string
}

func argumentsOf(c *dql.Call) (a arguments, err error) {
	for _, x := range c.Args {
		switch n := x.(type) {
		case *dql.Duration:
			if a.span, err = millis(n); err != nil {
				return a, err
			}
		case *dql.Number:
			a.numbers = append(a.numbers, n.Value)
		case *dql.Word:
			a.word = n.Text
		default:
			a.series = append(a.series, x)
		}
	}
	return a, nil
}

// transforms are the functions that give as many values as they take.
var transforms = map[string]bool{
	"confidence": true, "abs": true, "sqrt_scale": true, "log10_scale": true, "derivate": true,
	"increase": true, "rate": true, "mavg": true, "ewma": true, "fill": true,
	"replace_below_confidence": true,
}

// moving are those of them that take a span.
var moving = map[string]bool{"mavg": true, "ewma": true}

func (s *Series) rescale() {
	for _, v := range s.Values {
		if !math.IsNaN(v) {
			s.Scale = max(s.Scale, math.Abs(v))
		}
	}
}
