// Package reference evaluates queries the slow and obvious way: whole arrays
// of values and confidences, one rule of the language's tables (docs/dql.md)
// after the other. It exists to be compared with the engine and knows no limits. It shares no code with the engine but the parsing of the text.
//
// It evaluates expressions of direct and wildcard selectors with all functions,
// and TOP and BOTTOM.
package reference

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dalmatiner/internal/dql"
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
	Values     []float64
	Confidence []float64 // 0 to 1, one per value
	Known      []bool    // one per value: not before the first point, or known without one
	Resolution int64     // ms per value
	Set, Slots int64     // slots read for it, and how many of them are set

	// Scale is the greatest magnitude among the values that the series was
	// computed from: what rounding errors are relative to.
	Scale float64

	hidden  bool // topk or bottomk shows none of its values
	restart int  // with Old: the reads below began anew after so many values

	// Of a series that was read and nothing else, without Old: its words, and the
	// first slot.
	words []uint64
	from  int64

	of identity // of what is computed from one metric

	stars []string // what those of its pattern stand for
}

// Old asks for the answers of the original.
type Old struct {
	Compat  bool
	Restart int64 // slots from one of its reads of a series to the next
}

// ErrMixedResolutions is returned for a combination of series of different
// resolutions.
var ErrMixedResolutions = errors.New("mixed resolutions")

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
	e := evaluator{src: src, old: old}
	if err := e.times(&q.Range, now.UnixMilli()); err != nil {
		return nil, err
	}
	var list []Series
	e.found = old.Compat
	for _, f := range q.Fields {
		s, err := e.eval(f.Expr)
		if err != nil {
			return nil, err
		}
		list = append(list, s...)
	}
	if !e.found {
		return nil, nil
	}
	list = slices.DeleteFunc(list, func(s Series) bool { return s.hidden })
	if q.Limit != nil {
		list = limit(list, q.Limit)
	}
	return list, nil
}

type evaluator struct {
	src        Source
	start, end int64
	old        Old
	found      bool // a selector has a hit
}

func (e *evaluator) eval(x dql.Expr) ([]Series, error) {
	switch n := x.(type) {
	case *dql.Select:
		return e.read(n, 0)
	case *dql.Shift:
		by, err := millis(n.By)
		if err != nil {
			return nil, err
		}
		return e.read(n.Of.(*dql.Select), by)
	case *dql.Binary:
		return e.binary(n)
	case *dql.Call:
		return e.call(n)
	}
	return nil, fmt.Errorf("the reference does not know %T", x)
}

