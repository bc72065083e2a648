package cluster

import (
	"context"
	"fmt"
	"time"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/cluster/tagging"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query/finder"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write"
)

// Tags are the tags of the cluster: this node has all of them, and what it is told goes to all
// nodes.
type Tags struct {
	*tagstore.Store
	c *Cluster
}

// Tags returns the tags of the cluster.
func (c *Cluster) Tags() Tags { return Tags{c.o.Store.Tags(), c} }

// Apply takes changes: see tagging.Tagging. Those of a bucket that belongs to this node alone are
// refused.
func (t Tags) Apply(ctx context.Context, list []tags.Change) (tagstore.Applied, error) {
	own := make(map[uint64]bool)
	for _, info := range t.c.o.Store.Buckets() {
		own[info.ID] = isPrivate(info.Name)
	}
	var refused []tagstore.Refusal
	taken, at := make([]tags.Change, 0, len(list)), make([]int, 0, len(list))
	for i := range list {
		if own[list[i].Bucket] {
			refused = append(refused,
				tagstore.Refusal{At: i,
					Err: fmt.Errorf("%w: bucket %s of a cluster has no tags: it belongs to each node alone",
						tags.ErrLimit, SelfMetrics)})
			continue
		}
		taken, at = append(taken, list[i]), append(at, i)
	}
	a, err := t.c.tags.Apply(ctx, taken)
	for _, r := range a.Refused {
		refused = append(refused, tagstore.Refusal{At: at[r.At], Err: r.Err})
	}
	a.Refused = refused
	return a, err
}

// WaitDurable waits until what was applied is on the disks of w nodes: see tagging.Tagging.
func (t Tags) WaitDurable(ctx context.Context, a tagstore.Applied) error {
	return t.c.tags.WaitDurable(ctx, a)
}

// Ready returns an error while this node may not know all tags: see tagging.Tagging.
func (t Tags) Ready() error {
	if t.c.pulse.takePause() {
		return &tagging.BehindError{}
	}
	return t.c.tags.Ready()
}

// Tagger takes the tags that come with points. They are not waited for: what is lost on the way to
// other nodes they get by comparisons.
func (t Tags) Tagger() write.Tagger { return tagstore.Tagger{Of: t.Store, Through: t} }

// ExchangeStats says what nodes tell each other of tags.
func (t Tags) ExchangeStats() tagging.Stats { return t.c.tags.Stats() }

// openTags makes the tags of the store those of all nodes.
func openTags(c *Cluster) {
	o := &c.o
	c.tags = tagging.New(tagging.Options{
		Self: c.id, Tags: o.Store.Tags(), Log: c.log,
		Ask: func(ctx context.Context, to ring.ID, request []byte, part func([]byte) error) error {
			return ask(ctx, c, serviceTags, to, request, part)
		},
		Define: c.buckets.definitions, Learn: c.buckets.learnDefined,
		Delete: func(ctx context.Context, bucket uint64, list []deletion.At) error {
			return deleteTagged(ctx, c, bucket, list)
		},
		Exist: func(ctx context.Context, bucket uint64, keys [][]byte) ([]bool, error) {
			return c.remote.Exist(ctx, bucket, keys)
		},
		W:    func() int { _, w := c.Quorums(); return w },
		Name: c.nameOf, Check: c.JoinError,
		Timeout: o.Pace.Timeout, Grace: time.Second, Retry: o.Pace.Resend, Compare: o.Pace.Compare,
	})
	o.Store.Tags().Share(tagging.NodeOf(c.id), c.tags.HandleExpired)
}

// deleteTagged does deletions that another node told of with tags. The protocol has to know of
// them: it may be asked for points from before.
func deleteTagged(ctx context.Context, c *Cluster, bucket uint64, list []deletion.At) error {
	of, ok := c.buckets.get(bucket)
	if !ok {
		return fmt.Errorf("%w with id %016x", buckets.ErrUnknown, bucket)
	}
	news := make([]replication.Deletion, len(list))
	for i, at := range list {
		if news[i] = (replication.Deletion{Series: at.ID, Incarnation: at.Incarnation}); of.Info().HPTS {
			news[i].Series = at.ID.Value()
		}
		c.names.NoteBucket(news[i].Series, bucket)
	}
	var position replication.Position
	err := errStopped
	c.input(func(_ replication.Time, core *replication.Core) {
		err = core.NoteDeletions(news)
		position = core.AwaitedPosition()
	})
	if err != nil {
		return err
	}
	return c.data.Durable(ctx, position)
}

// definitions returns the definitions of buckets that are known, for another node.
func (c *catalogue) definitions(ids []uint64) []byte {
	some := replication.NewBuckets()
	for _, id := range ids {
		if k, ok := c.get(id); ok {
			some.Put(k)
		}
	}
	return appendBuckets(nil, some)
}

// learnDefined takes definitions of another node.
func (c *catalogue) learnDefined(encoded []byte) error {
	some, err := parseBuckets(encoded)
	if err != nil {
		return err
	}
	for _, k := range some.All() {
		if _, ok := c.get(k.ID()); !ok {
			return c.learn(some)
		}
	}
	return nil
}

// The services of a node: the first byte of a request to it.
const (
	serviceReads   = 1
	serviceTags    = 2
	serviceEvents  = 3
	serviceBuckets = 4
)

// ask asks a service of another node.
func ask(ctx context.Context, c *Cluster, service byte, to ring.ID, request []byte,
	part func([]byte) error) error {
	return c.calls.Ask(ctx, to, append([]byte{service}, request...), part)
}

// serve answers a request of another node.
func serve(ctx context.Context, c *Cluster, from ring.ID, request []byte,
	reply func(part []byte) error) error {
	if len(request) > 0 {
		switch body := request[1:]; request[0] {
		case serviceReads:
			begun := time.Now()
			defer func() { c.throttle.read(time.Since(begun)) }()
			return c.remote.Serve(ctx, from, body, reply)
		case serviceTags:
			return c.tags.Serve(ctx, from, body, reply)
		case serviceEvents:
			return c.events.Serve(ctx, from, body, reply)
		case serviceBuckets:
			return c.serveBuckets(body, reply)
		}
	}
	return &call.Error{Peer: c.id, Code: call.Failed, Text: "it does not know this kind of request"}
}

// taggedSource is what queries read, with series by their tags.
type taggedSource struct {
	source.Source
	index lookups
}

// Offers says what the source can do.
func (s taggedSource) Offers() source.Offers {
	o := s.Source.Offers()
	o.Index = s.index
	return o
}

// lookups finds series by their tags, once this node knows all of them.
type lookups struct{ c *Cluster }

// Lookup implements source.Index.
func (l lookups) Lookup(ctx context.Context, q source.Lookup, fn func(source.Hit) bool) error {
	if err := l.c.tags.Ready(); err != nil {
		return err
	}
	index := finder.Index{Tags: l.c.o.Store.Tags().Index(), Buckets: l.c.remote}
	return index.Lookup(ctx, q, fn)
}
