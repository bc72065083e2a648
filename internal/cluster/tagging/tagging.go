// Package tagging gives each node of a cluster all tags: changes go to every other node at once,
// and comparisons bring what was missed. DESIGN.md beside it has the messages and the rules.
package tagging

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
)

// Tags are the tags of this node: a *tagstore.Store.
type Tags interface {
	Index() *tags.Index
	Apply(ctx context.Context, list []tags.Change) (tagstore.Applied, error)
	Adopt(ctx context.Context, list []tags.Change) (tagstore.Applied, error)
	WaitDurable(ctx context.Context, a tagstore.Applied) error
	Forget()
}

// Options are what the tags of a cluster need of a node. All functions may be called concurrently.
type Options struct {
	Self ring.ID
	Tags Tags
	Log  *loglimit.Logger

	// Ask is call.Calls.Ask.
	Ask func(ctx context.Context, to ring.ID, request []byte, part func([]byte) error) error
	// Define returns the definitions of buckets, Learn takes those of another node.
	Define func(buckets []uint64) []byte
	Learn  func(defined []byte) error
	// Delete does deletions that another node told of. They are durable when it returns. The error
	// wraps buckets.ErrUnknown where the bucket is gone.
	Delete func(ctx context.Context, bucket uint64, list []deletion.At) error
	// Exist reports which series have points on some node, as far as a read can tell.
	Exist func(ctx context.Context, bucket uint64, keys [][]byte) ([]bool, error)
	W     func() int           // disks that have a change before it is acknowledged
	Name  func(ring.ID) string // of a node, for people
	Check func() error         // why this node takes no part yet; nil: it does

	Timeout time.Duration // of a change
	Grace   time.Duration // so long a change waits for nodes beyond W
	Retry   time.Duration // after a comparison that failed
	Compare time.Duration // between comparisons with a node
}

// Tagging is the tags of a cluster, at one node. Its methods may be called concurrently.
type Tagging struct {
	exchange
	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	number  uint64 // of the last change or deletion that this node told of
	peers   map[ring.ID]*peer
	changed chan struct{} // closed when something of the above has changed
	begun   bool          // Members was called
	waiting bool          // for other nodes, after the start
	few     bool          // no majority is reached
	behind  bool          // queries wait until the nodes that are reached were compared
	expired expiryQueue

	counters counters
}

