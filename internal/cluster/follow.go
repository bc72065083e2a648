package cluster

import (
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// follower is what this node has seen of the others.
type follower struct {
	ups  atomic.Pointer[map[ring.ID]bool] // that can be reached; never changes
	away atomic.Pointer[map[ring.ID]bool] // in maintenance; never changes
	poke chan struct{}

	pulse  *pulse
	paused chan chan struct{} // gets what to close when the node has begun again with the others
	waits  atomic.Bool        // for members that are not reached yet

	// Of the goroutine that follows the ring.
	known   map[ring.ID]bool // connections are kept to them
	version ring.Version     // that the protocol was told
	told    map[ring.ID]bool // nodes in maintenance that the protocol was told of

	mu      sync.Mutex       // for what connections say
	linked  map[ring.ID]bool // there is a connection to them
	heard   map[ring.ID]bool // and one from them: without it they take this node for down
	renewed map[ring.ID]bool // it is another one than the protocol was told of
}

func (f *follower) begin(v *ring.View, self ring.ID, pace Pace) {
	f.poke, f.paused, f.pulse = make(chan struct{}, 1), make(chan chan struct{}), newPulse(pace)
	f.waits.Store(true)
	f.linked, f.heard, f.renewed = map[ring.ID]bool{}, map[ring.ID]bool{}, map[ring.ID]bool{}
	f.known, f.version, f.told = map[ring.ID]bool{}, v.Version(), map[ring.ID]bool{}
	f.ups.Store(&map[ring.ID]bool{self: true})
	f.away.Store(&map[ring.ID]bool{})
}

// canReach reports whether a node can be asked at all.
func (f *follower) canReach(id ring.ID) bool { return (*f.ups.Load())[id] }

// followRing looks at what gossip and connections say as it changes. At first, and after a pause,
// the node waits until all other members are reached, but not longer than it has patience.
func (c *Cluster) followRing() {
	c.done.Go(func() { c.pulse.run(c.ctx, c.paused) })
	c.done.Go(func() {
		patience := time.NewTimer(c.o.Pace.Patience)
		defer patience.Stop()
		again := time.NewTicker(c.o.Pace.Compare) // what found no room may find some
		defer again.Stop()
		for {
			changed := c.gossip.ChangeSignal()
			if c.look() {
				c.endStartWait()
			}
			select {
			case <-changed:
			case <-c.poke:
			case <-again.C:
			case <-patience.C:
				c.endStartWait()
			case done := <-c.paused:
				c.beginAgain()
				patience.Reset(c.o.Pace.Patience)
				close(done)
			case <-c.ctx.Done():
				return
			}
		}
	})
}

// endStartWait says that this node waits no longer for others.
func (c *Cluster) endStartWait() {
	if c.waits.CompareAndSwap(true, false) {
		c.tags.EndStartWait()
	}
}

// beginAgain lets this node wait for the others as at first: it did not run for so long that they
// may take it for down, and has missed what they said. Connections that they have ended look whole
// from here, so all are made again.
func (c *Cluster) beginAgain() {
	c.log.Log(slog.LevelWarn, "paused",
		"this node did not run for a while, and hears from the others before it serves", "at_least",
		c.pulse.limit)
	c.waits.Store(true)
	c.input(func(t replication.Time, core *replication.Core) { core.RejoinAfterPause(t) })
	c.follower.mu.Lock()
	clear(c.linked)
	clear(c.heard)
	c.follower.mu.Unlock()
	c.peers.Renew()
}

// look tells the protocol what has changed, and reports whether all members are up.
func (c *Cluster) look() (all bool) {
	view := c.View()
	c.keepConnections(view)
	ups := map[ring.ID]bool{c.id: true}
	all = true
	c.follower.mu.Lock()
	for _, m := range view.Members() {
		if m.ID == c.id {
			continue
		}
		if up := c.linked[m.ID] && c.heard[m.ID] && c.gossip.IsUp(m.ID); up {
			ups[m.ID] = true
		} else if m.State != ring.Removed {
			all = false
		}
	}
	renewed := maps.Clone(c.renewed)
	clear(c.renewed)
	c.follower.mu.Unlock()
	before := *c.ups.Load()
	reached := otherMembers(view, c.id, ups)
	c.tags.Members(reached)
	c.events.Members(reached)
	away := *c.away.Load()
	if view.Version() != c.version || !maps.Equal(before, ups) || len(renewed) > 0 ||
		!maps.Equal(c.told, away) {
		c.input(func(t replication.Time, core *replication.Core) {
			for id := range before {
				if !ups[id] {
					core.Peer(t, id, false)
				}
			}
			of := c.quorumsOf(view)
			q := replication.Quorums{R: of.r, W: of.w, NextW: of.nextW}
			if view.Version() != c.version {
				core.Ring(t, view, q)
			} else {
				core.Require(t, q)
			}
			for id := range c.told {
				core.Maintain(t, id, away[id])
			}
			for id := range away {
				core.Maintain(t, id, true)
			}
			for id := range ups {
				if !before[id] || renewed[id] {
					core.Peer(t, id, true)
				}
			}
		})
		c.version, c.told = view.Version(), away
	}
	c.ups.Store(&ups) // what its peers keep is unknown to the protocol by now, so reads ask them
	if c.JoinError() == nil {
		// What a node takes before it belongs to its cluster would be data, and would keep it from
		// joining: also one that is alone in a ring of its own yet, and has heard of the buckets before
		// the ring.
		value, err := c.gossip.Get(bucketsValue)
		if err == nil {
			err = c.buckets.follow(value)
		}
		if err != nil {
			c.log.Log(slog.LevelError, "buckets", "buckets of other nodes are not taken", "err", err)
		}
	}
	return all
}

// Maintain says which members leave reads and writes to others.
func (f *follower) Maintain(away map[ring.ID]bool) {
	if maps.Equal(*f.away.Load(), away) {
		return
	}
	f.away.Store(&away)
	wake(f.poke, true)
}

// otherMembers returns the members beside this one, and which of them are up.
func otherMembers(v *ring.View, self ring.ID, ups map[ring.ID]bool) map[ring.ID]bool {
	out := make(map[ring.ID]bool)
	for _, m := range v.Members() {
		if m.ID != self && m.State != ring.Removed {
			out[m.ID] = ups[m.ID]
		}
	}
	return out
}

// keepConnections connects to members, and forgets who is none any more.
func (c *Cluster) keepConnections(view *ring.View) {
	for _, m := range view.Members() {
		if m.ID == c.id || c.known[m.ID] {
			continue
		}
		if err := c.peers.Connect(m.ID); err != nil {
			c.log.Log(slog.LevelError, "connect", "no connection to a member is kept", "node", m.Name, "err",
				err)
			continue
		}
		c.known[m.ID] = true
	}
	for id := range c.known {
		if _, member := view.Member(id); !member {
			c.peers.Forget(id)
			c.wires.forget(id)
			delete(c.known, id)
		}
	}
}

// setReachable notes that frames can be sent to a peer, or no longer. It is called by its
// connection.
func (c *Cluster) setReachable(id ring.ID, _ uint16, up bool) {
	if up {
		c.wires.resetLine(id)
	} else {
		c.calls.DropPeer(id)
	}
	c.follower.mu.Lock()
	c.linked[id], c.renewed[id] = up, up
	c.follower.mu.Unlock()
	wake(c.poke, true)
}

// setConnected notes that a peer has connected to this node, or is connected no longer. It is
// called by its connection.
func (f *follower) setConnected(id ring.ID, up bool) {
	f.mu.Lock()
	f.heard[id] = up
	f.renewed[id] = f.renewed[id] || up
	f.mu.Unlock()
	wake(f.poke, true)
}

// addresses returns where a peer is reached: where it says now, and where it was when it joined.
func (c *Cluster) addresses(id ring.ID) (list []string) {
	list = c.gossip.Addresses(id)
	if m, ok := c.View().Member(id); ok {
		list = append(list, m.Addresses...)
	}
	return list
}
