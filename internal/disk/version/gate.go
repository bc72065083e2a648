package version

import (
	"errors"
	"sync"
)

// ErrClosed is for those who find the gate closed, and for readers who are not let in.
var ErrClosed = errors.New("the store is closed")

// Gate lets one at a time change what is committed: a flush, a deletion of series, the begin and
// the end of a merge. Closed it lets nobody change anything any more.
type Gate struct {
	mu     sync.Mutex
	closed bool
}

// Lock waits for its turn.
func (g *Gate) Lock() { g.mu.Lock() }

// TryLock is Lock where nobody has the gate, and reports whether it has it now.
func (g *Gate) TryLock() bool { return g.mu.TryLock() }

// Unlock lets the next one in.
func (g *Gate) Unlock() { g.mu.Unlock() }

// IsClosed reports whether the gate is closed. The caller has it.
func (g *Gate) IsClosed() bool { return g.closed }

// Close waits for its turn and closes the gate. Who comes behind it gets the gate all the same, and
// finds it closed.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
