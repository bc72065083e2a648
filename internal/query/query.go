// Package query plans and runs queries of the language in package dql.
//
// A query becomes a graph of operators with shared reads, which is then run
// over the time range in rounds, so that memory depends on the size of the
// results and not on the number of points read. DESIGN.md tells how.
package query

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"dalmatiner/internal/dql"
)

// ErrNoResults is returned when a query is right and finds no series.
//
//lint:ignore ST1005 clients of the original look for this text
var ErrNoResults = errors.New("No results were returned for the query.")

// ErrUnsupported is wrapped by the error for a part of the language that the
// engine does not run.
var ErrUnsupported = errors.New("not supported yet")

// Engine runs queries. It has no state of its own: the fields are set before
// use, and any number of queries may run at once.
type Engine struct {
	Source Source
	Now    func() time.Time
	Zone   *time.Location // of dates without a zone; nil is UTC
	Limits Limits
	// Readers are shared by the queries of a node; nil is none.
	Readers *Readers

	roundSlots int64 // 0 = the constant of that name
	pieceSlots int64 // 0 = oldPiece
	aloneSlots int64 // 0 = the constant of that name
}

// Options are what a request may ask for beside its text.
type Options struct {
	// Limits replaces the engine's limits where it is stricter.
	Limits Limits

	// Compat gives the answers of the original where it is only probable that
	// nobody wanted them; docs/dql.md lists them.
	Compat bool

	// Explain is the prefix EXPLAIN of a query: its plan is asked for, with
	// what running it cost.
	Explain bool

	// Confidence asks for the confidences of the values, which tell filled
	// gaps from points. It doubles the memory of the result.
	Confidence bool

	// Rhythm, with Confidence, gives a confidence above 0 to the values between the
	// points of a sender that is slower than its bucket, up to one and a half times
	// Series.Interval behind a point: they are no gaps.
	Rhythm bool

	// Fill gives values to times before the first point of a series, too: the
	// first one. Compat does so as well.
	Fill bool

	// NoAggregates reads slot by slot what a source could add up itself. The
	// results are the same.
	NoAggregates bool

	// Older asks for the values below what was lost, where slots are unknown; they may
	// be out of date. It is ErrUnsupported where the source is no Elder, and implies
	// NoAggregates.
	Older bool

	// Width above 0 asks for at most that many columns per series in place of
	// its values, for a chart of that many pixels. Beyond MaxWidth it is an
	// error.
	Width int

	// Progress, unless nil, says meanwhile how much of the range is read.
	Progress *Progress

	// Memory is asked before the query uses any; nil lends everything. What was
	// lent stays in use as long as the result does.
	Memory Memory
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

// Result is the answer to a query.
type Result struct {
	Start     int64 // of the range asked for, unix ms, not rounded to a slot
	QueryTime time.Duration
	Series    []Series // in the order of the fields; hits of a pattern by key
	Stats     Stats
	Plan      *Plan // of EXPLAIN, which runs the query and keeps no series; else nil

	// Missing are the selectors without a hit, where others of the query have
	// some; nil with Options.Compat, in which a metric that does not exist is 0.
	Missing []Missing
	Compat  bool // Options.Compat: what says more than the original's answer is not set
	Older   bool // Options.Older: what is unknown of a series has older values
}

// Series is one series of a result. The time of Values[i] is Start + i ×
// Resolution.
type Series struct {
	Name       string
	Start      int64 // of the first value, unix ms: the result's, but for columns that begin at a multiple of Resolution
	Resolution int64 // ms per value
	Values     []float64
	Lead       int            // the first so many values are before the first point: gaps, whatever they hold
	Min, Max   []float64      // with Options.Width, where Values are the averages of the columns; else nil
	Confidence []float64      // 0 to 1 per value with Options.Confidence, else nil; 0 is a filled gap
	Coverage   float64        // share of the slots read for it that are set, 0 to 1
	Metadata   map[string]any // string, float64 or nil; nil without METADATA

	// What follows is not set with Options.Compat.

	Bucket string   // of the metric; empty where several metrics were combined
	Metric []byte   // its key; nil where several were combined
	Stars  []string // the parts that the stars of the pattern stand for, in their order; nil without

	// Interval is the most common distance in ms between neighbouring points of
	// what was read for the series, 0 where no metric has two in the range. Of
	// aggregates over spans, only the mean distance in each is known.
	Interval         int64
	BucketResolution int64 // ms per slot of the bucket read, the finest of several

	Unknown *Holes // the slots read for it that damage took; nil without
}

// Stats tells what a query did.
type Stats struct {
	Reads      int   // distinct series read
	PointsRead int64 // words asked of the source, or decoded by it for aggregates
	Slots      int64 // slots of the reads within the range
	Set        int64 // of them, slots with a value
}

// Query runs one query. Errors in the query are *dql.Error; the causes that a
// caller may tell apart are ErrUnknownBucket, ErrUnsupported and *LimitError.
// A query that finds no series returns ErrNoResults. The result is the
// caller's.
func (e *Engine) Query(ctx context.Context, text string, opt Options) (*Result, error) {
	began := e.Now()
	parse := dql.Parse
	if opt.Compat {
		parse = dql.ParseCompat
	}
	q, err := parse(text)
	if err != nil {
		return nil, err
	}
	p, err := newPlanner(ctx, e, q, opt, began.UnixMilli())
	if err != nil {
		return nil, err
	}
	if err := p.plan(); err != nil {
		return nil, err
	}
	if len(p.roots) == 0 {
		return nil, ErrNoResults
	}
	if err := p.borrowRest(); err != nil {
		return nil, err
	}
	helpers := e.Readers.take(p.helpers())
	defer e.Readers.give(helpers)
	x := newExecutor(ctx, e, p)
	if err := x.run(helpers); err != nil {
		return nil, err
	}
	res := &Result{Start: p.start, Stats: x.stats, Missing: p.missing, Compat: opt.Compat, Older: opt.Older}
	if p.explain {
		res.Plan = x.explained()
	} else if res.Series = x.results(); len(res.Series) == 0 {
		return nil, ErrNoResults
	}
	res.QueryTime = e.Now().Sub(began)
	return res, nil
}
