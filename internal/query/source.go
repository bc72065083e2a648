package query

import "dalmatiner/internal/query/source"

// What an Engine reads, and what that says of itself: package source describes them.
type (
	Source     = source.Source
	Aggregator = source.Aggregator
	Elder      = source.Elder
	Index      = source.Index
	Bucket     = source.Bucket
	Lookup     = source.Lookup
	Hit        = source.Hit
	Tag        = source.Tag
	Cost       = source.Cost
	Unknown    = source.Unknown
)

// MaxRead is the most slots that the engine asks of a Source in one call.
const MaxRead = source.MaxRead

// ErrUnknownBucket is wrapped by the error for a bucket that does not exist.
var ErrUnknownBucket = source.ErrUnknownBucket
