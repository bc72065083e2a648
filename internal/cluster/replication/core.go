// Package replication is the protocol between the nodes of a cluster, as a state machine: it gets
// requests, messages and the time, and returns messages and replies. It has no goroutine,
// no clock and no network, so that a simulation can run it through anything and again.
package replication

import (
	"errors"
	"maps"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/metric"
)

// ErrFull is wrapped by the error of a Store whose disk has no room.
var ErrFull = errors.New("the disk is full")

// Position is a place in the log of a node. What lies up to a synced one is on disk.
type Position uint64

// Store is the data of this node. Its methods return at once: what they change is
// durable when Core.Synced has been called with their Position.
type Store interface {
	// Write stores rows of a batch that came first hand, and notes the key.
	Write(key Key, c Change) (Counts, Position, error)
	// Seen returns what a Write with the key returned, also before a restart.
	Seen(key Key) (Counts, Position, bool)
	// Settle lets the keys of a coordinator go that are of older boots than that of the batch, or
	// of this one with numbers below. It reports whether the batch is one of them by now.
	Settle(batch BatchID, below uint64) (old bool)
	// Merge stores copies from other nodes. Of two values the larger one stays.
	Merge(c Change) (Position, error)
	// KeepHint stores a hint and notes the key.
	KeepHint(key Key, h Hint) (Position, error)
	// DropHint removes a hint that was delivered.
	DropHint(number uint64)
	// Hints returns all hints, in the order of their numbers.
	Hints() []Hint
	// Account notes what became of the points of a batch.
	Account(batch BatchID, c Counts) (Position, error)

	// Incarnation returns that of a series, 0 if no deletion of it is known.
	Incarnation(series metric.SeriesID) uint64
	// Deletions returns what is known of a partition, of all if it is negative, sorted by series.
	Deletions(partition int) []Deletion
	// Chunks returns the digests of a partition in ascending order.
	Chunks(partition int) []ChunkDigest
	// Rows returns the points of a chunk.
	Rows(id ChunkID) []Row
	// Read returns slots of a series.
	Read(series metric.SeriesID, from, past uint64) []Slot
	// Holds returns the partitions of which it has points.
	Holds() []int
	// Drop removes the points of a partition.
	Drop(partition int)
}

// Hint is what an owner missed.
type Hint struct {
	Number uint64
	For    ring.ID
	Change Change
}

// Config is what a node must be told.
type Config struct {
	Self      ring.ID
	Boot      uint64 // grows with every start
	W, R      int
	MaxHints  int   // hints kept at most; beyond them writes to stand-ins are refused
	Timeout   int64 // of a batch or read, in ms
	Resend    int64 // ms
	CompareMS int64 // ms between comparisons of a node
}

// Time is the time of an input.
type Time struct {
	Steady int64  // ms, never steps back
	Wall   uint64 // ns since 1970, may jump
}

// Send is a message for another node.
type Send struct {
	To      ring.ID
	Message Message
}

// Reply answers a request of a client.
type Reply struct {
	Request uint64
	Batch   BatchID // of a write
	Counts  Counts  // of a write
	Done    bool    // every part has W copies on disk, or the read has R
	Slots   []Slot  // of a read
	Copies  int     // of a read: the fewest copies that know a slot
}

// Core is the protocol of one node. It is not for concurrent use.
type Core struct {
	config Config
	store  Store
	view   *ring.View
	up     map[ring.ID]bool
	now    Time
	synced Position

	hint    uint64            // number of the last hint
	waiting []onSync          // by position
	deliver map[uint64]*relay // by number of the hint
	highest uint64            // incarnation that was seen
	asked   map[ring.ID]bool  // peers whose deletions are still to be learned; nil: all are
	compare *comparisons
	reads   map[uint64]*read

	coordinator *coordinator

	sends   []Send
	replies []Reply
}

// onSync is what happens once the log is synced up to a position.
type onSync struct {
	at Position
	do func()
}

