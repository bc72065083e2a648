package datagram

import (
	"net"
	"sync"
)

// Group is all sockets that a server has read from. Its methods may be called concurrently.
type Group struct {
	mu   sync.Mutex
	list []*Sockets
}

// Serve is Sockets.Serve for sockets that belong to the group from now on.
func (g *Group) Serve(s *Sockets, read func(*net.UDPConn) error) error {
	g.mu.Lock()
	g.list = append(g.list, s)
	g.mu.Unlock()
	return s.Serve(read)
}

// Drops returns the number of datagrams that the kernel has dropped at the sockets, because they
// came faster than they were read.
func (g *Group) Drops() (n uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.list {
		n += s.Drops()
	}
	return n
}
