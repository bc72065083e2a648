package exec

import (
	"fmt"
	"slices"
	"strings"

	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/source"
)

const (
	maxUnknown = 100 // ranges of a series that are listed
	maxReasons = 8   // reasons, likewise
)

// Holes are the unknown slots of a series of a result, or of a read.
type Holes struct {
	Slots  int64      `json:"slots"`          // of all reads together
	Ranges [][2]int64 `json:"ranges"`         // [from, to) in unix ms of the result, ascending and apart from each other; at most 100
	More   int64      `json:"more,omitempty"` // further ranges
	Why    []string   `json:"why"`            // what was lost, at most 8
}

// String says how many there are and why.
func (h *Holes) String() string {
	return fmt.Sprintf("%d (%s)", h.Slots, strings.Join(h.Why, "; "))
}

// holes adds up the unknown slots of one read, whose parts come in any order and some
// of them twice: all slots below the last one read were read.
type holes struct {
	seen int64 // slots below it are noted
	past int64 // end of the last range noted
	Holes
}

// note takes in what a read of the slots up to past says.
func (h *holes) note(c *source.Cost, past int64) {
	for _, u := range c.Unknown {
		if from := max(u.From, h.seen); from < u.Past {
			h.add(from, u.Past)
			h.because(u.Why)
		}
	}
	if c.MoreUnknown > 0 && past > h.seen {
		h.Slots += c.MoreUnknown
		h.More++
		h.past = past
	}
	h.seen = max(h.seen, past)
}

func (h *holes) add(from, past int64) {
	n := len(h.Ranges)
	switch {
	case h.Slots > 0 && from == h.past: // the last range goes on
		if h.More == 0 {
			h.Ranges[n-1][1] = past
		}
	case n < maxUnknown && h.More == 0:
		h.Ranges = append(h.Ranges, [2]int64{from, past})
	default:
		h.More++
	}
	h.Slots += past - from
	h.past = past
}

// because adds a reason, once.
func (h *Holes) because(why string) {
	if len(h.Why) < maxReasons && !slices.Contains(h.Why, why) {
		h.Why = append(h.Why, why)
	}
}

// join adds those of another read.
func (h *Holes) join(o *Holes) {
	all := slices.Concat(h.Ranges, o.Ranges)
	slices.SortFunc(all, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	h.Ranges = nil
	h.Slots, h.More = h.Slots+o.Slots, h.More+o.More
	for _, r := range all {
		switch n := len(h.Ranges); {
		case n > 0 && r[0] <= h.Ranges[n-1][1]:
			h.Ranges[n-1][1] = max(h.Ranges[n-1][1], r[1])
		case n < maxUnknown:
			h.Ranges = append(h.Ranges, r)
		default:
			h.More++
		}
	}
	for _, why := range o.Why {
		h.because(why)
	}
}

// unknown returns the unknown slots of a read in the times of the result, nil without.
func (l *leaf) unknown() *Holes {
	if l.holes.Slots == 0 {
		return nil
	}
	h := l.holes.Holes
	h.Ranges = slices.Clone(h.Ranges)
	for i := range h.Ranges {
		for side := range h.Ranges[i] {
			h.Ranges[i][side] = h.Ranges[i][side]*l.Resolution + l.Shift
		}
	}
	return &h
}

// unknown returns those of all reads that a node is computed from, nil without.
func (x *executor) unknown(of *plan.Node) *Holes {
	if !slices.ContainsFunc(x.leaves, func(l *leaf) bool { return l.holes.Slots > 0 }) {
		return nil
	}
	x.visit++
	var walk func(n *plan.Node)
	walk = func(n *plan.Node) {
		c := x.nodes[n.ID].shared()
		if c.visited == x.visit {
			return
		}
		c.visited = x.visit
		for _, in := range n.Inputs {
			walk(in)
		}
	}
	walk(of)
	var all *Holes
	for _, l := range x.leaves { // in the order of the query, whatever order they are combined in
		if l.visited != x.visit {
			continue
		}
		switch h := l.unknown(); {
		case all == nil:
			all = h
		case h != nil:
			all.join(h)
		}
	}
	return all
}