// New returns the tags of a node, which takes no part before Members is called. Close ends it.
func New(o Options) *Tagging {
	t := &Tagging{
		exchange: exchange{o: &o},
		peers:    make(map[ring.ID]*peer),
		changed:  make(chan struct{}),
		waiting:  true,
		behind:   true,
	}
	t.expired.wake = make(chan struct{}, 1)
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// NodeOf returns the number that changes bear of a node.
func NodeOf(id ring.ID) uint64 { return binary.LittleEndian.Uint64(id[:]) }

// Close ends everything that runs.
func (t *Tagging) Close() {
	t.mu.Lock() // behind it Members starts nothing
	t.stop()
	t.mu.Unlock()
	t.done.Wait()
}

// Serve answers a request of another node.
func (t *Tagging) Serve(ctx context.Context, _ ring.ID, request []byte,
	reply func(part []byte) error) error {
	if err := t.o.Check(); err != nil {
		return err
	}
	return t.serve(ctx, request, reply)
}

// Apply takes changes of clients, as tagstore.Store.Apply: they are in the index of this node when
// it returns, and on their way to the others.
func (t *Tagging) Apply(ctx context.Context, list []tags.Change) (tagstore.Applied, error) {
	if err := t.o.Check(); err != nil {
		return tagstore.Applied{}, err
	}
	a, err := t.o.Tags.Apply(ctx, list)
	refused := 0
	for i := range list {
		if refused < len(a.Refused) && a.Refused[refused].At == i {
			refused++
		} else if list[i].Clock != 0 {
			// after an error some were not taken; those that were say the same again
			t.broadcast(queuedChange{bucket: list[i].Bucket, change: tags.AppendChange(nil, &list[i])})
		}
	}
	return a, err
}

// HandleExpired takes series that lost their points here, as tagstore.Store.Share tells of them.
func (t *Tagging) HandleExpired(g tagstore.Gone) {
	switch {
	case g.Incarnation == 0:
		t.expired.add(g.Bucket, g.Series)
	case !t.noteMark(g.Incarnation):
		for _, id := range g.Series {
			t.broadcast(queuedChange{bucket: g.Bucket, deleted: deletedSeries{g.Bucket, g.Incarnation, id}})
		}
	}
}

// UnconfirmedError says that changes are on fewer disks than they need.
type UnconfirmedError struct{ Have, Need int }

// Error says what to do.
func (e *UnconfirmedError) Error() string {
	return fmt.Sprintf("changes of tags are on the disks of %d nodes, w = %d are needed: they may "+
		"stay; send them again when more nodes are up", e.Have, e.Need)
}

// WaitDurable waits until what was told so far is on W disks, and a moment longer for all nodes
// that are reached, so that they show it too. The error is an *UnconfirmedError where W were not
// there in time.
func (t *Tagging) WaitDurable(ctx context.Context, a tagstore.Applied) error {
	if err := t.o.Tags.WaitDurable(ctx, a); err != nil {
		return err
	}
	t.mu.Lock()
	number := t.number
	t.mu.Unlock()
	timeout := time.NewTimer(t.o.Timeout)
	defer timeout.Stop()
	var grace <-chan time.Time
	for {
		have, all, changed := t.copies(number)
		need := t.o.W()
		if have >= need && all {
			return nil
		}
		if have >= need && grace == nil {
			timer := time.NewTimer(t.o.Grace)
			defer timer.Stop()
			grace = timer.C
		}
		select {
		case <-changed:
		case <-grace:
			return nil
		case <-timeout.C:
			return &UnconfirmedError{have, need}
		case <-t.ctx.Done():
			return errStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errStopped = errors.New("this node stops")

// copies returns how many disks have what was told up to a number, and whether the disks of all
// reached nodes have it. changed is closed when one of these changes.
func (t *Tagging) copies(number uint64) (have int, all bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have, all = 1, true
	for _, p := range t.peers {
		if p.has(number) {
			have++
		} else if p.up {
			all = false
		}
	}
	return have, all, t.changed
}

// BehindError says that a node does not know all tags yet.
type BehindError struct{ Node string }

// Error says what the node waits for.
func (e *BehindError) Error() string {
	if e.Node == "" {
		return "this node has not reached the other nodes yet, and may not know all tags: ask another " +
			"node, or again in some seconds"
	}
	return fmt.Sprintf("this node has not compared its tags with node %s yet: ask another node, or "+
		"again in some seconds", e.Node)
}

// Ready returns an error while this node may not know all acknowledged tags. This is so after a
// start, and after a time with only a minority in reach, until it was compared with the nodes that
// it reaches.
func (t *Tagging) Ready() error {
	t.mu.Lock()
	behind, waiting := t.behind, t.waiting
	t.mu.Unlock()
	if !behind {
		return nil
	}
	if err := t.o.Check(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := true
	for _, p := range t.peers {
		if all = all && p.up; p.up && !p.met {
			return &BehindError{t.o.Name(p.id)}
		}
	}
	if waiting && !all {
		return &BehindError{}
	}
	t.behind = t.few
	return nil
}

// Reason returns what an error is counted under that only other nodes can put right, "" for any
// other one.
func Reason(err error) string {
	switch {
	case errors.As(err, new(*BehindError)):
		return "tags_behind"
	case errors.As(err, new(*UnconfirmedError)):
		return "tags_unconfirmed"
	}
	return ""
}

// EndStartWait says that the other nodes were reached, or waited for long enough.
func (t *Tagging) EndStartWait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = false
}

// Stats are of the exchange with other nodes.
type Stats struct {
	Told        uint64 // changes and deletions that this node told the others of
	Lost        uint64 // of these, times one was left to the next comparison with a node
	Comparisons uint64
	Differences uint64 // comparisons in which something moved
	Moved       uint64 // changes that went or came by comparisons
	Expired     uint64 // series whose tags went with their last points
	Queued      int64  // bytes
}

// Stats returns the present numbers.
func (t *Tagging) Stats() Stats {
	c := &t.counters
	s := Stats{
		Lost:        c.lost.Load(),
		Comparisons: c.comparisons.Load(),
		Differences: c.differences.Load(),
		Moved:       c.moved.Load(),
		Expired:     c.expired.Load(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Told = t.number
	for _, p := range t.peers {
		s.Queued += p.bytes
	}
	return s
}

func (t *Tagging) warn(what, text string, args ...any) {
	t.o.Log.Log(slog.LevelWarn, what, text, args...)
}
