package gossip

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/durable"
)

// fileName holds the last ring and the nodes known then.
const fileName = "cluster.members"

// heartbeat is the last heartbeat of a node, and when it came, on this node's clock.
type heartbeat struct {
	beat uint64
	at   time.Time // zero: it was known before this node looked, so it says nothing of now
}

// load returns the ring of the last run, or a new one with this node alone.
func (n *Node) load() (*state, error) {
	me := &n.o.Node
	f, err := n.o.FS.Open(n.o.FS.PathJoin(n.o.Dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return n.localState()
	} else if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxValue))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(b) < 8 || xxh3.Hash(b[8:]) != binary.LittleEndian.Uint64(b) {
		return nil, fmt.Errorf("%s in %s is damaged: %w", fileName, n.o.Dir, errMalformed)
	}
	s, err := new(parser).state(b[8:])
	if err == nil && s.ring == nil {
		err = errMalformed
	}
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", fileName, n.o.Dir, err)
	}
	if got := s.ring.view.Partitions(); got != me.Partitions {
		return nil, fmt.Errorf("ring_size of %s is %d, that of its cluster %d: set it back", me.Name,
			me.Partitions, got)
	}
	n.kept = s.ring
	return s, nil
}

func (n *Node) localState() (*state, error) {
	me := &n.o.Node
	c := ring.Config{Partitions: me.Partitions, Copies: n.o.Copies}
	empty, err := ring.New(c)
	if err != nil {
		return nil, err
	}
	c.Members = []ring.Member{
		{ID: me.ID, Name: me.Name, Addresses: me.Addresses, Zone: me.Zone, State: ring.Active,
			Tokens: empty.Tokens(n.rng), Protocol: me.Protocol}}
	view, err := ring.New(c)
	return &state{ring: &register{me.ID, me.HasData, view}, nodes: make(map[ring.ID]*presence)}, err
}

func (n *Node) keep(s *state) error {
	plain := appendState(nil, s)
	b := append(binary.LittleEndian.AppendUint64(nil, xxh3.Hash(plain)), plain...)
	return durable.WriteFile(n.o.FS, n.o.Dir, fileName, b)
}

