// Package replication is the protocol between the nodes of a cluster, as a state machine: it gets
// requests, messages and the time, and returns messages and replies. It has no goroutine,
// no clock and no network, so that a simulation can run it through anything and again.
package replication

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// ErrFull is wrapped by the error of a Store whose disk has no room.
var ErrFull = errors.New("the disk is full")

// ErrAbsent is wrapped by the error of a Store that has no place for rows of a bucket of the
// cluster: it may have one later.
var ErrAbsent = errors.New("the store has not this bucket of the cluster")

// ErrStaleBucket is wrapped by the error of a Store that knows that the bucket of rows was deleted.
var ErrStaleBucket = errors.New("the bucket was deleted")

// Position is a place in the log of a node. What lies up to a synced one is on disk.
type Position uint64

// Store is the data of this node. Its methods return at once: what they change is durable when
// Core.SyncedUpTo has been called with their Position. Changes are shared with messages that were
// not sent yet, so nobody writes to their slices.
type Store interface {
	// Write stores points of a batch that came first hand, and notes the key.
	Write(key Key, c Change) (Counts, Position, error)
	// PriorResult returns what a Write with the key returned, also before a restart.
	PriorResult(key Key) (Counts, Position, bool)
	// Settle lets the keys of a coordinator go that are of older boots than that of the batch, or
	// of this one with numbers below. It reports whether the batch is one of them by now.
	Settle(batch BatchID, below uint64) (old bool)
	// Merge stores copies from other nodes. Of two values the larger one stays. Where the error wraps
	// ErrAbsent, all other rows are stored.
	Merge(c Change) (Position, error)
	// KeepHint stores a hint and notes the key.
	KeepHint(key Key, h Hint) (Position, error)
	// DropHint removes a hint that was delivered.
	DropHint(number uint64)
	// Hints returns all hints, in the order of their numbers.
	Hints() []HintInfo
	// Hint returns what a hint brings; nothing if it is not here or cannot be read now.
	Hint(number uint64) (Change, bool)
	// HintRows returns the rows of slots of a series that hints bring.
	HintRows(series metric.SeriesID, from, past uint64) []Row
	// Account notes what became of the points of a batch.
	Account(batch BatchID, c Counts) (Position, error)

	// Incarnation returns that of a series, 0 if no deletion of it is known.
	Incarnation(series metric.SeriesID) uint64
	// Lives returns a number that is another one after any incarnation has become another one.
	Lives() uint64
	// Deletions returns what is known of a partition, of all if it is negative, sorted by series.
	Deletions(partition int) []Deletion
	// Prepare makes some of the digests of a share that Windows needs, and reports whether that has
	// all.
	Prepare(of Share) bool
	// Windows returns the digests of all windows of a share in which it has something, ascending.
	Windows(of Share) []WindowDigest
	// Chunks returns the digests of the chunks of a share in a window, ascending, of series behind
	// after: at most limit, but always whole series and at least one. more says that others follow.
	Chunks(of Share, window uint64, after metric.SeriesID, limit int) (list []ChunkDigest, more bool)
	// Chunk returns a chunk; one without points if there is none, or it cannot be read.
	Chunk(id ChunkID) Chunk
	// AdoptProgress returns the number of the last chunk that a Merge took for a file of its own, and
	// the bytes of those that are in none yet. Until then nothing shows of them, and a crash takes
	// them.
	AdoptProgress() (last uint64, waiting int64)
	// Read returns slots of a series.
	Read(series metric.SeriesID, from, past uint64) []Slot
	// Holds returns the shares of which it has points.
	Holds() []Share
	// Drop removes the points of a share.
	Drop(of Share)
}

// Hint is what an owner missed.
type Hint struct {
	Number uint64
	For    ring.ID
	Change Change
}

// HintInfo says which hint there is.
type HintInfo struct {
	Number uint64
	For    ring.ID
	Share
	Rows int
}

// Config is what a node must be told.
type Config struct {
	Self      ring.ID
	Boot      uint64 // grows with every start
	W, R      int
	NextW     int   // W when the changes under way are complete; 0: W
	MaxHints  int   // hints kept at most; beyond them writes to stand-ins are refused
	Timeout   int64 // of a batch or read, in ms
	Resend    int64 // ms
	CompareMS int64 // ms after which the next comparisons start
	DropMS    int64 // ms that a partition given up is kept after all its owners have all of it

	// Bucket returns the numbers of a bucket under a ring; nil: all have those of the ring.
	Bucket func(v *ring.View, id uint64) Numbers
	// Classes returns the n of all buckets that have one of their own, each once; nil: none has.
	Classes func() []int

	Comparisons   int    // that are under way at a time, with moves twice as many; 0: 4
	ComparePoints int    // points that comparisons of this node move in a tick; 0: MaxPoints
	HintRows      int    // rows of hints that are sent in a tick; 0: MaxRows
	Limits        Limits // of messages
}

