package gossip

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// search is what a node knows of the addresses where it looks for others.
type search struct {
	mu      sync.Mutex
	missing map[string]searchFailure
}

// searchFailure is an address where nobody was found.
type searchFailure struct {
	why   error
	tries int
	said  time.Time // when the log had it last
}

const (
	probeTime = 2 * time.Second // that an address has to answer at all
	sayAgain  = time.Minute     // between two lines of the log about the same
)

// NotFound says what is wrong with each address where this node looks for others, while no other
// one is up.
func (n *Node) NotFound() (out []error) {
	if n.seesOthers() {
		return nil
	}
	n.search.mu.Lock()
	defer n.search.mu.Unlock()
	for _, addr := range slices.Sorted(maps.Keys(n.search.missing)) {
		out = append(out, n.search.missing[addr].why)
	}
	return out
}

// seesOthers reports whether another node is up.
func (n *Node) seesOthers() bool { return len(n.now.Load().up) > 1 }

// join looks for others until all who listen where we were told are known, again and again:
// they may start later, or have been cut off.
func (n *Node) join(ctx context.Context) {
	tick := time.NewTicker(n.o.Timeout)
	defer tick.Stop()
	for {
		for _, addr := range n.o.Join {
			if addr != n.Addr() && ctx.Err() == nil && !n.hasListener(addr) {
				_, err := n.kv.JoinMembers([]string{addr})
				n.noteSearch(ctx, addr, err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// noteSearch notes whether somebody was found at an address. While nobody was found at all the log
// says why: from the second try on, since nodes that are started together find each other by then.
func (n *Node) noteSearch(ctx context.Context, addr string, failed error) {
	var why error
	if failed != nil {
		why = whyNobody(ctx, addr)
	}
	n.search.mu.Lock()
	defer n.search.mu.Unlock()
	m := n.search.missing[addr]
	if why == nil || ctx.Err() != nil {
		delete(n.search.missing, addr)
		return
	}
	news := m.why == nil || m.why.Error() != why.Error()
	if m.tries++; news {
		m.said = time.Time{}
	}
	m.why = why
	if m.tries > 1 && !n.seesOthers() && time.Since(m.said) >= sayAgain {
		m.said = time.Now()
		n.o.Logger.Warn("no other node is found", "why", why, "gossip", failed)
	}
	n.search.missing[addr] = m
}

// whyNobody says why no node of this cluster was found at an address.
func whyNobody(ctx context.Context, addr string) error {
	d := net.Dialer{Timeout: probeTime}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("nobody listens at %s (%w): start a node there, or correct cluster.join", addr,
			err)
	}
	_ = conn.Close() // nothing was sent
	return fmt.Errorf("what listens at %s does not speak gossip with this cookie: set cluster.join "+
		"to the port of gossip of a member, "+
		"which is the one after its cluster.listen, and distributed_cookie to that of the cluster", addr)
}
