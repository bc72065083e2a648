package cluster

import (
	"context"
	"errors"
	"sync"

	"dalmatiner/internal/cluster/replica"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
)

// rowBytes is about what a row takes until its copies are there.
const rowBytes = 160

// errStopped is the error of points that come while the node stops.
var errStopped = errors.New("the node stops: send the points to another one")

// commits are what streams have handed over and has not been answered yet.
type commits struct {
	limit int // rows that may wait for their copies

	mu       sync.Mutex
	position uint64             // of the last token
	last     uint64             // request
	requests map[uint64]request // that wait for the protocol
	waiting  map[uint64]*commit // by the position of the token
	refusals write.Token        // the last that was counted, of commits that are done
	rows     int
	room     chan struct{} // closed and replaced when rows are done
	stopped  bool
	ended    chan struct{} // closed when no answers come any more
}

// request is a batch of commits, or one whose answer somebody waits for.
type request struct {
	of     *commit // nil: of none
	rows   int
	answer chan<- replication.Reply // has room
}

func newCommits(limit int) *commits {
	return &commits{limit: max(limit, replication.MaxRows), requests: make(map[uint64]request),
		waiting: make(map[uint64]*commit),
		room:    make(chan struct{}), ended: make(chan struct{})}
}

// commit is what a stream handed over at once, or in turn, if nobody wants a report of each.
type commit struct {
	queue    *commitQueue
	token    write.Token // of the last of them; zero: it is not complete
	batches  int         // without an answer
	counts   account.Counts
	refusals write.Token
	done     chan struct{} // closed when it is reported
}

// reserve makes room for rows, if need be when others are done. It is false where there is none,
// and the sender cannot wait.
func (c *commits) reserve(rows int, never bool) bool {
	for {
		c.mu.Lock()
		if c.rows+rows <= c.limit || c.rows == 0 || c.stopped {
			c.rows += rows
			c.mu.Unlock()
			return true
		}
		room := c.room
		c.mu.Unlock()
		if never {
			return false
		}
		<-room // every batch ends: its time is limited
	}
}

// memoryBytes returns about the memory of what waits.
func (c *commits) memoryBytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.rows) * rowBytes
}

// ask returns the number of a request whose answer comes over the channel.
func (c *commits) ask() (number uint64, answer <-chan replication.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan replication.Reply, 1)
	c.last++
	c.requests[c.last] = request{answer: ch}
	return c.last, ch
}

// takeReply takes the answer of the protocol to a batch.
func (c *commits) takeReply(r replication.Reply) {
	c.mu.Lock()
	q, ok := c.requests[r.Request]
	if !ok {
		c.mu.Unlock()
		return
	}
	delete(c.requests, r.Request)
	c.free(q.rows)
	if q.answer != nil {
		q.answer <- r
		c.mu.Unlock()
		return
	}
	counts := replica.CountsOf(r.Counts)
	of := q.of.queue
	q.of.counts.Add(&counts)
	q.of.batches--
	of.underway--
	c.mu.Unlock()
	of.settle()
	of.drain()
}

// free gives the room of rows back. The lock is held.
func (c *commits) free(rows int) {
	c.rows -= rows
	close(c.room)
	c.room = make(chan struct{})
}

// wait waits until a commit is done, and returns what else has to be durable.
func (c *commits) wait(ctx context.Context, position uint64) (refusals write.Token, err error) {
	c.mu.Lock()
	of := c.waiting[position]
	c.mu.Unlock()
	if of != nil {
		select {
		case <-of.done:
		case <-c.ended:
			return write.Token{}, errStopped
		case <-ctx.Done():
			return write.Token{}, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusals, nil
}

// open returns an error once the node stops.
func (c *commits) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	return nil
}

// stop takes no further commits, and waits for those that are under way until ctx ends.
func (c *commits) stop(ctx context.Context) {
	c.mu.Lock()
	c.stopped = true
	for len(c.requests) > 0 && ctx.Err() == nil {
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
	c.mu.Unlock()
}

// abort ends the waits for commits that will never be done.
func (c *commits) abort() { close(c.ended) }