// Numbers are how many copies a bucket has, and how many of them count. 0 stands for the number of
// the ring, and of Config.
type Numbers struct {
	Copies   int // n: of a bucket for all time
	W, NextW int
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
	up     map[ring.ID]bool // that can be reached
	away   map[ring.ID]bool // in maintenance: they can be reached, and others stand in for them
	now    Time
	synced Position
	noted  Position // the highest that the store has named

	hint       uint64   // number of the last hint
	waiting    []onSync // by position
	background *Background
	highest    uint64                     // incarnation that was seen
	asked      map[ring.ID]*learnProgress // peers whose deletions are to be learned; nil: all are
	compare    *comparisons
	relays     *relays
	keeping    *hintRegistry
	reads      map[uint64]*read
	stats      Stats

	coordinator *coordinator
	untouched   undeletedGroups

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
	c.Limits = c.Limits.orLargest()
	c.Comparisons = cmp.Or(c.Comparisons, 4)
	c.ComparePoints, c.HintRows = cmp.Or(c.ComparePoints, MaxPoints), cmp.Or(c.HintRows, MaxRows)
	if c.Bucket == nil {
		c.Bucket = func(*ring.View, uint64) Numbers { return Numbers{} }
	}
	if c.Classes == nil {
		c.Classes = func() []int { return nil }
	}
	core := &Core{config: c, store: s, view: v, now: t, up: map[ring.ID]bool{c.Self: true},
		away:  make(map[ring.ID]bool),
		asked: make(map[ring.ID]*learnProgress),
		reads: make(map[uint64]*read)}
	core.background = &Background{core: core}
	core.compare = newComparisons(core)
	core.keeping = newKeeping(core)
	core.relays = &relays{Core: core, deliver: make(map[uint64]*relay)}
	core.coordinator = &coordinator{Core: core, batches: make(map[uint64]*batch)}
	for _, d := range s.Deletions(-1) {
		core.highest = max(core.highest, d.Incarnation)
	}
	for _, h := range s.Hints() {
		core.hint = max(core.hint, h.Number)
		core.relays.kept++
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
	case WriteReply:
		c.coordinator.handleWriteReply(from, m)
	case Deliver:
		c.delivery(from, m)
	case DeliverReply:
		c.relays.handleDeliverReply(from, m)
	case Keeps:
		c.keeping.hear(from, m)
	case KeepsReply:
		c.keeping.handleKeepsReply(from, m)
	case AskKeeps:
		if c.up[from] { // else it would not hear of hints that come now
			c.keeping.answer(from)
		}
	case Learn:
		c.tellDeletions(from, m)
	case LearnReply:
		c.learnDeletions(from, m)
	case Compare:
		c.answerWindows(from, m)
	case CompareReply:
		c.compare.handleCompareReply(from, m)
	case ShareDeletions:
		c.shareDeletions(from, m)
	case ShareDeletionsReply:
		c.compare.sharedDeletions(from, m)
	case CompareChunks:
		c.answerChunks(from, m)
	case Difference:
		c.compare.difference(from, m)
	case Fill:
		c.answerFill(from, m)
	case FillReply:
		c.compare.handleFillReply(from, m)
	case Fetch:
		c.answerFetch(from, m)
	case FetchReply:
		c.takeFetched(from, m)
	}
}

// SyncedUpTo says that the log is on disk up to a position.
func (c *Core) SyncedUpTo(t Time, upTo Position) {
	c.now = t
	c.synced = max(c.synced, upTo)
	for len(c.waiting) > 0 && c.waiting[0].at <= c.synced {
		do := c.waiting[0].do
		c.waiting = c.waiting[1:]
		do()
	}
}

// Ring says that the ring is another one, and how many copies are needed under it. Both are said at
// once: with the quorums of the ring before a batch could be acknowledged that has too few copies
// under this one.
func (c *Core) Ring(t Time, v *ring.View, q Quorums) {
	c.now = t
	c.view = v
	c.config.require(q)
	c.compare.restart()
	c.keeping.restart()
	c.coordinator.plan()
	c.restartReads()
}

// Peer says whether another node can be reached. A node whose connection was lost and is back is
// said to be up again.
func (c *Core) Peer(t Time, id ring.ID, up bool) {
	c.now = t
	c.up[id] = up
	c.keeping.peer(id, up)
	if up {
		c.compare.noteUp(id)
	}
	c.coordinator.plan()
}

// RejoinAfterPause says that this node did not run for so long that others may take it for down: it
// has missed what they told, as after a start. It serves again when it has learned what it missed
// of all that are up by the next Tick.
func (c *Core) RejoinAfterPause(t Time) {
	c.now = t
	c.asked = make(map[ring.ID]*learnProgress)
	for _, m := range c.view.Members() {
		if m.ID != c.config.Self && c.up[m.ID] {
			c.Peer(t, m.ID, false)
		}
	}
}

// Tick lets time pass. It is to be called several times in each Config.Resend.
func (c *Core) Tick(t Time) {
	c.now = t
	c.askDeletions()
	c.keeping.tick()
	c.coordinator.resend()
	c.relays.tick()
	c.compare.tick()
	c.resendReads()
}

// send sends to another node, or to this one.
func (c *Core) send(to ring.ID, m Message) {
	c.sends = append(c.sends, Send{To: to, Message: m})
}

// whenSynced does something once the log is on disk up to a position.
func (c *Core) whenSynced(at Position, do func()) {
	c.noted = max(c.noted, at)
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

// isUp reports whether a node is asked as an owner.
func (c *Core) isUp(id ring.ID) bool { return c.up[id] && !c.away[id] }

// NoteDeletions notes deletions that are news, also such that other nodes told of beside the
// protocol. They are on disk when the log is synced up to AwaitedPosition.
func (c *Core) NoteDeletions(list []Deletion) error {
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
	at, err := c.store.Merge(Change{Deletions: news})
	c.noted = max(c.noted, at)
	return err
}

// sortedKeys makes everything that is sent depend on nothing but the inputs.
func sortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }
