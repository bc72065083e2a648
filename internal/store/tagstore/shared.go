package tagstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/logrecord"
)

// sharing is what a store knows of the nodes that have its tags as well.
type sharing struct {
	node uint64     // id of this node, of changes that are made here
	told func(Gone) // nil: nobody is
}

// Gone is series that lost their points. Either they were deleted with their tags, or they have
// expired on this node and their tags are still there.
type Gone struct {
	Bucket      uint64
	Incarnation uint64 // 0: they have expired
	Series      []metric.SeriesID
}

// Share makes the tags those of several nodes: node is the id of this one. told is called with
// series whose points are gone; it returns at once and calls nothing of the store. Options.Shared
// is set, and nobody else uses the store yet.
func (s *Store) Share(node uint64, told func(Gone)) {
	s.sharing = sharing{node: node, told: told}
	tags.Copies{Of: s.index}.KeepDigests()
}

// Ready returns nil: a node on its own knows all tags.
func (s *sharing) Ready() error { return nil }

// gone tells of series that lost their points.
func (s *sharing) gone(bucket uint64, why logrecord.Reason, incarnation uint64, had,
	all []metric.SeriesID) {
	switch {
	case s.told == nil:
	case why == logrecord.Deleted && len(had) > 0:
		s.told(Gone{bucket, incarnation, had})
	case why == logrecord.Expired && len(all) > 0:
		s.told(Gone{bucket, 0, slices.Clone(all)})
	}
}

// DeletedError refuses a change that is not younger than the last deletion of its series.
type DeletedError struct{ Incarnation uint64 }

// Error says what became of the series.
func (e *DeletedError) Error() string { return "the series was deleted after it" }

// errNoClock refuses a change of another node that no node writes.
var errNoClock = errors.New("a change of tags of another node has no clock")

// Adopt takes changes that other nodes have taken. It is as Apply, but that changes older than
// their series are refused with a *DeletedError, and that a series may have more tags than Apply
// takes: whatever several nodes took together. What is removed for so long that nodes have
// forgotten it is passed over.
func (s *Store) Adopt(ctx context.Context, list []tags.Change) (Applied, error) {
	return applyAll(ctx, s, list, func(dst []byte, c *tags.Change) ([]byte, error) {
		return adopt(s, dst, c)
	})
}

// adopt is take for a change of another node.
func adopt(s *Store, dst []byte, c *tags.Change) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	n, ok := s.o.Incarnation(c.Bucket, c.Key)
	switch {
	case !ok:
		return dst, fmt.Errorf("%w with id %016x", buckets.ErrUnknown, c.Bucket)
	case c.Clock == 0:
		return dst, errNoClock
	case c.Clock <= n:
		return dst, &DeletedError{n}
	}
	if err := room(s, c); err != nil {
		return dst, err
	}
	if s.clock = max(s.clock, c.Clock); c.Clock <= s.o.forgotten() {
		c.Removed, c.Replace = nil, false
		if c.Leave {
			return dst, errForgotten
		}
	}
	if dst = tags.AppendChange(dst, c); len(dst) > logrecord.MaxTags {
		return dst, fmt.Errorf("%w: it has %d bytes, the limit is %d", tags.ErrLimit, len(dst),
			logrecord.MaxTags)
	}
	return dst, nil
}

// errForgotten passes over a series that left a collection so long ago that it need not be
// remembered.
var errForgotten = errors.New("it is older than what nodes remember of removals")

// forgotten returns up to which clock removals need not be remembered any more.
func (o *Options) forgotten() uint64 { return incarnation.ExpiredUpTo(o.Now()) }

// Forget forgets what has been removed for long. In a cluster all nodes do so in the same hour.
func (s *Store) Forget() { s.index.Forget(s.o.forgotten()) }
