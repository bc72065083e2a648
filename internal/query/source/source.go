// Package source is the seam between queries and what they read: planning and execution
// see these interfaces, never a store. Behind it may be one store or several nodes.
//
// A query takes a handle of each bucket and of each series once. A handle is an id and a
// hint, and is checked at each use: it never reads another bucket or series than the one it
// was taken for. What was deleted since is an error for a bucket and has no points for a
// series.
package source

import (
	"context"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/query/dql"
)

// Source is what queries read. It may be used by several queries at once.
type Source interface {
	// Offers says what the source can do. It is always the same.
	Offers() Offers

	// Bucket returns a handle of the bucket of that name, or an error that wraps
	// buckets.ErrUnknown. A handle is used by one query.
	Bucket(name string) (Bucket, error)

	// BucketNames returns the names of all buckets, for suggestions.
	BucketNames() []string
}

// Offers is what a source can do beside listing metrics and reading slots. What it does not
// offer is not asked of its handles.
type Offers struct {
	Aggregates bool  // Series.Aggregate
	Older      bool  // Series.ReadOlder
	Index      Index // finds series by their tags; nil refuses lookups

	Together Aggregator // nil: series are asked one by one
	// series that Together takes in a call; 0: a few. More save journeys to other nodes
	AtOnce int
}

// Aggregator aggregates series of a source, whichever their buckets, in less time than they
// take one by one.
type Aggregator interface {
	// AggregateEach is Series.Aggregate for one series after the other. It fills dst for each,
	// and calls each with its number; dst is the caller's until each returns. It ends with the
	// first error of each, which may be called with an error of its own before all series.
	AggregateEach(ctx context.Context, list []Series, from, step int64, dst []chunk.Header,
		each func(i int, cost Cost, err error) error) error
}

// Bucket is a handle of a bucket. One goroutine uses it.
type Bucket interface {
	// Info returns what queries know of the bucket.
	Info() Info

	// Metrics calls fn once for every key of the bucket that starts with
	// prefix, in any order, until fn returns false. The key is valid during
	// the call.
	Metrics(ctx context.Context, prefix []byte, fn func(key []byte) bool) error

	// Series returns a handle of a metric, whether or not there is one. key is the
	// caller's, and may be changed afterwards.
	Series(key []byte) Series

	// Mark returns the present moment of the bucket. Taken before the first read, it tells
	// later, with Since, which of the words that were read still hold.
	Mark() Mark

	// Since says what has not changed since a mark of a bucket of that name, from a slot on. A mark of
	// a bucket that was deleted, or of another source, says that nothing is known. What Since says
	// holds for reads that began behind the mark and ended before the call: what it calls unchanged, a
	// read that begins behind the call has again, unless it changes after the call.
	Since(m Mark, from int64) Unchanged
}

// Info is what queries know of a bucket.
type Info struct {
	ID         uint64 // tells it from other buckets of the source
	Name       string
	Resolution int64 // ms per slot
	TTL        int64 // in slots; 0 = points live for ever
}

// Series is a handle of a series. Several goroutines may use it at once.
//
// A slot that is asked for is set, unset, or unknown where damage took what was there: then
// it counts as unset, and Cost.Unknown has it. The coverage of a series is its set slots, the
// words that are not 0 or the Count of aggregates, among those asked for.
type Series interface {
	// Exists reports whether the metric is there, with points or not.
	Exists(ctx context.Context) (bool, error)

	// Read fills dst with the words of the slots [from, from+len(dst)); unset
	// slots become 0. A metric that does not exist has only unset slots. A query
	// asks for at most MaxSlots slots at once and never for slots below 0. dst is the
	// caller's.
	Read(ctx context.Context, from int64, dst []uint64) (Cost, error)

	// ReadOlder is Read, but where slots are unknown dst has the older values that may
	// have been overwritten. Cost names these slots as that of Read does.
	ReadOlder(ctx context.Context, from int64, dst []uint64) (Cost, error)

	// WithStale returns a handle of the same series whose Read and ReadOlder show stale markers
	// (point.Stale). They are unset otherwise, and in no aggregate.
	WithStale() Series

	// Aggregate fills dst with the aggregates of the slots
	// [from+i×step, from+(i+1)×step); offsets count from the first of them, and
	// Count is 0 where none is set. from may be below 0, where nothing is set.
	//
	// The float parts of the sums are those of sumtree.Tree: they depend on the slots
	// alone. So a source that has a series from several places may take the
	// aggregates of a step from the one place that has points in it, and must read
	// the slots where several have.
	Aggregate(ctx context.Context, from, step int64, dst []chunk.Header) (Cost, error)
}

// Counter gives numbers of events as series.
type Counter interface {
	// Counts returns a series whose slots are steps of time. The word of each is how many of
	// the events that are asked for lie in it. A step of which damage took events is unknown.
	// Errors in what is asked for are *dql.Error.
	Counts(of *dql.Events, steps Steps) (Series, error)
}

// Steps say what the slots of a series of numbers of events are, in unix ms: slot n begins at
// Offset + n × Length. Events from Until on are in none.
type Steps struct {
	Length, Offset, Until int64
}

// MaxSlots is the most slots that a query asks of a series in one call. A store takes more
// (reader.MaxRead).
const MaxSlots = 65536

// Index finds series by their tags.
type Index interface {
	// Lookup calls fn once for every series that l finds, in any order, until
	// fn returns false. The hit is the caller's.
	Lookup(ctx context.Context, l Lookup, fn func(Hit) bool) error
}

// Lookup is what is looked for.
type Lookup struct {
	Collection string
	Metric     []byte    // key of the metric; nil for all
	Where      *dql.Cond // nil for all

	// Series that certainly have no point in [Start, End), unix ms, may be left out.
	Start, End int64

	Tags []dql.DimVar // whose values are wanted in hits

	// Step is called with what the lookup did, in order, before Lookup returns; nil where
	// nobody asks.
	Step func(Step)

	// Memory lends what the lookup takes beside its hits; nil lends everything.
	Memory Memory

	// Miss is called before Lookup returns where it found nothing: with the reason, and quoted
	// texts that may be meant, nearest first. nil where nobody asks.
	Miss func(reason string, near []string)
}

// Memory lends memory before it is used. It is given back by who lent it.
type Memory interface{ Grow(bytes int64) error }

// Step is a part of a lookup. The steps that a part consists of come before it, one deeper.
type Step struct {
	Depth    int    `json:"depth"`
	What     string `json:"what"`
	Lists    int    `json:"lists"`    // postings lists that were read
	Postings int    `json:"postings"` // series in them
	Checked  int    `json:"checked"`  // series that were looked at one by one
	Found    int    `json:"found"`    // series that are left
}

// Hit is a series that a lookup found. Tags are those of Lookup.Tags that it has, and may be
// others, too.
type Hit struct {
	Bucket Bucket // a handle for the query that asked
	Key    []byte
	Tags   []Tag
}

// Tag is a tag of a series. Without a namespace it is in the empty one.
type Tag struct {
	dql.DimVar
	Value string
}
