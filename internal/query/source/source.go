// Package source is the seam between queries and what they read: planning and execution
// see this interface, never a store.
package source

import (
	"context"
	"errors"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/dql"
)

// Source is what queries read. It may be used by several queries at once.
type Source interface {
	// Bucket returns the bucket of that name, or an error that wraps
	// ErrUnknownBucket.
	Bucket(name string) (Bucket, error)

	// Metrics calls fn once for every key of the bucket that starts with
	// prefix, in any order, until fn returns false. The key is valid during
	// the call.
	Metrics(ctx context.Context, b Bucket, prefix []byte, fn func(key []byte) bool) error

	// Exists reports whether a metric is there, with points or not.
	Exists(ctx context.Context, b Bucket, key []byte) (bool, error)

	// BucketNames returns the names of all buckets, for suggestions.
	BucketNames() []string

	// Read fills dst with the words of the slots [from, from+len(dst)); unset
	// slots become 0. A metric that does not exist has only unset slots. A query
	// asks for at most MaxRead slots at once and never for slots below 0. key
	// and dst are the caller's. What it says of its cost is for EXPLAIN.
	Read(ctx context.Context, b Bucket, key []byte, from int64, dst []uint64) (Cost, error)
}

// MaxRead is the most slots that a query asks of a Source in one call.
const MaxRead = 65536

// Bucket is what queries know of a bucket.
type Bucket struct {
	ID         uint64
	Name       string
	Resolution int64 // ms per slot
	TTL        int64 // in slots; 0 = points live for ever
}

// ErrUnknownBucket is wrapped by the error for a bucket that does not exist.
var ErrUnknownBucket = errors.New("unknown bucket")

// Aggregator is a Source that can add up slots itself, without reading each.
type Aggregator interface {
	// Aggregate fills dst with the aggregates of the slots
	// [from+i×step, from+(i+1)×step); offsets count from the first of them, and
	// Count is 0 where none is set. The float parts of the sums are those of
	// sumtree.Tree. from may be below 0, where nothing is set. It may be called by
	// several goroutines at once.
	Aggregate(ctx context.Context, b Bucket, key []byte, from, step int64, dst []chunk.Header) (Cost, error)
}

// Elder is a Source that can show what lies below what was lost.
type Elder interface {
	// ReadOlder is Read, but where slots are unknown dst has the older values that may
	// have been overwritten. Cost names these slots as that of Read does.
	ReadOlder(ctx context.Context, b Bucket, key []byte, from int64, dst []uint64) (Cost, error)
}

// Index is a Source that finds series by their tags. Lookups are refused where
// the source is none.
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
}

// Hit is a series that a lookup found.
type Hit struct {
	Bucket Bucket
	Key    []byte
	Tags   []Tag
}

// Tag is a tag of a series. Without a namespace it is in the empty one.
type Tag struct {
	dql.DimVar
	Value string
}