// New starts the protocol of a node. What it finds in its store is on disk.
func New(c Config, s Store, v *ring.View, t Time) *Core {
	core := &Core{config: c, store: s, view: v, now: t, up: map[ring.ID]bool{c.Self: true},
		deliver: make(map[uint64]*relay), asked: make(map[ring.ID]bool),
		reads: make(map[uint64]*read)}
	core.compare = newComparisons(core)
	core.coordinator = &coordinator{Core: core, batches: make(map[uint64]*batch)}
	for _, d := range s.Deletions(-1) {
		core.highest = max(core.highest, d.Incarnation)
	}
	for _, h := range s.Hints() {
		core.hint = max(core.hint, h.Number)
	}
	return core
}

// Take returns what is to be done, in order.
func (c *Core) Take() ([]Send, []Reply) {
	s, r := c.sends, c.replies
	c.sends, c.replies = nil, nil
	return s, r
}

// Receive takes a message of another node.
func (c *Core) Receive(t Time, from ring.ID, m Message) {
	c.now = t
	switch m := m.(type) {
	case Write:
		c.write(from, m)
	case Written:
		c.coordinator.written(from, m)
	case Deliver:
		c.delivery(from, m)
	case Delivered:
		c.delivered(from, m)
	case Learn:
		c.send(from, Known{Deletions: c.store.Deletions(-1)})
	case Known:
		c.learn(from, m)
	case Compare:
		c.compare.compared(from, m)
	case Difference:
		c.compare.differs(from, m)
	case Fill:
		c.compare.fill(from, m)
	case Filled:
		c.compare.filled(from, m)
	case Fetch:
		c.fetch(from, m)
	case Fetched:
		c.fetched(from, m)
	}
}

// Synced says that the log is on disk up to a position.
func (c *Core) Synced(t Time, upTo Position) {
	c.now = t
	c.synced = max(c.synced, upTo)
	for len(c.waiting) > 0 && c.waiting[0].at <= c.synced {
		do := c.waiting[0].do
		c.waiting = c.waiting[1:]
		do()
	}
}

// Ring says that the ring is another one.
func (c *Core) Ring(t Time, v *ring.View) {
	c.now = t
	c.view = v
	c.compare.restart()
	c.coordinator.plan()
}

// Peer says whether another node can be reached.
func (c *Core) Peer(t Time, id ring.ID, up bool) {
	c.now = t
	c.up[id] = up
	c.coordinator.plan()
}

// Tick lets time pass. It is to be called several times in each Config.Resend.
func (c *Core) Tick(t Time) {
	c.now = t
	c.askDeletions()
	c.coordinator.resend()
	c.relay()
	c.compare.startComparisons()
	c.resendReads()
}

// send sends to another node, or to this one.
func (c *Core) send(to ring.ID, m Message) {
	c.sends = append(c.sends, Send{To: to, Message: m})
}

// whenSynced does something once the log is on disk up to a position.
func (c *Core) whenSynced(at Position, do func()) {
	if at <= c.synced {
		do()
		return
	}
	i := len(c.waiting)
	for i > 0 && c.waiting[i-1].at > at {
		i--
	}
	c.waiting = slices.Insert(c.waiting, i, onSync{at, do})
}

func (c *Core) isUp(id ring.ID) bool { return c.up[id] }

// ready reports whether this node knows the deletions of all peers it reaches: only then
// it takes, compares and serves points.
func (c *Core) ready() bool { return c.asked == nil }

// askDeletions asks every peer that can be reached, until it has answered. Where none can,
// the node serves what it has: both sides of a partition go on.
func (c *Core) askDeletions() {
	if c.ready() {
		return
	}
	open := false
	for _, m := range c.view.Members() {
		if m.ID == c.config.Self || !c.up[m.ID] || c.asked[m.ID] {
			continue
		}
		open = true
		c.send(m.ID, Learn{})
	}
	if !open {
		c.asked = nil
	}
}

func (c *Core) learn(from ring.ID, m Known) {
	if c.raise(m.Deletions) == nil && !c.ready() {
		c.asked[from] = true
	}
}

// raise notes deletions that are news.
func (c *Core) raise(list []Deletion) error {
	var news []Deletion
	for _, d := range list {
		c.highest = max(c.highest, d.Incarnation)
		if d.Incarnation > c.store.Incarnation(d.Series) {
			news = append(news, d)
		}
	}
	if len(news) == 0 {
		return nil
	}
	_, err := c.store.Merge(Change{Deletions: news})
	return err
}

// sortedKeys makes everything that is sent depend on nothing but the inputs.
func sortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }
