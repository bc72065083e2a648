// Package sim is for tests: it runs the protocol between nodes (package replication) over a
// simulated network and simulated disks. Everything that happens follows from a seed: the same
// seed gives the same history, message by message.
package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// Options say what is simulated.
type Options struct {
	Seed       uint64
	Nodes      int // members at the start
	Partitions int
	N, W, R    int // W = 0: the majority of the copies that there can be, as n and the members change
	MaxHints   int
	// n of the series with odd numbers, whose bucket has one of its own; 0: it has none
	Own    int
	Calm   bool // no message is lost, late or doubled
	Paging PageLimits
}

// PageLimits bounds what nodes send each other; where it is 0, as widely as they may.
type PageLimits struct {
	replication.Limits
	Comparisons, ComparePoints, HintRows int
	CompareMS, DropMS                    int64
}

// The times of the protocol and of what it stands on, in ms.
const (
	tick      = 20
	resend    = 100
	timeout   = 1500
	comparing = 60
	patience  = 250 // of a node that starts or goes on, for those that it does not reach
)

// Cluster is nodes, disks and the network between them.
type Cluster struct {
	options Options
	rng     *rand.Rand
	now     int64
	queue   queue
	serial  uint64
	nodes   []*node
	view    *ring.View
	held    bool            // an operator holds moves back
	leastW  int             // that was ever enough
	leastN  int             // copies that there ever were
	cut     map[[2]int]bool // from, to: nothing arrives
	deaf    *node           // it hears of no other ring
	away    map[int]bool    // nodes in maintenance
	requests
	bucketCopies
	history []string
	watch   func(from, to *node, m replication.Message) // sees all that is sent; nil: nobody looks
}

// check panics if a message is larger than it may be.
func (p PageLimits) check(m replication.Message) {
	within := func(n, limit int) {
		if limit > 0 && n > limit {
			panic(fmt.Sprintf("a %T has %d of what it may have %d of", m, n, limit))
		}
	}
	rows, chunks := max(p.Points, chunkSlots), max(p.Chunks, windowChunks)
	if p.Limits == (replication.Limits{}) {
		rows, chunks = 0, 0
	}
	switch m := m.(type) {
	case replication.LearnReply:
		within(len(m.Deletions), p.Deletions)
	case replication.ShareDeletions:
		within(len(m.Deletions), p.Deletions)
	case replication.ShareDeletionsReply:
		within(len(m.Deletions), p.Deletions)
	case replication.Compare:
		within(len(m.Windows), p.Windows)
	case replication.CompareReply:
		within(len(m.Windows), p.Windows)
	case replication.CompareChunks:
		within(len(m.Chunks), chunks)
	case replication.Difference:
		within(len(m.Want), chunks)
		within(len(m.Have), chunks)
	case replication.Fill:
		within(points(m.Chunks), rows)
	case replication.FillReply:
		within(points(m.Chunks), rows)
	}
}

// points returns how many points chunks have.
func points(chunks []replication.Chunk) (n int) {
	for _, c := range chunks {
		n += c.Points
	}
	return n
}

// node is one process with its disk.
type node struct {
	number int
	id     ring.ID
	core   *replication.Core // nil: it is down
	disk   *disk
	view   *ring.View // as this node knows it
	before *disk      // what was synced when it learned of view
	boot   uint64
	skew   int64 // of the wall clock, ns
	sees   map[int]bool
	asleep int64 // until then the process is stopped, and goes on as if no time had passed
	hears  int64 // until then it waits for those that it does not reach
	gone   bool  // its disk is lost: it never comes back
	// it was no member any more when its operator took it away: nothing may be lost with it
	left  bool
	stuck bool // its log is not synced
	told  int  // records of which the protocol knows that they are on disk
}

