// Package postings keeps lists of ids: which ids belong to what. It wraps RoaringBitmap, and
// keeps short lists, which are most, without it and without pointers.
package postings

import (
	"iter"

	"github.com/RoaringBitmap/roaring/v2"
)

// Set is a set of ids. It may share the memory of a list: then it is valid until the list
// changes. No operation changes a set.
type Set struct{ b *roaring.Bitmap }

// Of returns the set of some ids, in any order.
func Of(ids ...uint32) Set { return Set{roaring.BitmapOf(ids...)} }

// Clone returns a set with memory of its own.
func (s Set) Clone() Set { return Set{s.b.Clone()} }

// Len returns how many ids the set has.
func (s Set) Len() int { return int(s.b.GetCardinality()) }

// Contains reports whether the set has an id.
func (s Set) Contains(id uint32) bool { return s.b.Contains(id) }

// And returns the ids that both sets have.
func (s Set) And(o Set) Set { return Set{roaring.And(s.b, o.b)} }

// Or returns the ids that one of the sets has.
func (s Set) Or(o Set) Set { return Set{roaring.Or(s.b, o.b)} }

// AndNot returns the ids that o has not.
func (s Set) AndNot(o Set) Set { return Set{roaring.AndNot(s.b, o.b)} }

// CommonLen returns how many ids both sets have.
func (s Set) CommonLen(o Set) int { return int(s.b.AndCardinality(o.b)) }

// All returns the ids in ascending order.
func (s Set) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		var buf [256]uint32
		for it := s.b.ManyIterator(); ; {
			n := it.NextMany(buf[:])
			for _, id := range buf[:n] {
				if !yield(id) {
					return
				}
			}
			if n < len(buf) {
				return
			}
		}
	}
}

// Union collects ids from many lists into a set. The zero value is empty.
type Union struct{ bits []uint64 }

// Add adds an id.
func (u *Union) Add(id uint32) {
	if n := int(id/64) + 1; n > len(u.bits) {
		u.bits = append(u.bits, make([]uint64, n-len(u.bits))...)
	}
	u.bits[id/64] |= 1 << (id % 64)
}

// Set returns what was added. The union must not be used any more.
func (u *Union) Set() Set { return Set{roaring.FromDense(u.bits, false)} }
