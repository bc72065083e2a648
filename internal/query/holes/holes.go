// Package holes lists the slots of a series that are unknown, because damage took what was there.
package holes

import (
	"fmt"
	"slices"
	"strings"

	"dalmatiner/internal/query/source"
)

const (
	maxUnknown = 100 // ranges of a series that are listed
	maxReasons = 8   // reasons, likewise
)

// List is the unknown slots of a series of a result, or of a read.
type List struct {
	Slots int64 `json:"slots"` // of all reads together
	// [from, to) in unix ms of the result, ascending and apart from each other; at most 100
	Ranges [][2]int64 `json:"ranges"`
	More   int64      `json:"more,omitempty"` // further ranges
	Why    []string   `json:"why"`            // what was lost, at most 8
}

// String says how many there are and why.
func (h *List) String() string {
	return fmt.Sprintf("%d (%s)", h.Slots, strings.Join(h.Why, "; "))
}

// Notes adds up the unknown slots of one read, whose parts come in any order and some
// of them twice: all slots below the last one read were read.
type Notes struct {
	seen int64 // slots below it are noted
	past int64 // end of the last range noted
	List
}

// Begin has slots before one left out.
func (h *Notes) Begin(slot int64) { h.seen = slot }

// Note takes in what a read of the slots up to past says.
func (h *Notes) Note(c *source.Cost, past int64) {
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

func (h *Notes) add(from, past int64) {
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
func (h *List) because(why string) {
	if len(h.Why) < maxReasons && !slices.Contains(h.Why, why) {
		h.Why = append(h.Why, why)
	}
}

// Join adds those of another read.
func (h *List) Join(o *List) {
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
