package source

import "math"

// Mark is a moment in the history of a bucket. Marks are comparable, and hold no pointers: who
// keeps one keeps nothing of the source in memory. What the numbers mean is the source's own;
// the zero Mark is none of any bucket. A mark is worthless when the process ends.
type Mark [5]uint64

// Unchanged says what of a bucket is as it was at a mark.
type Unchanged struct {
	// Below is a slot. From the slot that was asked for up to it, each series has what a read
	// begun after the mark had there: the same word, unset, or unknown, and the same aggregates of
	// ranges that end there. This also holds for series that are not there: all of their slots are
	// unset. It is math.MaxInt64 where nothing changed, and not above the slot that was asked for
	// where that one may have.
	//
	// The end of the lifetime is no change: points that are older than Info.TTL go away at
	// any time. Another TTL is one.
	Below int64

	// Live is the slot from which on points are coming in, as a guess: what is read from there
	// on will not hold for long.
	Live int64

	// Names are prefixes of keys: of all others Metrics lists the same, and Exists says the same. It
	// is nil where no metric came or went; the empty prefix stands for any.
	Names []string
}

// Forgotten is what is said where anything may have changed.
func Forgotten() Unchanged { return Unchanged{Below: math.MinInt64, Names: []string{""}} }

// NoHistory is the history of a source that keeps none: for embedding in its buckets.
type NoHistory struct{}

// Mark returns the zero Mark.
func (NoHistory) Mark() Mark { return Mark{} }

// Since knows nothing.
func (NoHistory) Since(Mark, int64) Unchanged { return Forgotten() }