// run sends heartbeats and looks at what has come, until the end.
func (n *Node) run(ctx context.Context) {
	tick := time.NewTicker(n.o.Heartbeat)
	defer tick.Stop()
	for {
		n.observe(n.state())
		select {
		case <-tick.C:
			n.beat(ctx)
			n.admit(ctx, n.state())
		case <-n.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (n *Node) state() *state {
	v, err := n.kv.Get(n.codec.id, n.codec)
	if s, ok := v.(*state); ok && err == nil {
		return s
	}
	return nil
}

// beat says that this node is up.
func (n *Node) beat(ctx context.Context) {
	err := n.kv.CAS(ctx, n.codec.id, n.codec, func(in any) (any, bool, error) {
		s := in.(*state)
		p := &presence{
			node:   n.o.Node,
			gossip: n.Addr(),
			origin: s.ring.origin,
			firm:   s.ring.firm,
			ring:   s.ring.view.Version(),
			beat:   uint64(time.Now().UnixMilli()),
		}
		p.node.HasData = n.hasData.Load()
		if old := s.nodes[p.node.ID]; old != nil {
			p.beat = max(p.beat, old.beat+1) // the clock was set back
		}
		return &state{nodes: map[ring.ID]*presence{p.node.ID: p}}, true, nil
	})
	if err != nil && ctx.Err() == nil {
		n.o.Logger.Warn("a heartbeat was not sent", "err", err)
	}
}

// observe tells callers what has changed. A ring is on disk before they see it.
func (n *Node) observe(s *state) {
	if s == nil {
		return
	}
	view, old := s.ring.view, n.now.Load()
	if !n.keptRing(s) && old != nil {
		view = old.view // with the next heartbeat again
	}
	now, up := time.Now(), map[ring.ID]bool{n.o.Node.ID: true}
	for id, p := range s.nodes {
		last, known := n.seen[id]
		if !known || p.beat > last.beat {
			if last.beat = p.beat; known {
				last.at = now
			}
			n.seen[id] = last
		}
		if !last.at.IsZero() && now.Sub(last.at) < n.o.Timeout {
			up[id] = true
		}
	}
	next := &snapshot{view: view, up: up, refused: refusals(s), nodes: maps.Clone(s.nodes)}
	n.now.Store(next)
	same := func(a, b error) bool { return a.Error() == b.Error() }
	if old == nil || old.view != next.view || !maps.Equal(old.up, up) ||
		!slices.EqualFunc(old.refused, next.refused, same) {
		n.announce()
	}
}

// keptRing puts a ring on disk that is not there yet, and reports whether it is. The log says once
// why it is not.
func (n *Node) keptRing(s *state) bool {
	if s.ring == n.kept {
		return true
	}
	if err := n.keep(s); err != nil {
		if err.Error() != n.unkept {
			n.o.Logger.Error("the ring of the cluster is not kept, and the one before stays: make space",
				"file", fileName, "err", err)
		}
		n.unkept = err.Error()
		return false
	}
	n.kept, n.unkept = s.ring, ""
	return true
}

// refusals says which nodes can not be members, in the order of their ids.
func refusals(s *state) (out []error) {
	for _, p := range s.candidates() {
		if p.firm && s.ring.firm && p.origin != s.ring.origin {
			out = append(out, fmt.Errorf("%w: %s belongs to another cluster with data: give it another "+
				"cookie", ring.ErrRefused, p.node.Name))
		} else if p.node.Partitions != s.ring.view.Partitions() {
			out = append(out, fmt.Errorf("%w: ring_size of %s is %d, that of the cluster %d: set it in "+
				"its configuration",
				ring.ErrRefused, p.node.Name, p.node.Partitions, s.ring.view.Partitions()))
		}
	}
	return out
}

// candidates returns the nodes that are no members, in the order of their ids.
func (s *state) candidates() (out []*presence) {
	for id, p := range s.nodes {
		if _, is := s.ring.view.Member(id); !is {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *presence) int {
		return slices.Compare(a.node.ID[:], b.node.ID[:])
	})
	return out
}

// admit lets empty nodes into an empty cluster. One member does it: that with the lowest id,
// while all are up.
func (n *Node) admit(ctx context.Context, s *state) {
	if s == nil || s.ring.firm || s.ring.view.IsChanging() {
		return
	}
	members := s.ring.view.Members()
	for i := range members {
		p := s.nodes[members[i].ID]
		if p == nil || p.node.HasData || !n.IsUp(members[i].ID) {
			return
		}
	}
	if len(members) == 0 || members[0].ID != n.o.Node.ID {
		return
	}
	var joins []ring.Change
	for _, p := range s.candidates() {
		if n.IsUp(p.node.ID) && !p.firm && p.node.Partitions == s.ring.view.Partitions() {
			joins = append(joins, ring.Change{Action: ring.Join, Member: p.node})
		}
	}
	// All at once: every commit makes every node build a ring. Where one of them is refused, the
	// others do not wait for it.
	if len(joins) > 1 && n.take(ctx, joins) == nil {
		return
	}
	for i := range joins {
		if err := n.take(ctx, joins[i:i+1]); err != nil && err.Error() != n.tried && ctx.Err() == nil {
			n.tried = err.Error()
			n.o.Logger.Warn("an empty node is not admitted", "node", joins[i].Member.Name, "err", err)
		}
	}
}

// take commits that empty nodes join, unless somebody has data by now.
func (n *Node) take(ctx context.Context, joins []ring.Change) error {
	return n.update(ctx, func(g *register) (*register, error) {
		if g.firm {
			return nil, nil
		}
		plan, err := g.view.Plan(joins, ring.Sizes{Empty: true}, n.rng)
		if err != nil {
			return nil, err
		}
		next, err := g.view.Commit(plan)
		if err != nil {
			return nil, err
		}
		return &register{g.origin, false, next}, nil
	})
}

// pull asks a node with a newer ring for everything, if that ring is not here a heartbeat after the
// node spoke of it: each message goes to a few nodes only, and one that none of them brought here
// would come with the next exchange of everything, up to pushPull later.
func (n *Node) pull(ctx context.Context) {
	tick := time.NewTicker(n.o.Heartbeat)
	defer tick.Stop()
	var heard ring.Version
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		p := n.newest()
		if p == nil {
			continue
		}
		if p.ring == heard && ctx.Err() == nil {
			_, _ = n.kv.JoinMembers([]string{p.gossip}) // it is tried again
		}
		heard = p.ring
	}
}

// newest returns the node with the ring of the most changes, among those that are up and whose ring
// would replace the one here; nil if there is none.
func (n *Node) newest() (newest *presence) {
	s := n.state()
	if s == nil {
		return nil
	}
	for id, p := range s.nodes {
		if id != n.o.Node.ID && n.IsUp(id) && p.isAheadOf(s.ring) &&
			(newest == nil || p.ring.Number > newest.ring.Number) {
			newest = p
		}
	}
	return newest
}

// hasListener reports whether a node that is up listens at an address.
func (n *Node) hasListener(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	s := n.state()
	if err != nil || host == "" || s == nil {
		return false
	}
	for id, p := range s.nodes {
		if p.gossip == addr && n.IsUp(id) {
			return true
		}
	}
	return false
}

// watch wakes the loop, and for a value everybody, when it changes.
func (n *Node) watch(ctx context.Context, c *sealedCodec) {
	n.kv.WatchKey(ctx, c.id, c, func(any) bool {
		if c == n.codec {
			n.poke()
		} else {
			n.announce()
		}
		return true
	})
}
