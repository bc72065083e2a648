package cluster

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"time"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/certs"
	"dalmatiner/internal/cluster/gossip"
	"dalmatiner/internal/cluster/message"
	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/peer"
	"dalmatiner/internal/cluster/remote"
	"dalmatiner/internal/cluster/replica"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/metric"
)

// The bounds of a node.
const (
	maxFrame   = 8 << 20 // bytes; a batch has less than two mebibytes of rows and four of names
	queueBytes = 2 * maxFrame
	maxNames   = 64 << 20 // bytes, unless they are in use
	rowsPart   = 16       // of memory.limit for rows that wait for their copies
	maxHeld    = 256 << 20
	// differences that reads have met in a tick; of more, those that are met again
	maxFound = 64
	maxHints = 1 << 20 // in number; their bytes are bounded by Options.MaxHints

	callsServed, callsOfOne, callsWaiting = 16, 8, 256
)

// open opens everything in its order. What it has opened is closed by Close, also after an error.
func (c *Cluster) open() (err error) {
	o := &c.o
	if err := o.FS.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	if c.id, err = identity(o.FS, c.dir); err != nil {
		return err
	}
	if o.TLS != nil {
		if c.keeper, err = certs.Load(*o.TLS, certs.KeeperOptions{
			Interval: time.Minute,
			Now:      o.Now,
			Log:      o.Logger,
		}); err != nil {
			return err
		}
	}
	if c.listener, err = net.Listen("tcp", o.Listen); err != nil {
		return fmt.Errorf("cluster.listen: %w; choose another address", err)
	}
	start := time.Now()
	c.names = names.New(c.o.Store.Name, maxNames, func() int64 { return int64(time.Since(start)) })
	c.buckets = &catalogue{fs: o.FS, dir: c.dir, local: o.Store, logger: o.Logger, now: o.Now,
		share: func(b []byte) error { return c.gossip.Put(context.Background(), bucketsValue, b) },
		firm:  func() error { return c.gossip.HasData(context.Background()) }}
	if err := c.buckets.load(); err != nil {
		return err
	}
	openTags(c)
	openEvents(c)
	if err := c.openGossip(); err != nil {
		return err
	}
	if err := c.openData(start); err != nil {
		return err
	}
	if err := c.openWires(); err != nil {
		return err
	}
	if err := c.buckets.tell(); err != nil {
		return err
	}
	c.peers.Serve(c.listener)
	c.followRing()
	c.run(&c.waits)
	return nil
}

func (c *Cluster) openGossip() (err error) {
	o := &c.o
	addresses := o.Advertise
	if len(addresses) == 0 {
		addresses = []string{c.listener.Addr().String()}
	}
	text, _ := o.cookie()
	c.gossip, err = gossip.Open(gossip.Options{
		Node: ring.Candidate{ID: c.id, Name: o.Name, Addresses: addresses, Zone: o.Zone,
			Protocol: ring.Protocol{Min: protocol, Max: protocol}, Partitions: o.Partitions,
			HasData: c.buckets.any()},
		Copies: o.Copies, Listen: o.Gossip, Join: o.Join, Cookie: text, FS: o.FS, Dir: c.dir,
		Logger:    o.Logger,
		Heartbeat: o.Pace.Heartbeat, Timeout: o.Pace.Silence,
		Values: append([]gossip.Value{{Name: bucketsValue, Merge: mergeBuckets}}, o.Values...),
	})
	return err
}

