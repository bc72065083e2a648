package write

import (
	"context"
	"errors"

	"dalmatiner/internal/tags"
)

// ErrHeldBack is wrapped by the error of what would have had to wait, where the sender cannot.
var ErrHeldBack = errors.New("senders are held back")

// Tagger takes the tags of series. A protocol gives those of a series once, not with every point.
// Its methods may be called concurrently.
type Tagger interface {
	// Tag makes series have the tags that changes set, and the names; they say nothing else, have no
	// clock, and stay the caller's. Where a series is in the collection and something is known of each
	// of these tags, be it that it was removed, nothing is written: what an operator says stays.
	//
	// It waits while senders are held back, unless it must not: then the error wraps ErrHeldBack. Or
	// it is that of ctx, or wraps ErrDiskFull or *memory.Refusal: some of the changes may have been
	// taken then, and the rest may be tried again. After any other one nothing can be stored.
	Tag(ctx context.Context, list []tags.Change, neverWait bool) (TagResult, error)
	// TagLosses returns a number that grows whenever a series may have lost the tags it was
	// given: then they must be given again.
	TagLosses() uint64
}

// TagResult says what became of changes.
type TagResult struct {
	Refused int   // changes that are never taken: beyond a limit, or of a bucket that is gone
	Why     error // of the first of them
}
