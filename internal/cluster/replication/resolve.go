package replication

import (
	"cmp"

	"dalmatiner/internal/codec/point"
)

// Value is what a slot holds: a word of package point, and in a bucket with timestamps that of its
// timestamp. They are one: copies are never mixed from two points.
type Value struct{ Word, Time uint64 }

// Compare orders values: the larger one stays where several copies differ. Unset is the lowest.
func (v Value) Compare(o Value) int {
	return cmp.Or(cmp.Compare(v.Word, o.Word), cmp.Compare(v.Time, o.Time))
}

// Larger returns the larger of two values.
func Larger(a, b Value) Value {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// unset reports whether the slot holds nothing.
func (v Value) unset() bool { return v.Word == 0 }

// Cut says that from a source number on, n is another one: everything was flushed
// before n was changed.
type Cut struct {
	From   uint64 // number of the first source written under this n
	Copies int
}

// Source is what one source of a series holds in a slot. Sources are numbered in the
// order in which they were written.
type Source struct {
	Number uint64
	Value  Value
}

// Resolve returns the value of a slot from its sources in the order in which they were written.
// With one copy the last set value stays, where a stale marker never takes the place of a value,
// with more the largest. Sources before a cut are
// resolved by the rule of their time; the result is the first source of the next rule.
func Resolve(cuts []Cut, sources []Source) Value {
	var held Value
	for _, s := range sources {
		switch {
		case s.Value.unset():
		case copiesAt(cuts, s.Number) > 1 || s.Value.Word == point.Stale:
			held = Larger(held, s.Value)
		default:
			held = s.Value
		}
	}
	return held
}

// copiesAt returns the n under which a source was written; before the first cut it is 1.
func copiesAt(cuts []Cut, number uint64) int {
	n := 1
	for _, c := range cuts {
		if c.From <= number {
			n = c.Copies
		}
	}
	return n
}