// openData opens the copies of this node, and the protocol over them.
func (c *Cluster) openData(start time.Time) error {
	o := &c.o
	c.commits = newCommits(int(o.Memory.Share(rowsPart, maxHeld) / rowBytes))
	o.Memory.Add(memory.Pool{
		Name:  "cluster-rows",
		Holds: "rows of batches that wait for their copies",
		Limit: int64(c.commits.limit) * rowBytes,
		Use:   c.commits.memoryBytes,
	})
	o.Memory.Add(memory.Pool{
		Name:  "cluster-names",
		Holds: "names of series that nodes speak of",
		Limit: maxNames,
		Use:   c.names.Bytes,
	})
	o.Memory.Add(memory.Pool{
		Name:  "cluster-orders",
		Holds: "the order in which senders name series",
		Limit: orderBytes,
		Use:   c.ordered.Load,
	})
	copies, err := replica.Open(replica.Options{
		FS: o.FS, Dir: c.dir, Local: o.Store, Points: o.Store.Intake(), Names: c.names,
		Codec:     message.NewChanges(c.names),
		Partition: func(id metric.SeriesID) int { return c.View().Partition(id) },
		Copies:    func() int { return c.View().Copies(ring.Current) }, Own: c.buckets.copies,
		Known:   func(id uint64) bool { _, ok := c.buckets.get(id); return ok },
		Private: isPrivate, Now: o.Now, Logger: o.Logger, OnFailure: o.OnFatal,
		MaxHintBytes: o.MaxHints, MinFree: o.MinFree,
	})
	if err != nil {
		return err
	}
	c.runtime = runtime{data: copies, self: c.id, pace: o.Pace, start: start, now: o.Now,
		fatal: o.OnFatal,
		send: func(to ring.ID, m replication.Message) {
			c.wires.send(to,
				m)
		}, reply: c.commits.takeReply,
		toSync: make(chan struct{}, 1), toFile: make(chan struct{}, 1), toSum: make(chan struct{}, 1),
		found: make(chan difference, maxFound)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	view := c.View()
	q := c.quorumsOf(view)
	c.core = replication.New(replication.Config{Self: c.id, Boot: copies.Boot(), W: q.w, R: q.r,
		NextW: q.nextW, MaxHints: maxHints, Bucket: c.numbers, Classes: c.buckets.classes,
		Timeout: o.Pace.Timeout.Milliseconds(), Resend: o.Pace.Resend.Milliseconds(),
		CompareMS: o.Pace.Compare.Milliseconds(), DropMS: o.Pace.Drop.Milliseconds(),
		ComparePoints: int(int64(o.Pace.MoveRate) * int64(o.Pace.Tick) / int64(time.Second))},
		copies, view, c.time())
	c.publish()
	c.follower.begin(view, c.id, o.Pace)
	return nil
}

// openWires opens what speaks to other nodes.
func (c *Cluster) openWires() (err error) {
	o := &c.o
	boot := c.data.Boot()
	c.wires = &wires{put: c.put, learn: c.learn, log: c.log, of: make(map[ring.ID]*line),
		newEncoder: func() *message.Encoder {
			return message.NewEncoder(c.names, c.buckets.get, boot, maxFrame-1)
		},
		newDecoder: func() *message.Decoder { return message.NewDecoder(c.names) },
		receive: func(from ring.ID, m replication.Message) {
			c.input(func(t replication.Time, core *replication.Core) { core.Receive(t, from, m) })
		},
		call: func(from ring.ID, frame []byte) {
			if err := c.calls.Receive(from, frame); err != nil {
				c.wires.malformed(from, err)
			}
		}}
	c.remote, err = remote.New(remote.Options{
		Self: c.id, View: c.View, Up: c.IsUp, Reaches: c.canReach, R: func(v *ring.View,
			bucket uint64) int {
			r, _ := c.quorumOf(v, bucket)
			return r
		}, Copies: c.buckets.copies, Now: o.Now, Ready: c.ready, Member: c.JoinError,
		Ask: func(ctx context.Context, to ring.ID, request []byte, part func([]byte) error) error {
			return ask(ctx, c, serviceReads, to, request, part)
		},
		Local: o.Local, Private: isPrivate, Store: o.Store, Incarnation: o.Store.Incarnation,
		Hints: c.hints, HintKeys: c.data.HintKeys, Holders: c.mayKeep,
		Differs: func(bucket uint64, id metric.SeriesID, _, _ int64) {
			differ(c, bucket, id)
		}, Delay: o.Pace.Repair,
	})
	if err != nil {
		return err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	c.calls, err = call.New(call.Options{
		Serve: func(ctx context.Context, from ring.ID, request []byte, reply func([]byte) error) error {
			return serve(ctx, c, from, request, reply)
		}, Boot: binary.LittleEndian.Uint64(random[:]),
		Send: func(to ring.ID, frame []byte) bool {
			return c.put(to, slices.Insert(slices.Clone(frame), 0, channelCall))
		},
		Running: callsServed, PerPeer: callsOfOne, Waiting: callsWaiting})
	if err != nil {
		return err
	}
	_, cookie := o.cookie()
	options := peer.Options{
		Self: c.id, Name: o.Name, Cluster: "dalmatiner",
		Protocol: ring.Protocol{Min: protocol, Max: protocol}, Cookie: cookie,
		Address: c.addresses, Handler: func(from ring.ID, _ uint16, frame []byte) {
			c.wires.handle(from, frame)
		}, Reached: c.setReachable, Accepted: c.setConnected,
		MaxFrame: maxFrame, QueueBytes: queueBytes, MaxPeers: ring.MaxMembers, HalfOpen: 64,
		Handshake: o.Pace.Silence, Alive: o.Pace.Heartbeat, Silence: o.Pace.Silence,
		Backoff: peer.Backoff{First: o.Pace.Redial, Max: 20 * o.Pace.Redial}, Logger: o.Logger,
	}
	if c.keeper != nil {
		options.ServerTLS = c.keeper.Server
		options.ClientTLS = func(id ring.ID) *tls.Config { return c.keeper.Client(c.nameOf(id)) }
	}
	c.peers, err = peer.New(options)
	return err
}

// nameOf returns the name of a member, in whose certificate it is.
func (c *Cluster) nameOf(id ring.ID) string {
	if m, ok := c.View().Member(id); ok {
		return m.Name
	}
	return id.String() // nobody's
}
