// Package query plans and runs queries of the language in package dql.
//
// A query becomes a graph of operators with shared reads, which is then run
// over the time range in rounds, so that memory depends on the size of the
// results and not on the number of points read. DESIGN.md tells how.
package query

import (
	"context"
	"time"

	"dalmatiner/internal/query/exec"
	"dalmatiner/internal/query/explain"
	"dalmatiner/internal/query/holes"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/readers"
	"dalmatiner/internal/query/source"
)

// What callers of an Engine name, beside its own types: packages plan, exec, readers and holes
// describe it.
type (
	Limits     = plan.Limits
	LimitError = plan.LimitError
	Readers    = readers.Readers
	Progress   = exec.Progress
	Series     = exec.Series
	Exact      = exec.Exact
	Holes      = holes.List
)

// MaxWidth is the most columns that Options.Width may ask for.
const MaxWidth = plan.MaxWidth

var (
	// ErrNoResults is returned when a query is right and finds no series.
	ErrNoResults = plan.ErrNoResults
	// ErrUnsupported is wrapped by the error for a part of the language that the
	// engine does not run.
	ErrUnsupported = plan.ErrUnsupported
)

// NewReaders returns n goroutines for the queries of a node to share. Without any a query
// reads one series after the other.
func NewReaders(n int) *Readers { return readers.New(n) }

// Engine runs queries. It has no state of its own but its cache: the fields are set
// before use, and any number of queries may run at once.
type Engine struct {
	Source source.Source
	Events EventSource // nil: queries of events are ErrUnsupported
	Now    func() time.Time
	Limits Limits
	// Readers are shared by the queries of a node; nil is none.
	Readers *Readers
	// Cache keeps results for those who ask the same again; nil keeps none. What it gives is
	// what the engine would compute.
	Cache *Cache

	// Of tests; 0 is what package plan has.
	roundSlots, compatSlots, aloneSlots int64
}

// Options are what a request may ask for beside its text.
type Options struct {
	// Limits replaces the engine's limits where it is stricter.
	Limits Limits

	// Compat gives the answers of the original where it is only probable that
	// nobody wanted them; docs/dql.md lists them.
	Compat bool

	// Zone is that of dates without one and of the calendar, where the text does not ask for one
	// with TZ. nil is UTC, with days of 24 hours that are counted from the begin of the range. With
	// Compat it is ignored.
	Zone *time.Location

	// Explain is the prefix EXPLAIN of a query: its plan is asked for, with
	// what running it cost.
	Explain bool

	// Confidence asks for the confidences of the values. With Compat they tell filled
	// gaps from points. It doubles the memory of the result.
	Confidence bool

	// NoAggregates reads slot by slot what a source could add up itself. The
	// results are the same.
	NoAggregates bool

	// Older asks for the values below what was lost, where slots are unknown; they may
	// be out of date. It is ErrUnsupported where the source does not offer them, and
	// implies NoAggregates.
	Older bool

	// Align moves the begin of the range back so that steps begin at multiples of their
	// length. The last step may be short.
	Align bool

	// NoCache computes the result anew, and does not keep it.
	NoCache bool

	// Stream leaves the events of EVENTS fields unread: EventList.Each reads them. So they take no
	// memory, and where there are more than Limits.MaxOutput the first ones are given.
	Stream bool

	// Width above 0 asks for at most that many columns per series in place of
	// its values, for a chart of that many pixels. Beyond MaxWidth it is an
	// error.
	Width int

	// Progress, unless nil, says meanwhile how much of the range is read.
	Progress *Progress

	// Memory is asked before the query uses any; nil lends everything. What was
	// lent stays in use as long as the result does.
	Memory plan.Memory
}

// Result is the answer to a query.
type Result struct {
	Start     int64 // of the range asked for, unix ms, not rounded to a slot
	Until     int64 // its end, or now where that is earlier
	QueryTime time.Duration
	Series    []Series    // in the order of the fields; hits of a pattern by key
	Events    []EventList // of the EVENTS fields, in their order
	Stats     exec.Stats
	Plan      *explain.Explanation // of EXPLAIN, which runs the query and keeps no series; else nil

	// Missing are the selectors without a hit, where others of the query have
	// some; nil with Options.Compat, in which a metric that does not exist is 0.
	Missing []plan.Missing

	// Unmatched are the series that an operator between patterns leaves out, because the
	// other side has none that belongs to them.
	Unmatched []plan.Unmatched
	Compat    bool // Options.Compat: what says more than the original's answer is not set
	Older     bool // Options.Older: what is unknown of a series has older values
}

// Ended reports whether a series of the result has ended: its last point is older than the
// distances between its points let expect. It is false with Options.Compat.
func (r *Result) Ended(s *Series) bool { return !r.Compat && s.HeldUntil < r.Until }

// Query runs one query. Errors in the query are *dql.Error; the causes that a
// caller may tell apart are buckets.ErrUnknown, ErrUnsupported and *LimitError.
// A query that finds no series returns ErrNoResults. The result is the
// caller's, but what its series hold may be shared with others: nobody changes it.
func (e *Engine) Query(ctx context.Context, text string, opt Options) (*Result, error) {
	r := request{Engine: e, opt: opt, began: e.Now()}
	var err error
	if err = r.parse(text); err != nil {
		return nil, err
	}
	if !opt.Compat {
		if r.zone, err = plan.TimeZone(r.q, opt.Zone); err != nil {
			return nil, err
		}
	}
	if r.times, err = plan.TimeRange(r.q, r.began.UnixMilli(), r.zone, opt.Compat); err != nil {
		return nil, err
	}
	fields, err := r.takeEvents()
	if err != nil {
		return nil, err
	}
	if opt.Align {
		r.align()
	}
	if len(fields) == 0 {
		out, err := r.run(ctx)
		return r.shown(out), err
	}
	r.parsed = nil // there is more to the text than what is kept
	return r.withEvents(ctx, fields)
}

// withEvents runs what the query has beside its EVENTS fields, and reads their events.
func (r *request) withEvents(ctx context.Context, fields []eventField) (*Result, error) {
	out := &Result{Start: r.times.Start, Until: r.end(), Compat: r.opt.Compat, Older: r.opt.Older}
	if len(r.q.Fields) > 0 {
		series, err := r.run(ctx)
		if err != nil {
			return nil, err
		}
		*out = *r.shown(series) // which the cache may keep
	}
	var err error
	if r.opt.Explain || r.q.Explain {
		if out.Plan == nil {
			out.Plan = explain.Nothing()
		}
		out.Plan.Events, err = r.explainEvents(ctx, fields)
	} else if r.opt.Stream {
		out.Events, err = r.streamEvents(fields)
	} else {
		out.Events, err = r.readEvents(ctx, fields)
	}
	if err != nil {
		return nil, err
	}
	out.QueryTime = r.Now().Sub(r.began)
	return out, nil
}

func (r *request) planOptions() plan.Options {
	e, opt := r.Engine, &r.opt
	return plan.Options{
		Shown: plan.Shown{Explain: opt.Explain, Compat: opt.Compat, Confidence: opt.Confidence},
		Range: r.times, Limits: e.Limits.Stricter(opt.Limits), Now: r.began.UnixMilli(),
		Zone: r.zone, Events: r.counter(), Asked: r.length, Width: opt.Width, Memory: opt.Memory,
		NoAggregates: opt.NoAggregates, Older: opt.Older,
		Readers:    e.Readers.Most(),
		RoundSlots: e.roundSlots, CompatSlots: e.compatSlots, AloneSlots: e.aloneSlots,
	}
}