// event is something that happens at a time.
type event struct {
	at     int64
	serial uint64
	do     func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// New starts a cluster whose members are all active and know each other.
func New(o Options) *Cluster {
	c := &Cluster{options: o, rng: rand.New(rand.NewPCG(o.Seed, 1)), cut: make(map[[2]int]bool),
		away: make(map[int]bool), bucketCopies: bucketCopies{o.Own, o.W},
		leastW: ring.MaxCopies, leastN: o.N}
	config := ring.Config{Number: 1, Partitions: o.Partitions, Copies: o.N}
	c.senders = newSenders()
	for range o.Nodes {
		n := c.add()
		v := must(ring.New(config))
		config.Members = append(config.Members,
			ring.Member{ID: n.id, Name: n.String(), State: ring.Active,
				Tokens: v.Tokens(c.rng), Protocol: ring.Protocol{Min: 1, Max: 1}})
	}
	c.view = must(ring.New(config))
	for i := range c.nodes {
		c.nodes[i].view = c.view
		c.Start(i)
	}
	return c
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// add makes a node with an empty disk.
func (c *Cluster) add() *node {
	n := &node{number: len(c.nodes), id: ring.ID{15: byte(len(c.nodes) + 1)}, sees: make(map[int]bool)}
	n.disk = newDisk(func(s metric.SeriesID) int {
		return c.view.Partition(s)
	}, c.copiesOf, func() int { return c.view.Copies(ring.Current) })
	n.disk.dropping = func(of replication.Share) { c.checkGiven(n, of) }
	c.nodes = append(c.nodes, n)
	return n
}

// isUp reports whether the process of a node runs.
func (n *node) isUp(now int64) bool { return n.core != nil && now >= n.asleep }

func (n *node) String() string { return fmt.Sprint("n", n.number) }

// note writes a line of the history.
func (c *Cluster) note(format string, args ...any) {
	c.history = append(c.history, fmt.Sprintf("%6d  ", c.now)+fmt.Sprintf(format, args...))
}

// History is what happened, a line each, without the single messages.
func (c *Cluster) History() string { return strings.Join(c.history, "\n") + "\n" }

// scheduleAfter does something in some ms.
func (c *Cluster) scheduleAfter(ms int64, do func()) {
	c.serial++
	heap.Push(&c.queue, event{c.now + ms, c.serial, do})
}

// Run lets time pass.
func (c *Cluster) Run(ms int64) {
	end := c.now + ms
	for len(c.queue) > 0 && c.queue[0].at <= end {
		e := heap.Pop(&c.queue).(event)
		c.now = e.at
		e.do()
	}
	c.now = end
}

func (c *Cluster) time(n *node) replication.Time {
	return replication.Time{Steady: c.now, Wall: uint64(1e18 + c.now*1e6 + n.skew + int64(n.number))}
}

// Start starts a node on what its disk has.
func (c *Cluster) Start(i int) {
	n := c.nodes[i]
	if n.core != nil || n.gone {
		return
	}
	n.boot++
	n.core = replication.New(replication.Config{Self: n.id, Boot: n.boot, W: c.options.W,
		R: c.options.R, MaxHints: c.options.MaxHints,
		Timeout: timeout, Resend: resend, CompareMS: cmp.Or(c.options.Paging.CompareMS, comparing),
		DropMS: c.options.Paging.DropMS, Bucket: c.numbers, Classes: c.classes,
		Limits: c.options.Paging.Limits, Comparisons: c.options.Paging.Comparisons,
		ComparePoints: c.options.Paging.ComparePoints,
		HintRows:      c.options.Paging.HintRows}, n.disk, n.view, c.time(n))
	n.sees, n.hears = make(map[int]bool), c.now+patience
	n.core.Require(c.time(n), n.quorums(c))
	n.core.HoldMoves(c.held)
	n.told = len(n.disk.log)
	n.core.SyncedUpTo(c.time(n), replication.Position(n.told))
	c.note("%v starts", n)
	c.whenUp(n, 0, func() { c.tickNode(n) })
}

// Stop stops the process of a node for some ms. It notices that before anything else when it goes
// on.
func (c *Cluster) Stop(i int, ms int64) {
	n := c.nodes[i]
	if n.core == nil || c.now < n.asleep {
		return
	}
	n.asleep = c.now + ms
	c.note("%v is stopped for %d ms", n, ms)
	c.whenUp(n, ms, func() {
		n.sees, n.hears = make(map[int]bool), c.now+patience
		n.core.RejoinAfterPause(c.time(n))
		c.drain(n)
	})
}

// Crash stops a node; of what it had not synced a part is lost.
func (c *Cluster) Crash(i int) {
	d := c.nodes[i].disk
	c.stop(i, d.durable+c.rng.IntN(len(d.log)-d.durable+1))
}

// PowerOff stops a node; all that it had not synced is lost.
func (c *Cluster) PowerOff(i int) { c.stop(i, 0) }

func (c *Cluster) stop(i, kept int) {
	n := c.nodes[i]
	if n.core == nil {
		return
	}
	lost := len(n.disk.log)
	n.disk.crash(kept)
	lost -= len(n.disk.log)
	n.core, n.asleep = nil, 0
	c.note("%v crashes, %d records lost", n, lost)
	c.failBatches(n)
}

// adopt gives a node a newer ring.
func (c *Cluster) adopt(n *node, v *ring.View) {
	n.view, n.before = v, n.disk.syncedState()
	n.core.Ring(c.time(n), v, n.quorums(c))
	c.drain(n)
}

// quorums returns how many copies the ring of a node asks for.
func (n *node) quorums(c *Cluster) replication.Quorums {
	w, next := c.options.W, 0
	if w == 0 {
		w, next = majority(n.view, ring.Current, ring.Active, ring.Leaving),
			majority(n.view, ring.Future, ring.Active, ring.Joining)
	}
	r := c.options.R
	if c.options.W == 0 { // the fewest that meet every write, with those that are gone
		r = max(1, (copiesOf(n.view, ring.Current, ring.Active, ring.Leaving, ring.Removed)+1)/2)
	}
	c.leastW, c.leastN = min(c.leastW, w), min(c.leastN, n.view.Copies(ring.Current))
	if c.options.W == 0 {
		c.w = c.leastW
	}
	return replication.Quorums{R: r, W: w, NextW: next}
}

// majority is that of the copies that members in some states can have.
func majority(v *ring.View, role ring.Role, states ...ring.State) int {
	return copiesOf(v, role, states...)/2 + 1
}

// copiesOf returns how many copies members in some states can have.
func copiesOf(v *ring.View, role ring.Role, states ...ring.State) int {
	can := 0
	for _, m := range v.Members() {
		if slices.Contains(states, m.State) {
			can++
		}
	}
	return max(1, min(v.Copies(role), can))
}

// drain carries out what a node asks for.
func (c *Cluster) drain(n *node) {
	sends, replies := n.core.Take()
	for _, s := range sends {
		if to := c.nodeOf(s.To); to != nil {
			c.options.Paging.check(s.Message)
			if c.watch != nil {
				c.watch(n, to, s.Message)
			}
			c.carry(n, to, s.Message)
		}
	}
	for _, r := range replies {
		c.noteReply(n, r)
	}
}

func (c *Cluster) nodeOf(id ring.ID) *node {
	for _, n := range c.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// carry brings a message to another node: late, twice or not at all.
func (c *Cluster) carry(from, to *node, m replication.Message) {
	var arrive func()
	arrive = func() {
		switch {
		case c.now < to.asleep:
			c.scheduleAfter(to.asleep-c.now, arrive)
		case to.core != nil:
			to.core.Receive(c.time(to), from.id, m)
			c.drain(to)
		}
	}
	if from == to || c.options.Calm {
		if from == to || !c.cut[[2]int{from.number, to.number}] {
			c.scheduleAfter(1, arrive)
		}
		return
	}
	copies := 1
	switch c.rng.IntN(40) {
	case 0, 1:
		copies = 0
	case 2:
		copies = 2
	}
	for range copies {
		delay := 1 + c.rng.Int64N(20)
		if c.rng.IntN(30) == 0 {
			delay += c.rng.Int64N(3000)
		}
		c.scheduleAfter(delay, func() {
			if !c.cut[[2]int{from.number, to.number}] {
				arrive()
			}
		})
	}
}

// Cut stops everything from one node to another; Heal lets all through again.
func (c *Cluster) Cut(from, to int) { c.cut[[2]int{from, to}] = true }

// Split cuts nodes into those in one group and the rest, in both directions.
func (c *Cluster) Split(group ...int) {
	in := make(map[int]bool)
	for _, i := range group {
		in[i] = true
	}
	for i := range c.nodes {
		for j := range c.nodes {
			if in[i] != in[j] {
				c.Cut(i, j)
			}
		}
	}
	c.note("the network splits: %v on one side", group)
}

// Heal ends all cuts.
func (c *Cluster) Heal() {
	clear(c.cut)
	c.note("the network heals")
}
