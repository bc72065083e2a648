package gossip

import (
	"bytes"
	"cmp"
	"maps"
	"time"

	"github.com/grafana/dskit/kv/memberlist"

	"dalmatiner/internal/cluster/ring"
)

// register is the ring as it was committed last. It never changes.
type register struct {
	origin ring.ID // who founded the cluster
	firm   bool    // somebody has data: it gives way to no other cluster
	view   *ring.View
}

// supersedes reports whether r replaces old on every node that sees both. Of two clusters the one
// with data stays, two with data both do, and so do two with another ring_size. Else the one of
// more changes stays, and of two commits at once the one of the larger sum.
func (r *register) supersedes(old *register) bool {
	if old == nil || r == old {
		return old == nil
	}
	switch order, one := r.claim().compare(old.claim()); {
	case !one:
		return false
	case order != 0:
		return order > 0
	}
	// Addresses and protocols are in no version, but have to end equal everywhere, too.
	return bytes.Compare(appendRegister(nil, r), appendRegister(nil, old)) > 0
}

func (r *register) claim() claim {
	return claim{r.view.Partitions(), r.origin, r.firm, r.view.Version()}
}

// claim is what decides which of two rings stays.
type claim struct {
	partitions int
	origin     ring.ID
	firm       bool
	version    ring.Version
}

// compare returns which of two rings stays, and false if both do.
func (c claim) compare(o claim) (order int, one bool) {
	switch {
	case c.partitions != o.partitions, c.firm && o.firm && c.origin != o.origin:
		return 0, false
	case c.firm && !o.firm:
		return 1, true
	case o.firm && !c.firm:
		return -1, true
	}
	return cmp.Or(cmp.Compare(c.version.Number, o.version.Number),
		cmp.Compare(c.version.Sum, o.version.Sum)), true
}

// presence is what a node says of itself, with every heartbeat. It never changes.
type presence struct {
	node   ring.Candidate // without Free
	gossip string         // where it listens for gossip
	origin ring.ID        // the cluster it is in
	firm   bool
	ring   ring.Version // that it has
	beat   uint64       // grows with every heartbeat, over restarts, too
}

func (p *presence) supersedes(old *presence) bool {
	if old == nil || p.beat != old.beat {
		return old == nil || p.beat > old.beat
	}
	return bytes.Compare(appendPresence(nil, p), appendPresence(nil, old)) > 0
}

// isAheadOf reports whether the node has a ring that would replace another one.
func (p *presence) isAheadOf(of *register) bool {
	order, one := claim{p.node.Partitions, p.origin, p.firm, p.ring}.compare(of.claim())
	return one && order > 0
}

// state is what is gossiped: one ring, and the nodes. What it points to never changes, so a
// clone is cheap however many tokens there are.
type state struct {
	ring  *register // nil in a change of nodes only
	nodes map[ring.ID]*presence
}

// Merge is part of memberlist.Mergeable.
func (s *state) Merge(other memberlist.Mergeable, _ bool) (memberlist.Mergeable, error) {
	o, ok := other.(*state)
	if !ok || o == nil {
		return nil, nil
	}
	change := &state{nodes: make(map[ring.ID]*presence)}
	for id, p := range o.nodes {
		old := s.nodes[id]
		if p.supersedes(old) && (old != nil || len(s.nodes) < maxNodes) {
			s.nodes[id], change.nodes[id] = p, p
		}
	}
	if o.ring != nil && o.ring.supersedes(s.ring) {
		s.ring, change.ring = o.ring, o.ring
	}
	if change.ring == nil && len(change.nodes) == 0 {
		return nil, nil
	}
	return change, nil
}

// MergeContent is part of memberlist.Mergeable: a newer change of the same things makes an older
// one superfluous.
func (s *state) MergeContent() []string {
	var names []string
	if s.ring != nil {
		names = append(names, "ring")
	}
	for id := range s.nodes {
		names = append(names, id.String())
	}
	return names
}

// RemoveTombstones is part of memberlist.Mergeable. There are none: members leave by a commit.
func (s *state) RemoveTombstones(time.Time) (total, removed int) { return 0, 0 }

// Clone is part of memberlist.Mergeable.
func (s *state) Clone() memberlist.Mergeable { return &state{s.ring, maps.Clone(s.nodes)} }
