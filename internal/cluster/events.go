package cluster

import (
	"cmp"
	"context"

	"dalmatiner/internal/cluster/eventing"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/write"
)

// Events are the events of the cluster: an events.Store. Those of the bucket that belongs to this
// node alone are its own.
type Events struct{ c *Cluster }

// Events returns the events of the cluster.
func (c *Cluster) Events() Events { return Events{c} }

func (e Events) storeOf(bucket string) events.Store {
	if isPrivate(bucket) {
		return e.c.o.Store.Events()
	}
	return e.c.events
}

// Write stores events: see eventing.Eventing. The token is that of Points.
func (e Events) Write(bucket string, list []events.Event) (events.Written, error) {
	w, err := e.storeOf(bucket).Write(bucket, list)
	w.Token = markToken(w.Token)
	return w, err
}

// Read is that of events.Store.
func (e Events) Read(ctx context.Context, bucket string, start, end int64,
	fn func(*events.Event) error) ([]events.Gap, error) {
	return e.storeOf(bucket).Read(ctx, bucket, start, end, fn)
}

// ReadBack is that of events.Store.
func (e Events) ReadBack(ctx context.Context, bucket string, start, end int64,
	fn func(*events.Event) error) ([]events.Gap, error) {
	return e.storeOf(bucket).ReadBack(ctx, bucket, start, end, fn)
}

// Count is that of events.Store.
func (e Events) Count(ctx context.Context, bucket string, start, end, step int64) ([]int64,
	[]events.Gap, error) {
	return e.storeOf(bucket).Count(ctx, bucket, start, end, step)
}

// Extent says what the part of this node of a Read goes through.
func (e Events) Extent(bucket string, start, end int64) (events.Extent, error) {
	return e.storeOf(bucket).Extent(bucket, start, end)
}

// Follow is that of events.Store.
func (e Events) Follow(bucket string, bytes int) (*events.Follower, error) {
	return e.storeOf(bucket).Follow(bucket, bytes)
}

// ExchangeStats says what nodes tell each other of events.
func (e Events) ExchangeStats() eventing.Stats { return e.c.events.Stats() }

// openEvents makes the events of the store those of all nodes.
func openEvents(c *Cluster) {
	o := &c.o
	c.events = eventing.New(eventing.Options{
		Self: c.id, Own: events.Copies{Local: o.Store.Events()}, Log: c.log, Now: o.Now,
		Private: isPrivate,
		Bucket:  o.Store.BucketByName,
		ByID: func(id uint64) (buckets.Info, bool) {
			k, ok := c.buckets.get(id)
			if !ok {
				return buckets.Info{}, false
			}
			info, err := o.Store.BucketByName(k.Name)
			return info, err == nil && info.ID == id
		},
		Known: func(id uint64) bool { _, ok := c.buckets.get(id); return ok },
		Durable: func(ctx context.Context, t write.Token) error {
			return o.Store.Intake().WaitDurable(ctx, t)
		},
		View: c.View, Up: c.IsUp, Reaches: c.canReach, Copies: c.buckets.copies,
		Quorum: func(v *ring.View, bucket uint64) eventing.Quorum {
			return eventQuorum(c, v, bucket)
		}, Agreed: c.agreed, Name: c.nameOf, Check: c.JoinError,
		Ask: func(ctx context.Context, to ring.ID, request []byte, part func([]byte) error) error {
			return ask(ctx, c, serviceEvents, to, request, part)
		},
		Define:  func(bucket uint64) []byte { return c.buckets.definitions([]uint64{bucket}) },
		Learn:   c.buckets.learnDefined,
		Timeout: o.Pace.Timeout, Compare: o.Pace.Compare, Retry: o.Pace.Resend, Follow: o.Pace.Silence,
	})
}

// eventQuorum returns how many owners of a bucket's events count.
func eventQuorum(c *Cluster, v *ring.View, bucket uint64) (q eventing.Quorum) {
	q.Reads, q.Writes = c.quorumOf(v, bucket)
	q.Next = cmp.Or(c.numbers(v, bucket).NextW, c.quorumsOf(v).nextW)
	return q
}
