// Package spacing says which slots of a series are set, and how far its points are apart.
package spacing

// Sample is of how many slots, up to the last set one, the distances between points count.
const Sample = 1440

// Distance returns the most common distance between neighbouring set slots of some words, the
// shortest of several; 0 with fewer than two.
func Distance(words []uint64) int64 {
	var counts [Sample]int16
	last, best := -1, 0
	for i, w := range words {
		if w>>56 == 0 {
			continue
		}
		if last >= 0 {
			d := i - last
			counts[d]++
			if n := counts[d]; n > counts[best] || n == counts[best] && d < best {
				best = d
			}
		}
		last = i
	}
	return int64(best)
}

// MeanDistance returns the rounded mean distance of n set slots, at least two, from first to last.
func MeanDistance(first, last, n int64) int64 { return (last - first + (n-1)/2) / (n - 1) }

// Run are neighbouring spans of equal length in which as many slots are set, from the same first
// one to the same last one.
type Run struct {
	N                  int32 // spans
	Count, First, Last int32 // set slots, and offsets of the first and the last one; 0 without any
}

// Same reports whether the spans of two runs are alike.
func (r Run) Same(o Run) bool {
	return r.Count == o.Count && r.First == o.First && r.Last == o.Last
}

// AppendRun appends a run of one span, to the last one where that is the same.
func AppendRun(list []Run, r Run) []Run {
	if n := len(list); n > 0 && list[n-1].Same(r) {
		list[n-1].N++
		return list
	}
	return append(list, r)
}
