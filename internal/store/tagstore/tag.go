package tagstore

import (
	"context"
	"errors"
	"fmt"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write"
)

// Tagger is the write.Tagger of a store.
type Tagger struct {
	Of *Store
	// Through takes the changes, on their way to the store; nil: they go to it.
	Through interface {
		Apply(ctx context.Context, list []tags.Change) (Applied, error)
	}
}

// Tag implements write.Tagger.
func (t Tagger) Tag(ctx context.Context, list []tags.Change,
	neverWait bool) (out write.TagResult, err error) {
	s, given := t.Of, tags.GivenTags{In: t.Of.index}
	var unknown []tags.Change
	for i := range list {
		if !given.Has(&list[i]) {
			unknown = append(unknown, list[i])
		}
	}
	if len(unknown) == 0 {
		return out, nil
	}
	if neverWait && s.full() {
		return out, fmt.Errorf("%w: %d bytes of changes of tags are not flushed", write.ErrHeldBack,
			s.Unflushed())
	}
	apply := s.Apply
	if t.Through != nil {
		apply = t.Through.Apply
	}
	a, err := apply(ctx, unknown)
	for _, r := range a.Refused {
		switch {
		case errors.As(r.Err, new(*memory.Refusal)):
			return out, errors.Join(err, r.Err)
		case out.Refused == 0:
			out.Why = r.Err
		}
		out.Refused++
	}
	return out, err
}

// TagLosses implements write.Tagger.
func (t Tagger) TagLosses() uint64 { return tags.GivenTags{In: t.Of.index}.Losses() }
