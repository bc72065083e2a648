// Package plan turns the tree of a query into a Plan: data that says what is read and
// computed, in which rounds, and with how much memory. Everything that limits a query is
// checked here, before a point is read. Package exec runs plans.
package plan

import (
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/source"
)

// Plan is a graph of operators over shared reads. It never changes once Make has returned
// it: any number of runs may share it.
type Plan struct {
	Range

	Nodes     []*Node // each once, behind those that it reads, in the order of their IDs
	Reads     []*Node // those of them that read a series
	Spans     []*Spans
	Roots     []Root      // the series of the result
	Ranks     []*Node     // of TOP and BOTTOM, one per root; empty where all are kept
	Keep      *dql.Limit  // TOP or BOTTOM; nil without
	Older     bool        // reads show what lies below what was lost
	Shown                 // what is shown of the result
	Rounds                // how it is run
	Missing   []Missing   // selectors without a hit
	Unmatched []Unmatched // series that an operator leaves out
	Chosen    []Choice    // by which metrics were chosen
	Size                  // what it costs
	Planned   int64       // bytes of the plan itself
	Indexed   bool        // series were found by their tags
	Events    bool        // events are counted
	Lookups   []Lookup    // how, where that is shown
}

// Lookup is a lookup by tags that was made for a plan.
type Lookup struct {
	What  string        `json:"what"`     // its canonical text, with the conditions of AS
	Shift int64         `json:"shift_ms"` // into the past
	Hits  int           `json:"hits"`     // series in the range of time
	Steps []source.Step `json:"steps"`
}

// Shown is what a request asks to be shown.
type Shown struct {
	Explain    bool // the plan in place of the values, and what running it cost
	Compat     bool // the answers of the original
	Confidence bool
}

// Rounds are the runs over the time range in which everything is read once.
type Rounds struct {
	Finest   int64 // resolution of all reads, in ms
	Slots    int64 // of the finest resolution, in a round
	Before   int64 // ms before the range that are read, too
	Slotwise bool  // some series is read slot by slot
	Helpers  int   // goroutines that the run may have beside its own
}

// Rounds end at multiples of chunk.Slots in the finest resolution read, since the store
// keeps points in runs of that many slots and decodes whole runs.
const (
	// RoundSlots is the length of a round: within source.MaxSlots, and such that the
	// buffers of a plain query stay in the processor's second cache level.
	RoundSlots = 32 * chunk.Slots
	// SpanRounds is how much longer rounds are where nothing but spans is read.
	SpanRounds = 32
)

// Root is a series of the result.
type Root struct {
	Series
	Name string
	Meta map[string]any

	Columns *Columns // nil where the values themselves are asked for
}

// Series is a node with the key of the first metric in it, which names it.
type Series struct {
	Of  *Node
	Key []byte

	Bucket  string     // of the metric; empty where several were combined
	tags    []tag      // of the series that gave the key, where a lookup found it
	id      uint64     // of the bucket, 0 where several were combined
	pattern []dql.Part // that found it, nil without stars and where several were combined
	dims    []tag      // what operators may join it by; a dimension that it lacks has no name
	grouped bool       // they are all of GROUP BY, in their order
}

// Metric returns the key of the only metric in a result, else nil.
func (r *Root) Metric() []byte {
	if r.Bucket == "" {
		return nil
	}
	return r.Key
}

// Stars returns the parts that stand where the pattern has stars, nil without.
func (r *Root) Stars() []string {
	if r.pattern == nil { // as of the many series of a lookup
		return nil
	}
	parts, _ := metric.Parts(r.Key)
	var list []string
	for i, p := range r.pattern {
		if p.Any && i < len(parts) {
			list = append(list, string(parts[i]))
		}
	}
	return list
}
