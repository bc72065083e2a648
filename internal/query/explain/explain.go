// Package explain says how a query was run: what EXPLAIN shows, and its text.
package explain

import (
	"fmt"
	"strings"
	"time"

	"dalmatiner/internal/query/holes"
	"dalmatiner/internal/query/plan"
)

// Explanation is how a query was run: steps that read each other, from the reads to
// the results.
type Explanation struct {
	Fields []int  `json:"fields"`          // IDs of the steps whose values are results
	Ranks  []int  `json:"ranks,omitempty"` // IDs of those that TOP and BOTTOM order them by
	Steps  []Step `json:"steps"`           // every step once; those that it reads come before it
	Rounds int    `json:"rounds"`          // that the range was cut into
	Slots  int64  `json:"slots"`           // of the finest resolution in a round
	Memory int64  `json:"memory"`          // bytes that the query was charged with

	Lookups []plan.Lookup `json:"lookups,omitempty"` // by tags, in the order of the text

	Events []EventRead `json:"events,omitempty"` // of EVENTS fields, in their order

	Cache *FromCache `json:"cache,omitempty"` // what of the result is kept; nil where nothing is ever
}

// Nothing returns the explanation of a query without series.
func Nothing() *Explanation {
	return &Explanation{Fields: []int{}, Steps: []Step{}}
}

// FromCache says what a query would take from the cache of results if it was not explained.
type FromCache struct {
	Whole bool  `json:"whole"`           // all of it
	Steps int64 `json:"steps,omitempty"` // of its steps
	Of    int64 `json:"of,omitempty"`    // steps, where some are kept
}

// String says it in words.
func (c *FromCache) String() string {
	if c.Whole {
		return "the whole result"
	}
	if c.Steps > 0 {
		return fmt.Sprintf("%d of %d steps", c.Steps, c.Of)
	}
	return "nothing"
}

// Step is a node of a plan.
type Step struct {
	ID         int        `json:"id"` // from 1
	Name       string     `json:"name"`
	Resolution int64      `json:"resolution"` // ms per value
	Values     int64      `json:"values"`     // that it gives
	Uses       int        `json:"uses"`       // steps and results that read it; it runs once
	Micros     int64      `json:"time_us"`    // that it took itself, without what it reads
	Read       *ReadStats `json:"read,omitempty"`
	Inputs     []int      `json:"inputs,omitempty"` // IDs
}

// ReadStats tells what a read cost. Sources that cannot tell Headers, Rollups,
// Decoded or Bytes leave them 0.
type ReadStats struct {
	Slots int64 `json:"slots"` // in its range
	// of the source word by word: more where a first value was looked for ahead, fewer where nothing
	// can be or aggregates do
	Asked   int64 `json:"asked"`
	Set     int64 `json:"set"`     // slots with a value
	Headers int64 `json:"headers"` // of chunks, that were enough
	Rollups int64 `json:"rollups"` // entries that stood for many chunks
	Decoded int64 `json:"decoded"` // points
	Bytes   int64 `json:"bytes"`   // from files

	Unknown *holes.List `json:"unknown,omitempty"` // slots that damage took; nil without
}

// String returns the plan as a tree, one step a line, from the results down to
// the reads. A step that several read is written out where it comes first.
func (p *Explanation) String() string {
	var b strings.Builder
	if len(p.Steps) > 0 {
		fmt.Fprintf(&b, "rounds %d, slots per round %d, memory %d bytes\n", p.Rounds, p.Slots, p.Memory)
	}
	if p.Cache != nil {
		fmt.Fprintf(&b, "from the cache: %v\n", p.Cache)
	}
	for i := range p.Lookups {
		printLookup(&b, &p.Lookups[i])
	}
	seen := make([]bool, len(p.Steps)+1)
	for _, id := range p.Fields {
		p.print(&b, id, 0, seen)
	}
	if len(p.Ranks) > 0 {
		b.WriteString("ordered by\n")
	}
	for _, id := range p.Ranks {
		p.print(&b, id, 1, seen)
	}
	for i := range p.Events {
		b.WriteString(p.Events[i].String() + "\n")
	}
	return b.String()
}

func printLookup(b *strings.Builder, l *plan.Lookup) {
	fmt.Fprintf(b, "lookup %s", l.What)
	if l.Shift != 0 {
		fmt.Fprintf(b, ", %d ms earlier", l.Shift)
	}
	fmt.Fprintf(b, ": series %d\n", l.Hits)
	for _, s := range l.Steps {
		fmt.Fprintf(b, "%s%s: ", strings.Repeat("  ", s.Depth+1), s.What)
		if s.Lists > 0 {
			fmt.Fprintf(b, "lists %d, postings %d, ", s.Lists, s.Postings)
		}
		if s.Checked > 0 {
			fmt.Fprintf(b, "checked %d, ", s.Checked)
		}
		fmt.Fprintf(b, "left %d\n", s.Found)
	}
}

func (p *Explanation) print(b *strings.Builder, id, depth int, seen []bool) {
	s := p.Steps[id-1]
	fmt.Fprintf(b, "%s%d %s", strings.Repeat("  ", depth), id, s.Name)
	if seen[id] {
		b.WriteString(", see above\n")
		return
	}
	seen[id] = true
	fmt.Fprintf(b, ": values %d, every %d ms", s.Values, s.Resolution)
	if s.Uses > 1 {
		fmt.Fprintf(b, ", used %d times", s.Uses)
	}
	if r := s.Read; r != nil {
		fmt.Fprintf(b, ", slots %d, asked %d, set %d", r.Slots, r.Asked, r.Set)
		for _, n := range []struct {
			what string
			n    int64
		}{{"headers", r.Headers}, {"rollups", r.Rollups}, {"decoded", r.Decoded}, {"bytes", r.Bytes}} {
			if n.n > 0 {
				fmt.Fprintf(b, ", %s %d", n.what, n.n)
			}
		}
		if r.Unknown != nil {
			fmt.Fprintf(b, ", unknown %v", r.Unknown)
		}
	}
	if s.Micros > 0 {
		fmt.Fprintf(b, ", %v", time.Duration(s.Micros)*time.Microsecond)
	}
	b.WriteString("\n")
	for _, in := range s.Inputs {
		p.print(b, in, depth+1, seen)
	}
}

// EventRead is how the events of a field were read.
type EventRead struct {
	Name     string `json:"name"`      // its canonical text, with its conditions
	Files    int64  `json:"files"`     // that have some of the range
	Blocks   int64  `json:"blocks"`    // of these files, read whole
	Bytes    int64  `json:"bytes"`     // of these blocks, as stored
	InMemory int64  `json:"in_memory"` // events of the range that are in no file yet
	Read     int64  `json:"read"`      // events of the range, which the conditions were asked about
	Found    int64  `json:"found"`     // events that meet them
	Limit    int64  `json:"limit"`     // of events in a result
	Lost     int64  `json:"lost"`      // events of the range that damage took
	Micros   int64  `json:"time_us"`
}

// String says it in a line.
func (e *EventRead) String() string {
	text := fmt.Sprintf("%s: files %d, blocks %d, bytes %d, in memory %d, read %d, found %d, at "+
		"most %d in a result",
		e.Name, e.Files, e.Blocks, e.Bytes, e.InMemory, e.Read, e.Found, e.Limit)
	if e.Lost > 0 {
		text += fmt.Sprintf(", lost %d", e.Lost)
	}
	if e.Micros > 0 {
		text += fmt.Sprintf(", %v", time.Duration(e.Micros)*time.Microsecond)
	}
	return text
}
