package labels

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write"
)

const (
	// tagBatch is how many series are given their tags at once.
	tagBatch = 256

	// tagPause is how long no tags are given after some could not be stored. Their points
	// are, and bring them again.
	tagPause = time.Second
)

// Tagger gives series their tags: those that it does not know to have them. It is shared by all
// connections of a listener.
type Tagger struct {
	to       write.Tagger // nil gives none
	refusals *unacked.Refusals
	known    known
	paused   atomic.Int64 // until then, in ns since 1970
}

// NewTagger returns a tagger for a listener, whose memory is a pool of the budget. Tags that are
// not stored are counted among its refusals. Without a target it gives no tags.
func NewTagger(to write.Tagger, b *memory.Budget, listener string,
	refusals *unacked.Refusals) *Tagger {
	t := &Tagger{to: to, refusals: refusals}
	b.Add(t.known.pool(listener))
	return t
}

// TagBatch is the tags of one sender's series on their way. It is not for concurrent use.
type TagBatch struct {
	// NeverWait refuses tags where the sender would be held back.
	NeverWait bool

	t      *Tagger
	now    time.Time         // of Begin
	peer   netip.AddrPort    // of Begin
	losses uint64            // at Begin
	ids    []metric.SeriesID // of list
	next   uint32            // the known series that is expected next
	list   []tags.Change
}

// NewBatch returns a batch, for which Begin is called before the first Wants.
func (t *Tagger) NewBatch() TagBatch { return TagBatch{t: t} }

// Begin prepares for the series of points that have arrived now from a peer.
func (b *TagBatch) Begin(now time.Time, peer netip.AddrPort) {
	b.now, b.peer = now, peer
	if b.t.to != nil {
		b.losses = b.t.to.TagLosses()
	}
}

// Wants reports whether a series needs its tags: then Add is called with them.
func (b *TagBatch) Wants(bucket *buckets.Info, key []byte) bool {
	if b.t.to == nil || b.now.UnixNano() < b.t.paused.Load() {
		return false
	}
	id := metric.Series(bucket.ID, key)
	if b.t.known.has(id, b.losses, &b.next) || slices.Contains(b.ids, id) {
		return false
	}
	b.ids = append(b.ids, id)
	return true
}

// Add takes the tags of the series that Wants was last asked for. They stay in use until Give.
// Every so many series it gives them on; the error is that of Give.
func (b *TagBatch) Add(ctx context.Context, c tags.Change) error {
	b.list = append(b.list, c)
	if len(b.list) < tagBatch {
		return nil
	}
	return b.Give(ctx)
}

// Give gives series the tags that were added. What cannot be stored is counted; the points of
// these series are stored. An error means that nothing can be stored any more.
func (b *TagBatch) Give(ctx context.Context) error {
	if len(b.list) == 0 {
		return nil
	}
	defer func() {
		clear(b.list)
		b.list, b.ids = b.list[:0], b.ids[:0]
	}()
	done, err := b.t.to.Tag(ctx, b.list, b.NeverWait)
	if done.Refused > 0 {
		reason, ok := unacked.Refused(done.Why)
		if !ok {
			reason = "limit"
		}
		b.refuse(reason, done.Refused, done.Why)
	}
	if err == nil {
		b.t.known.add(b.ids, b.losses)
		return nil
	}
	reason, ok := unacked.Refused(err)
	if errors.Is(err, context.Canceled) {
		reason, ok = "shutdown", true
	}
	if !ok {
		return fmt.Errorf("storing tags: %w", err)
	}
	b.t.paused.Store(b.now.Add(tagPause).UnixNano())
	b.refuse(reason, len(b.list), err)
	return nil
}

// refuse counts tags that are not stored.
func (b *TagBatch) refuse(reason string, n int, why error) {
	for range n {
		b.t.refusals.Count("tags_"+reason, b.peer, []byte(why.Error()))
	}
}
