package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/source"
)

// ErrNoResults is returned when a query is right and finds no series.
//
//lint:ignore ST1005 clients of the original look for this text
var ErrNoResults = errors.New("No results were returned for the query.")

// ErrUnsupported is wrapped by the error for a part of the language that the
// engine does not run.
var ErrUnsupported = errors.New("not supported yet")

// Options are what a plan is to respect beside the text of its query.
type Options struct {
	Shown
	Range
	Limits Limits
	Now    int64          // unix ms
	Zone   *time.Location // that is asked for; nil for none
	Asked  int64          // ms that were asked for, where Range is aligned; 0 = all of it
	Width  int            // above 0: at most that many columns per series; at most MaxWidth
	Memory Memory         // is asked before the query uses any; nil lends everything
	Events source.Counter // counts events; nil refuses that

	// NoAggregates reads slot by slot what a source could add up itself.
	NoAggregates bool

	// Older asks for the values below what was lost. It is ErrUnsupported where the
	// source does not offer them, and implies NoAggregates.
	Older bool

	Readers int // goroutines that a query may have beside its own; at most MaxReaders

	RoundSlots  int64 // 0 = the constant of that name
	CompatSlots int64 // of the original's reads, for compat; 0 = oldReadSlots
	// that no reader beside the query's own helps with; 0 = the constant of that name
	AloneSlots int64
}

// request is what is asked for, and of which source. Errors of planning are made of it, as
// they point into the text of the query.
type request struct {
	ctx    context.Context
	source source.Source
	offers source.Offers // of it
	q      *dql.Query
	opt    Options
}

func (r *request) errorAt(pos int, cause error, format string, args ...any) error {
	return dql.NewError(r.q.Text, pos, cause, fmt.Sprintf(format, args...))
}

func (r *request) unsupported(pos int, what string) error {
	return r.errorAt(pos, ErrUnsupported, "%v: %s", ErrUnsupported, what)
}

func (r *request) limit(pos int, what string, got, limit int64, remedy string) error {
	err := &LimitError{What: what, Got: got, Limit: limit, Remedy: remedy}
	return r.errorAt(pos, err, "%v", err)
}

func (r *request) tooManySeries(pos int, n int64) error {
	return r.limit(pos, "series to read", n, r.opt.Limits.MaxSeries, "make the pattern narrower")
}
