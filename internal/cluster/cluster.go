// Package cluster is a node of a cluster: it puts gossip, connections, the protocol and the data of
// the node together. What clients write and read goes through it, whichever nodes have the copies.
// DESIGN.md beside it says what runs where.
package cluster

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/certs"
	"dalmatiner/internal/cluster/eventing"
	"dalmatiner/internal/cluster/gossip"
	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/peer"
	"dalmatiner/internal/cluster/remote"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/cluster/tagging"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/write"
)

// Cluster is this node among the others. Its methods may be called concurrently.
type Cluster struct {
	o        Options
	id       ring.ID
	dir      string
	keeper   *certs.Keeper // nil without TLS
	listener net.Listener  // until peers have it
	log      *loglimit.Logger

	names   *names.Registry
	buckets *catalogue
	gossip  *gossip.Node
	peers   *peer.Peers
	wires   *wires
	calls   *call.Calls
	remote  *remote.Remote
	tags    *tagging.Tagging
	events  *eventing.Eventing
	commits *commits
	runtime
	follower

	counted atomic.Pointer[quorums] // of the ring that was asked for last
	ordered atomic.Int64            // bytes of the orders of streams

	changing chan struct{} // holds one while this node creates or deletes a bucket
}

// quorums are how many copies count under a ring.
type quorums struct {
	of            *ring.View
	r, w, nextW   int // nextW is w when the changes under way are complete
	n, next       int // copies, and those that there will be
	members, then int // that can own something now, and then
	gone          int // for good, and not replaced yet
}

// Open lets a node take part in its cluster. The store is open, and is closed behind Close.
func Open(o Options) (*Cluster, error) {
	o.complete()
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Cluster{
		o:        o,
		dir:      o.FS.PathJoin(o.Dir, "cluster"),
		log:      loglimit.New(o.Logger, o.Now),
		changing: make(chan struct{}, 1),
	}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Self returns the id of this node.
func (c *Cluster) Self() ring.ID { return c.id }

// View returns the ring as this node knows it.
func (c *Cluster) View() *ring.View { return c.gossip.View() }

// IsUp reports whether a node is up, and can be reached from here.
func (c *Cluster) IsUp(id ring.ID) bool { return c.canReach(id) && !(*c.away.Load())[id] }

// Gossip returns what the nodes agree on, for changes of the ring and values held in common.
func (c *Cluster) Gossip() *gossip.Node { return c.gossip }

// Points takes points for series of all nodes.
func (c *Cluster) Points() write.Target { return points{c} }

// Source reads series of all nodes.
func (c *Cluster) Source() source.Source { return taggedSource{c.remote.Source(), lookups{c}} }

// Store returns the buckets and series of the cluster. What concerns this node alone is that of its
// own store.
func (c *Cluster) Store() *Store { return &Store{Store: c.o.Store, c: c} }

// Quorums returns how many copies answer a read, and how many are on disk before a write is
// acknowledged.
func (c *Cluster) Quorums() (r, w int) {
	q := c.quorumsOf(c.View())
	return q.r, q.w
}

// Peers says what is known of the connections with each other node.
func (c *Cluster) Peers() []peer.Stats { return c.peers.Stats() }

// ready reports whether this node may answer for its copies, and knows whom else to ask.
func (c *Cluster) ready() bool {
	if c.pulse.takePause() {
		return false
	}
	c.runtime.mu.Lock()
	defer c.runtime.mu.Unlock()
	return c.core.Ready()
}

// hints returns what this node keeps for others of a series.
func (c *Cluster) hints(id metric.SeriesID, from, past uint64) []replication.Row {
	c.runtime.mu.Lock()
	defer c.runtime.mu.Unlock()
	return c.data.HintRows(id, from, past)
}

// submit gives a batch to the protocol, which answers the request.
func (c *Cluster) submit(request uint64, of replication.Batch) {
	c.input(func(t replication.Time, core *replication.Core) {
		c.data.NextBatch(of.Bucket)
		core.Submit(t, request, of)
	})
}

// learn takes what another node says of buckets.
func (c *Cluster) learn(news []replication.Bucket) error {
	o := replication.NewBuckets()
	for _, n := range news {
		o.Put(n)
	}
	return c.buckets.learn(o)
}

// put sends a frame to a peer, if there is a connection and room.
func (c *Cluster) put(to ring.ID, frame []byte) bool {
	version, connected := c.peers.Version(to)
	if c.o.lose() {
		return connected // lost on its way
	}
	return connected && c.peers.Send(to, version, frame)
}

// Close ends the part of a node in its cluster: it stays a member. Batches under way are waited for
// as long as they may take; whoever sends them is to be ended before.
func (c *Cluster) Close() error {
	var errs error
	if c.commits != nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.o.Pace.Timeout)
		c.commits.stop(ctx)
		cancel()
	}
	if c.tags != nil {
		c.tags.Close()
	}
	if c.events != nil {
		c.events.Close()
	}
	if c.core != nil {
		c.runtime.close()
	}
	if c.calls != nil {
		c.calls.Close()
	}
	if c.peers != nil {
		c.peers.Close()
		c.wires.close()
	} else if c.listener != nil {
		errs = errors.Join(errs, c.listener.Close())
	}
	if c.gossip != nil {
		errs = errors.Join(errs, c.gossip.Close())
	}
	if c.data != nil {
		errs = errors.Join(errs, c.data.Close())
	}
	if c.commits != nil {
		c.commits.abort()
	}
	c.log.Close()
	return errs
}
