package hole

import (
	"cmp"
	"math"
	"slices"
)

// MaxMarks is how many marks a segment has at most, but for one a bucket. Where more
// were needed, neighbouring ones are joined and mark what lies between them too.
const MaxMarks = 256

// maxIntervals is how many ranges of series a chunk number of a bucket has at most
// while marks are collected. The last one takes in what comes behind it.
const maxIntervals = 16

// Mark is a part of a segment that may overwrite something older: the chunks
// [First, Past) of the series with a prefix in [Low, High], those that the segment
// holds.
type Mark struct {
	Bucket      uint64
	First, Past int64
	Low, High   Prefix
}

func (m *Mark) compare(o *Mark) int {
	return cmp.Or(cmp.Compare(m.Bucket, o.Bucket), cmp.Compare(m.First, o.First),
		cmp.Compare(m.Low, o.Low),
		cmp.Compare(m.Past, o.Past), cmp.Compare(m.High, o.High))
}

// Marks are all marks of a segment. The zero value marks nothing.
type Marks struct {
	// All says that everything is marked: what the marks were is not known.
	All  bool
	List []Mark // sorted; some may overlap
}

// Empty reports whether nothing is marked.
func (m *Marks) Empty() bool { return !m.All && len(m.List) == 0 }

// Has reports whether a chunk is marked.
func (m *Marks) Has(bucket uint64, p Prefix, chunk int64) bool {
	return m.All || slices.ContainsFunc(m.List, func(k Mark) bool {
		return k.Bucket == bucket && k.First <= chunk && chunk < k.Past && k.Low <= p && p <= k.High
	})
}

// Clip returns the marks in a part of a segment: what of them lies in it.
func (m *Marks) Clip(part Mark) []Mark {
	if m.All {
		return []Mark{part}
	}
	var out []Mark
	for _, k := range m.List {
		k.First, k.Past = max(k.First, part.First), min(k.Past, part.Past)
		k.Low, k.High = max(k.Low, part.Low), min(k.High, part.High)
		if k.Bucket == part.Bucket && k.First < k.Past && k.Low <= k.High {
			out = append(out, k)
		}
	}
	return out
}

// WholeChunks is the part of a segment that is all chunks [first, past) of a bucket.
func WholeChunks(bucket uint64, first, past int64) Mark {
	return Mark{Bucket: bucket, First: first, Past: past, Low: LowestPrefix, High: HighestPrefix}
}

// MarksOf returns marks that cover all of the list, within the bound. It keeps nothing of
// the list.
func MarksOf(list []Mark) Marks {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Mark) int { return a.compare(&b) })
	list = joinChunks(slices.Compact(list))
	for unit := int64(2); len(list) > MaxMarks; unit *= 2 {
		before := len(list)
		list = coarsen(list, unit)
		if unit > math.MaxInt64/4 || before == len(list) && oneABucket(list) {
			break
		}
	}
	return Marks{List: list}
}

// joinChunks joins marks of the same series whose chunks adjoin or overlap.
func joinChunks(list []Mark) []Mark {
	type series struct {
		bucket    uint64
		low, high Prefix
	}
	last := make(map[series]int)
	var out []Mark
	for _, m := range list {
		k := series{m.Bucket, m.Low, m.High}
		if i, ok := last[k]; ok && out[i].Past >= m.First {
			out[i].Past = max(out[i].Past, m.Past)
			continue
		}
		last[k] = len(out)
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Mark) int { return a.compare(&b) })
	return out
}

// coarsen joins all marks of a bucket that begin in the same unit of chunks.
func coarsen(list []Mark, unit int64) []Mark {
	var out []Mark
	for _, m := range list {
		if n := len(out); n > 0 {
			o := &out[n-1]
			if o.Bucket == m.Bucket && floor(o.First, unit) == floor(m.First, unit) {
				o.First, o.Past = min(o.First, m.First), max(o.Past, m.Past)
				o.Low, o.High = min(o.Low, m.Low), max(o.High, m.High)
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

func floor(n, unit int64) int64 {
	q := n / unit
	if n%unit < 0 {
		q--
	}
	return q
}

func oneABucket(list []Mark) bool {
	for i := 1; i < len(list); i++ {
		if list[i].Bucket == list[i-1].Bucket {
			return false
		}
	}
	return true
}

// Builder collects the marks of a segment while its chunks are written. The zero
// value is ready.
type Builder struct {
	rows map[rowKey]*row
}

type rowKey struct {
	bucket uint64
	chunk  int64
}

// row is what is marked of the chunks with one number.
type row struct {
	intervals []interval
	open      bool // a marked chunk goes on with the last one
}

type interval struct{ low, high Prefix }

// Add says whether a chunk of the segment is marked. Chunks come in the order of the
// segment: by bucket, hash and number. Those that are not marked keep the ranges of
// marked ones apart.
func (b *Builder) Add(bucket uint64, p Prefix, chunk int64, marked bool) {
	if !marked && len(b.rows) == 0 {
		return // as almost always
	}
	k := rowKey{bucket, chunk}
	r := b.rows[k]
	switch {
	case !marked && r != nil:
		r.open = false
		return
	case !marked:
		return
	case r == nil:
		if b.rows == nil {
			b.rows = make(map[rowKey]*row)
		}
		r = new(row)
		b.rows[k] = r
	}
	n := len(r.intervals)
	if n > 0 && (r.open || n == maxIntervals || r.intervals[n-1].high == p) {
		r.intervals[n-1].high = p
	} else {
		r.intervals = append(r.intervals, interval{p, p})
	}
	r.open = true
}

// Marks returns what was collected.
func (b *Builder) Marks() Marks {
	var list []Mark
	for k, r := range b.rows {
		for _, i := range r.intervals {
			list = append(list, Mark{
				Bucket: k.bucket,
				First:  k.chunk,
				Past:   k.chunk + 1,
				Low:    i.low,
				High:   i.high,
			})
		}
	}
	return MarksOf(list)
}
