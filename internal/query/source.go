package query

import "dalmatiner/internal/query/source"

// What an Engine reads, and what that says of itself: package source describes them.
type (
	Source  = source.Source
	Offers  = source.Offers
	Bucket  = source.Bucket
	Info    = source.Info
	Index   = source.Index
	Lookup  = source.Lookup
	Hit     = source.Hit
	Tag     = source.Tag
	Cost    = source.Cost
	Unknown = source.Unknown
)

// MaxRead is the most slots that the engine asks of a series in one call.
const MaxRead = source.MaxRead