// evalAll returns the series of all expressions in one list.
func (e *evaluator) evalAll(list ...dql.Expr) ([]Series, error) {
	var all []Series
	for _, x := range list {
		s, err := e.eval(x)
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	return all, nil
}

func (e *evaluator) binary(b *dql.Binary) ([]Series, error) {
	if n, ok := b.R.(*dql.Number); ok {
		in, err := e.eval(b.L)
		return mapAll(in, func(v float64) float64 { return operate(b.Op, v, n.Value) }), err
	}
	if n, ok := b.L.(*dql.Number); ok {
		in, err := e.eval(b.R)
		return mapAll(in, func(v float64) float64 { return operate(b.Op, n.Value, v) }), err
	}
	if !e.old.Compat {
		return e.pairs(b)
	}
	in, err := e.evalAll(b.L, b.R)
	if err != nil {
		return nil, err
	}
	return e.combine(map[byte]string{'+': "sum", '-': "diff", '*': "product", '/': "quotient"}[b.Op], in, 0)
}

// operate computes l op r; division by 0 counts as division by 1.
func operate(op byte, l, r float64) float64 {
	switch op {
	case '+':
		return l + r
	case '-':
		return l - r
	case '*':
		return l * r
	}
	if r == 0 {
		return l
	}
	return l / r
}

// call applies a function. Histograms are evaluated with the number that is
// asked of them.
func (e *evaluator) call(c *dql.Call) ([]Series, error) {
	if h, ok := c.Args[0].(*dql.Call); ok && h.Name == "histogram" {
		return e.histogram(c, h)
	}
	var args []dql.Expr
	var numbers []float64
	span, word := int64(0), ""
	for _, a := range c.Args {
		switch n := a.(type) {
		case *dql.Duration:
			ms, err := millis(n)
			if err != nil {
				return nil, err
			}
			span = ms
		case *dql.Number:
			numbers = append(numbers, n.Value)
		case *dql.Word:
			word = n.Text
		default:
			args = append(args, a)
		}
	}
	in, err := e.evalAll(args...)
	if err != nil {
		return nil, err
	}
	if !isRead(args) {
		for i := range in {
			in[i].words = nil
		}
	}
	switch {
	case transforms[c.Name] && (span == 0 || moving[c.Name]):
		for i, s := range in {
			in[i] = transform(c.Name, s, numbers, span, word)
			in[i].stars = s.stars
		}
		return in, nil
	case span != 0:
		if e.old.Compat && c.Name == "percentile" {
			if c.Args[1].(*dql.Number).Whole {
				numbers[0] *= 0.5
			}
			if numbers[0] < 0 || numbers[0] > 1 {
				for i, s := range in {
					in[i] = empty(s, span)
					in[i].stars = s.stars
				}
				return in, nil
			}
		}
		for i, s := range in {
			in[i] = window(c.Name, s, span, numbers)
			in[i].stars = s.stars
		}
		return in, nil
	case c.Name == "topk" || c.Name == "bottomk":
		return topk(c.Name, in, int(numbers[0]))
	case c.Name == "quantile":
		return e.combine(c.Name, in, numbers[0])
	case len(numbers) == 1:
		return mapAll(in, func(v float64) float64 { return arithmetic(c.Name, v, numbers[0]) }), nil
	}
	return e.combine(c.Name, in, 0)
}

// isRead reports whether an argument is a read of series.
func isRead(args []dql.Expr) bool {
	switch args[0].(type) {
	case *dql.Select, *dql.Shift:
		return len(args) == 1
	}
	return false
}

func arithmetic(name string, v, c float64) float64 {
	switch name {
	case "min":
		return clamp(v, c, func(a, b float64) bool { return a > b })
	case "max":
		return clamp(v, c, func(a, b float64) bool { return a < b })
	}
	return operate(map[string]byte{"add": '+', "sub": '-', "mul": '*', "multiply": '*', "divide": '/'}[name], v, c)
}

func mapAll(in []Series, f func(float64) float64) []Series {
	for i := range in {
		for j, v := range in[i].Values {
			in[i].Values[j] = f(v)
		}
		in[i].hidden, in[i].words = false, nil
		in[i].rescale()
	}
	return in
}

// clamp returns c where v is beyond it.
func clamp(v, c float64, beyond func(a, b float64) bool) float64 {
	if beyond(v, c) {
		return c
	}
	return v
}

func (s *Series) rescale() {
	for _, v := range s.Values {
		if !math.IsNaN(v) {
			s.Scale = max(s.Scale, math.Abs(v))
		}
	}
}

func (e *evaluator) read(of *dql.Select, shift int64) ([]Series, error) {
	bucket, resolution, err := e.src.Find(of.Bucket)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
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
	var list []Series
	from, to := e.start-shift, e.end-shift
	if e.old.Compat {
		from, to = max(1, from), max(1, to)
	}
	from, to = int64(math.Floor(float64(from)/float64(resolution))), int64(math.Floor(float64(to)/float64(resolution)))
	for _, key := range keys {
		words := make([]uint64, to-from)
		for i := max(0, -from); i < to-from; i++ {
			words[i] = e.src.Word(bucket, key, from+i)
		}
		s := e.realize(words, resolution)
		s.of = identityOf(bucket, key)
		s.stars = standFor(of.Metric.Parts, key)
		if !e.old.Compat {
			s.words, s.from = words, from
		}
		list = append(list, s)
	}
	return list, nil
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

// realize fills gaps. The original reads parts, of which it loses the last
// slot.
func (e *evaluator) realize(words []uint64, resolution int64) Series {
	if !e.old.Compat {
		return realize(words, resolution)
	}
	all := Series{Resolution: resolution, restart: int(e.old.Restart) - 1, Slots: 0}
	for len(words) > 0 {
		n := min(len(words), all.restart)
		s := realize(words[:n], resolution)
		all.Values, all.Confidence = append(all.Values, s.Values...), append(all.Confidence, s.Confidence...)
		all.Known = append(all.Known, s.Known...)
		all.Set, all.Slots, all.Scale = all.Set+s.Set, all.Slots+s.Slots, max(all.Scale, s.Scale)
		words = words[min(len(words), n+1):]
	}
	return all
}

// below reports whether a key begins with what stands before the first * of a
// pattern.
func below(pattern []dql.Part, key []byte) bool {
	parts := partsOf(key)
	for i, p := range pattern {
		switch {
		case p.Any:
			return true
		case i >= len(parts) || parts[i] != p.Text:
			return false
		}
	}
	return false
}

// realize fills gaps: a gap is the last value with confidence 0, a leading
// gap the first one, nothing at all is 0.
func realize(words []uint64, resolution int64) Series {
	s := Series{Resolution: resolution, Slots: int64(len(words))}
	last := 0.0
	for _, w := range words {
		if w != unset {
			last = number(w)
			break
		}
	}
	for _, w := range words {
		sure := 0.0
		if w != unset {
			last, sure = number(w), 1
			s.Set++
		}
		s.Values = append(s.Values, last)
		s.Confidence = append(s.Confidence, sure)
		s.Known = append(s.Known, s.Set > 0)
	}
	s.rescale()
	return s
}
