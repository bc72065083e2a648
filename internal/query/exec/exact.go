package exec

import (
	"slices"

	"dalmatiner/internal/codec/point"
)

// Exact is a value that a double does not hold: an integer beyond 2^53. A result has those of the
// metrics that it shows as they are; what is computed of them is computed with doubles.
type Exact struct {
	At  int   // position in Values
	Int int64 // the value
}

// exactBytes is the memory of an Exact.
const exactBytes = 16

// exactFrom is where doubles begin to leave out integers.
const exactFrom = 1 << 53

// noteExact notes which of values, those of words from slot from on, are not exact. Confidence
// and functions do not need it, so only leaves that are results have it called.
func (l *leaf) noteExact(r *reader, from int64, words []uint64, values []float64) error {
	for i, v := range values {
		if v < exactFrom && v > -exactFrom || v != v || point.KindOf(words[i]) != point.KindInt {
			continue
		}
		exact, at := point.Int(words[i]), from+int64(i)
		if int64(v) == exact || at < l.of.from {
			continue
		}
		if len(l.exact) == cap(l.exact) {
			more := max(64, len(l.exact))
			if err := r.lend(int64(more) * exactBytes); err != nil {
				return err
			}
			l.exact = slices.Grow(l.exact, more)
		}
		l.exact = append(l.exact, Exact{At: int(at - l.of.from), Int: exact})
	}
	return nil
}

// exactOf returns what the values of a root do not hold.
func (x *executor) exactOf(i, values int) []Exact {
	l, ok := x.nodes[x.plan.Roots[i].Of.ID].(*leaf)
	if !ok || x.columns[i] != nil {
		return nil
	}
	past, _ := slices.BinarySearchFunc(l.exact, values, func(e Exact, at int) int { return e.At - at })
	return l.exact[:past:past]
}
