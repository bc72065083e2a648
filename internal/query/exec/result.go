package exec

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"

	"dalmatiner/internal/query/explain"
	"dalmatiner/internal/query/holes"
	"dalmatiner/internal/query/plan"
)

// Result is what a run gives.
type Result struct {
	Series    []Series // in the order of the fields; hits of a pattern by key
	Stats     Stats
	Explained *explain.Explanation // of EXPLAIN, which runs the query and keeps no series; else nil
	Steps     *Steps               // those that Env.KeepUntil asks for; nil without
}

// Series is one series of a result. The time of Values[i] is Start + i ×
// Resolution. NaN is a gap.
type Series struct {
	Name string
	// of the first value, unix ms: of the slot that the range begins in, or of a column
	Start      int64
	Resolution int64 // ms per value
	// of the values in unix ms, where they are not Resolution apart, which is about their length then;
	// else nil
	Times  []int64
	Values []float64
	Exact  []Exact // of Values, what doubles do not hold; nil without
	// with Options.Width, where Values are the averages of the columns; else nil
	Min, Max []float64
	// 0 to 1 per value with Options.Confidence, else nil; with Compat 0 is a filled gap
	Confidence []float64
	// share of the points that its senders' intervals promise, 0 to 1; with Compat of the slots that
	// are set
	Coverage float64
	Metadata map[string]any // string, float64 or nil; nil without METADATA

	// What follows is not set with Options.Compat.

	Bucket string   // of the metric; empty where several metrics were combined
	Metric []byte   // its key; nil where several were combined
	Stars  []string // the parts that the stars of the pattern stand for, in their order; nil without

	// Interval is the most common distance in ms between neighbouring points of
	// the metric with the most points, of its last ones in the range; 0 where no metric has two.
	Interval  int64
	Points    int64 // that were read for it, of the range
	LastPoint int64 // unix ms of the last of them; 0 without one
	// unix ms up to which the last of them stands for the series; the least number without one
	HeldUntil        int64
	BucketResolution int64 // ms per slot of the bucket read, the finest of several

	Unknown *holes.List // the slots read for it that damage took; nil without
}

// At returns the number of the value that covers a time; the first one covers what is before it.
func (s *Series) At(ms int64) int {
	if s.Times == nil {
		return int(max(0, ms-s.Start) / s.Resolution)
	}
	i, found := slices.BinarySearch(s.Times, ms)
	if !found {
		i--
	}
	return max(0, i)
}

// Stats tells what a query did.
type Stats struct {
	Reads      int   // distinct series read
	PointsRead int64 // words asked of the source, or decoded by it for aggregates
	Slots      int64 // slots of the reads within the range
	Set        int64 // of them, slots with a value
}

// Progress tells how far a query is. Its methods may be called concurrently; the
// zero value is that of a query that has not begun to read.
type Progress struct{ share atomic.Uint64 }

// Share returns how much of the range has been read, from 0 to 1.
func (p *Progress) Share() float64 { return math.Float64frombits(p.share.Load()) }

func (p *Progress) reached(share float64) {
	if p != nil {
		p.share.Store(math.Float64bits(min(max(share, 0), 1)))
	}
}

// results returns the series in order.
func (x *executor) results() ([]Series, error) {
	chosen := x.chosen()
	damaged := slices.ContainsFunc(x.leaves, func(l *leaf) bool { return l.holes.Slots > 0 })
	rhythms := make([]rhythm, len(x.plan.Nodes))
	list := make([]Series, 0, len(chosen))
	for _, i := range chosen {
		r := &x.plan.Roots[i]
		s := Series{
			Name:       r.Name,
			Resolution: r.Of.Resolution,
			Start:      x.plan.Start,
			Values:     x.inRange(x.out[i].v, r.Of),
			Confidence: x.inRange(x.out[i].c, r.Of),
			Metadata:   r.Meta,
		}
		if err := x.describe(&s, r.Of, rhythms); err != nil {
			return nil, err
		}
		if c := r.Of.Calendar; c != nil {
			s.Times, s.Start = c.Times, x.plan.Start
		}
		if c := x.columns[i]; c != nil {
			c.finish()
			s.Resolution *= c.Step
			if c.Unit > 0 {
				s.Start = c.start(x.nodes[r.Of.ID].(*leaf))
			}
			s.Values, s.Min, s.Max, s.Confidence = c.avg, c.min, c.max, c.conf
		}
		s.Exact = x.exactOf(i, len(s.Values))
		if !x.plan.Compat {
			s.Bucket, s.Metric, s.Stars = r.Bucket, r.Metric(), r.Stars()
			if damaged {
				s.Unknown = x.unknown(r.Of)
			}
		}
		if !x.plan.Confidence {
			s.Confidence = nil // others may have asked for those of a shared node
		}
		list = append(list, s)
	}
	return list, nil
}

// inRange returns the values of a result without those that were read ahead.
func (x *executor) inRange(v []float64, of *plan.Node) []float64 {
	if n := int((x.plan.End - x.plan.Start) / of.Resolution); x.end > x.plan.End && len(v) > n {
		return v[:n:n]
	}
	return v
}

// chosen returns the positions of the roots that are in the result, in its
// order. Of equal ranks the first stays first; a series without a number comes
// last.
func (x *executor) chosen() []int {
	list := make([]int, 0, len(x.plan.Roots))
	for i, r := range x.plan.Roots {
		if p, ok := x.nodes[r.Of.ID].(*pick); !ok || p.shown {
			list = append(list, i)
		}
	}
	l := x.plan.Keep
	if l == nil || len(x.ranks) == 0 || int64(len(list)) <= l.N {
		return list
	}
	slices.SortStableFunc(list, func(a, b int) int {
		va, vb := x.ranks[a].v, x.ranks[b].v
		lostA, lostB := len(va) == 0 || va[0] != va[0], len(vb) == 0 || vb[0] != vb[0]
		switch {
		case lostA && lostB:
			return 0
		case lostA:
			return 1
		case lostB:
			return -1
		case l.Bottom:
			return cmp.Compare(va[0], vb[0])
		}
		return cmp.Compare(vb[0], va[0])
	})
	return list[:l.N]
}
