package tagging

import (
	"slices"
	"sync"
	"time"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
)

// expiryQueue is series whose last points have expired on this node. Their tags go when no node has
// points.
type expiryQueue struct {
	wake chan struct{}

	mu   sync.Mutex
	list []expiredSeries
}

type expiredSeries struct {
	bucket uint64
	id     metric.SeriesID
}

const (
	maxExpired  = 1 << 20 // that wait; tags of further ones stay until they are removed
	leaveAtOnce = 256
)

func (e *expiryQueue) add(bucket uint64, ids []metric.SeriesID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids[:min(len(ids), maxExpired-len(e.list))] {
		e.list = append(e.list, expiredSeries{bucket, id})
	}
	signal(e.wake)
}

// first returns the first series that wait, all of one bucket.
func (e *expiryQueue) first() []expiredSeries {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for n < min(len(e.list), leaveAtOnce) && e.list[n].bucket == e.list[0].bucket {
		n++
	}
	return slices.Clone(e.list[:n])
}

func (e *expiryQueue) removeFirst(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = slices.Delete(e.list, 0, n)
}

// leave lets expired series leave their collections.
func (t *Tagging) leave() {
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-t.expired.wake:
		}
		for list := t.expired.first(); len(list) > 0; list = t.expired.first() {
			if err := t.leaveAll(list); err != nil {
				t.warn("tags expired", "the tags of series whose points have expired stay for now", "err", err)
				timer := time.NewTimer(t.o.Retry)
				select {
				case <-t.ctx.Done():
					timer.Stop()
					return
				case <-timer.C:
				}
				continue
			}
			t.expired.removeFirst(len(list))
		}
	}
}

// leaveAll lets series of a bucket leave their collections, but for those of which some node has
// points.
func (t *Tagging) leaveAll(list []expiredSeries) error {
	var keys [][]byte
	of := make(map[string][]tags.Change) // by keys
	for _, s := range list {
		tags.Copies{Of: t.o.Tags.Index()}.EachCollection(s.bucket, s.id, func(key, collection []byte) {
			if of[string(key)] == nil {
				keys = append(keys, slices.Clone(key))
			}
			of[string(key)] = append(of[string(key)], tags.Change{
				Bucket:     s.bucket,
				Key:        slices.Clone(key),
				Collection: slices.Clone(collection),
				Leave:      true,
			})
		})
	}
	if len(keys) == 0 {
		return nil
	}
	exist, err := t.o.Exist(t.ctx, list[0].bucket, keys)
	if err != nil {
		return err
	}
	var changes []tags.Change
	gone := uint64(0)
	for i, key := range keys {
		if !exist[i] {
			changes = append(changes, of[string(key)]...)
			gone++
		}
	}
	if _, err := t.Apply(t.ctx, changes); err != nil {
		return err
	}
	t.counters.expired.Add(gone)
	return nil
}
