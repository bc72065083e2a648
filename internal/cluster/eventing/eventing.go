// Package eventing makes the events of the nodes of a cluster one store: each event is on the nodes
// that own its hour of its bucket, reads ask all nodes, and comparisons bring what was missed.
// DESIGN.md beside it has the rules.
package eventing

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/write"
)

// Options are what the events of a cluster need of a node. All functions may be called
// concurrently.
type Options struct {
	Self ring.ID
	Own  events.Copies // those that this node has
	Log  *loglimit.Logger
	Now  func() time.Time

	// Bucket and ByID return buckets, as events.Options has them.
	Bucket func(name string) (buckets.Info, error)
	ByID   func(id uint64) (info buckets.Info, ok bool)
	// Known reports whether the cluster has a bucket, which the store of this node may not have: nil
	// says that it has all.
	Known func(id uint64) bool
	// Private reports whether a bucket belongs to each node alone.
	Private func(name string) bool
	// Durable waits until what a token of Own stands for is on disk.
	Durable func(ctx context.Context, t write.Token) error

	View    func() *ring.View
	Up      func(ring.ID) bool      // a node is reached, and in no maintenance
	Reaches func(ring.ID) bool      // a node can be asked
	Copies  func(bucket uint64) int // n of a bucket that has one of its own, else 0
	Quorum  func(v *ring.View, bucket uint64) Quorum
	// Agreed reports whether all members that are up know a ring, or a later one. A node with an older
	// ring reads by that one. nil: they always do.
	Agreed func(v *ring.View) bool
	Name   func(ring.ID) string // of a node, for people
	Check  func() error         // why this node takes no part yet; nil: it does

	// Ask is call.Calls.Ask.
	Ask func(ctx context.Context, to ring.ID, request []byte, part func([]byte) error) error
	// Define returns the definition of a bucket, Learn takes that of another node.
	Define func(bucket uint64) []byte
	Learn  func(defined []byte) error

	Timeout time.Duration // of a write
	Compare time.Duration // between comparisons with a node
	Retry   time.Duration // after one that failed
	Follow  time.Duration // after which nodes say again which live tails they have
}

// Quorum is how many owners of a piece count.
type Quorum struct {
	Reads  int // that answer, so that nothing is missing
	Writes int // that have an event on disk before it is acknowledged
	Next   int // of the owners after a change of the ring that is under way
}

// Eventing is the events of a cluster, at one node. It is an events.Store; tokens are those of
// Options.Durable.
type Eventing struct {
	o     Options
	boot  uint64        // a number of this start
	shown atomic.Uint64 // messages for live tails so far
	ctx   context.Context
	stop  context.CancelFunc
	done  sync.WaitGroup

	// taking is held by who stores events under a ring: once it was free, nobody stores under an older
	// one.
	taking sync.RWMutex
	copied copiedClasses
	recent sync.Mutex // of copied, beside taking

	mu      sync.Mutex
	peers   map[ring.ID]*peer
	version ring.Version // that Members was called under
	held    bool         // moves wait
	closed  bool

	counters counters
}

type counters struct {
	unconfirmed, comparisons, differences, fetched, missed atomic.Uint64
}

// New returns the events of a node, which compares with nobody before Members is called. Close ends
// it.
func New(o Options) *Eventing {
	e := &Eventing{o: o, boot: rand.Uint64(), peers: make(map[ring.ID]*peer)}
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e
}

// Close ends everything that runs.
func (e *Eventing) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.done.Wait()
}

// startTask starts something, unless this node stops.
func (e *Eventing) startTask(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.done.Go(f)
	return true
}

var errStopped = errors.New("this node stops")

// peer is another member.
type peer struct {
	id     ring.ID
	ctx    context.Context
	cancel context.CancelFunc
	poke   chan struct{} // compare now
	tails  tails

	// Guarded by Eventing.mu:
	up      bool
	pushing int64        // bytes of events on their way to it
	fetched ring.Version // all that it has of what this node owns under that ring is here
}

// Members says who the other members are, and which of them are reached. It is called when that or
// the ring has changed.
func (e *Eventing) Members(others map[ring.ID]bool) {
	version := e.o.View().Version()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	renewed := e.version != version
	e.version = version
	for id, up := range others {
		p := e.peers[id]
		if p == nil {
			p = &peer{id: id, poke: make(chan struct{}, 1)}
			p.tails.begin()
			p.ctx, p.cancel = context.WithCancel(e.ctx)
			e.peers[id] = p
			e.done.Go(func() { e.compareWith(p) })
			e.done.Go(func() { e.showTo(p) })
			e.done.Go(func() { e.tellOf(p) })
		}
		if up && (renewed || !p.up) {
			poke(p.poke)
			poke(p.tails.tell)
		}
		p.up = up
	}
	for id, p := range e.peers {
		if _, ok := others[id]; !ok {
			p.cancel()
			delete(e.peers, id)
		}
	}
}

// peer returns another member, nil if it is none.
func (e *Eventing) peer(id ring.ID) *peer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peers[id]
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look
	}
}

// Hold says whether moves wait.
func (e *Eventing) Hold(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = on
	for _, p := range e.peers {
		poke(p.poke)
	}
}

// pieceOf returns the partition that the events of a bucket belong to that are of one hour.
func pieceOf(v *ring.View, bucket uint64, hour int64) int {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], bucket)
	binary.LittleEndian.PutUint64(b[8:], uint64(hour))
	var id metric.SeriesID
	binary.BigEndian.PutUint64(id[:], xxh3.Hash(b[:]))
	return v.Partition(id)
}

// Stats are of the exchange with other nodes.
type Stats struct {
	Unconfirmed uint64 // events that had fewer owners in time than they need
	Comparisons uint64
	Differences uint64 // comparisons that brought something
	Fetched     uint64 // events that they brought
	Missed      uint64 // events that live tails of other nodes missed
}

// Stats returns the numbers since the start.
func (e *Eventing) Stats() Stats {
	c := &e.counters
	return Stats{c.unconfirmed.Load(), c.comparisons.Load(), c.differences.Load(), c.fetched.Load(),
		c.missed.Load()}
}

func (e *Eventing) warn(what, text string, args ...any) {
	e.o.Log.Log(slog.LevelWarn, what, text, args...)
}

// Extent says what the part of this node of a Read goes through.
func (e *Eventing) Extent(bucket string, start, end int64) (events.Extent, error) {
	return e.o.Own.Extent(bucket, start, end)
}
