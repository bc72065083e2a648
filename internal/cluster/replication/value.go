package replication

import "cmp"

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
