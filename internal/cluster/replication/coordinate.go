package replication

import (
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/metric"
)

// coordinator is what a node does with the batches of its clients.
type coordinator struct {
	*Core
	number  uint64 // of the last batch
	batches map[uint64]*batch
}

// batch is what a client gave this node, until every copy of it is written or its time is over.
type batch struct {
	id       BatchID
	request  uint64
	deadline int64
	parts    []*part
	replied  bool
}

// part is the part of a batch in one partition.
type part struct {
	change  Change
	attempt int
	points  int
	targets []ring.Target
	sent    map[copyOf]int64 // when last
	answers map[copyOf]Written
}

// copyOf is a copy on a node, for an owner.
type copyOf struct{ node, owner ring.ID }

func target(t ring.Target) copyOf { return copyOf{t.Node, t.For} }

// Submit takes a batch of a client: rows of any series, and deletions. Reply.Request is the request.
// The incarnation of a row is the one that this node knows, that of a deletion is new.
func (c *Core) Submit(t Time, request uint64, rows []Row, deletions []metric.SeriesID) {
	c.now = t
	c.coordinator.submit(request, rows, deletions)
}

func (c *coordinator) submit(request uint64, rows []Row, deletions []metric.SeriesID) {
	c.number++
	b := &batch{id: BatchID{c.config.Self, c.config.Boot, c.number}, request: request, deadline: c.now.Steady + c.config.Timeout}
	for _, r := range rows {
		r.Incarnation = c.store.Incarnation(r.Series)
		p := b.part(c.view.Partition(r.Series))
		p.change.Rows = append(p.change.Rows, r)
		p.points++
	}
	for _, s := range deletions {
		p := b.part(c.view.Partition(s))
		p.change.Deletions = append(p.change.Deletions, Deletion{s, c.clock()})
	}
	c.batches[c.number] = b
	c.aim(b)
	c.settle(b)
}

// part returns the part of a partition.
func (b *batch) part(partition int) *part {
	for _, p := range b.parts {
		if p.change.Partition == partition {
			return p
		}
	}
	p := &part{change: Change{Partition: partition}, sent: make(map[copyOf]int64), answers: make(map[copyOf]Written)}
	b.parts = append(b.parts, p)
	return p
}

// clock returns the incarnation behind all that were seen.
func (c *coordinator) clock() uint64 {
	c.highest = max(c.highest+1, c.now.Wall)
	return c.highest
}

// plan aims at other nodes after the ring, or who is up, has changed.
func (c *coordinator) plan() {
	for _, n := range sortedKeys(c.batches) {
		b := c.batches[n]
		c.aim(b)
		c.settle(b)
	}
}

// aim sends every part to those who should have it and were not sent it yet.
func (c *coordinator) aim(b *batch) {
	for _, p := range b.parts {
		p.targets = c.view.Targets(nil, p.change.Partition, 0, c.isUp)
		for _, t := range p.targets {
			if _, sent := p.sent[target(t)]; !sent {
				c.sendPart(b, p, t)
			}
		}
	}
}

func (c *coordinator) sendPart(b *batch, p *part, t ring.Target) {
	p.sent[target(t)] = c.now.Steady
	c.send(t.Node, Write{Key: Key{b.id, p.change.Partition, p.attempt, t.For}, Version: c.view.Version(),
		Settled: c.lowest(), Change: p.change})
}

// lowest returns the number below which no batch of this boot is sent again.
func (c *coordinator) lowest() uint64 {
	low := c.number + 1
	for n := range c.batches {
		low = min(low, n)
	}
	return low
}

// resend repeats what was not answered, and ends what took too long.
func (c *coordinator) resend() {
	for _, n := range sortedKeys(c.batches) {
		b := c.batches[n]
		for _, p := range b.parts {
			for _, t := range p.targets {
				if !p.final(t) && c.isUp(t.Node) && c.now.Steady >= p.sent[target(t)]+c.config.Resend {
					c.sendPart(b, p, t)
				}
			}
		}
		c.settle(b)
	}
}

// written takes the answer of a target.
func (c *coordinator) written(from ring.ID, m Written) {
	b := c.batches[m.Batch.Number]
	if b == nil || m.Batch != b.id {
		return
	}
	i := slices.IndexFunc(b.parts, func(p *part) bool { return p.change.Partition == m.Partition })
	if i < 0 || b.parts[i].attempt != m.Attempt {
		return
	}
	p := b.parts[i]
	if m.Refusal == Stale {
		if !b.replied {
			c.raiseAgain(b, p, m.Later)
		}
		return
	}
	to := copyOf{from, m.For}
	if before, ok := p.answers[to]; !ok || before.Refusal != Taken {
		p.answers[to] = m
	}
	c.settle(b)
}

// final reports whether a target has said what does not change by asking again.
func (p *part) final(t ring.Target) bool {
	a, ok := p.answers[target(t)]
	return ok && (a.Refusal == Taken || a.Refusal == Full)
}

// has reports whether a target has its copy on disk.
func (p *part) has(t ring.Target) bool {
	a, ok := p.answers[target(t)]
	return ok && a.Refusal == Taken
}

// raiseAgain sends a part again, behind deletions that were not known here.
func (c *coordinator) raiseAgain(b *batch, p *part, later []Deletion) {
	for _, d := range later {
		c.highest = max(c.highest, d.Incarnation)
	}
	next := Change{Partition: p.change.Partition, Rows: slices.Clone(p.change.Rows), Deletions: slices.Clone(p.change.Deletions)}
	for _, d := range later {
		for i := range next.Rows {
			if r := &next.Rows[i]; r.Series == d.Series {
				r.Incarnation = max(r.Incarnation, d.Incarnation)
			}
		}
		for i := range next.Deletions {
			if n := &next.Deletions[i]; n.Series == d.Series && n.Incarnation < d.Incarnation {
				n.Incarnation = c.clock()
			}
		}
	}
	p.change = next
	p.attempt++
	clear(p.sent)
	clear(p.answers)
	c.aim(b)
}

// settle replies once every part has its copies or its time is over, and lets a batch go once
// nobody is left to be sent to.
func (c *coordinator) settle(b *batch) {
	late := c.now.Steady >= b.deadline
	confirmed, complete := true, true
	for _, p := range b.parts {
		confirmed = confirmed && c.confirmed(p)
		complete = complete && len(p.targets) > 0 && !slices.ContainsFunc(p.targets, func(t ring.Target) bool {
			return !p.final(t)
		})
	}
	if !b.replied && (confirmed || late) {
		b.replied = c.reply(b)
	}
	if b.replied && (late || complete) {
		delete(c.batches, b.id.Number)
	}
}

// confirmed reports whether W nodes have a part on disk for owners of now, and every owner to
// come that is up has it besides.
func (c *coordinator) confirmed(p *part) bool {
	copies := 0
	for _, t := range p.targets {
		switch {
		case t.Joining && !t.Hint() && !p.has(t):
			return false
		case !t.Joining && p.has(t):
			copies++
		}
	}
	return copies >= c.config.W
}

// reply logs the account of a batch, and tells the client when that is on disk. Without an
// account nothing is acknowledged: it reports false, and is called again.
func (c *coordinator) reply(b *batch) bool {
	var sum Counts
	done := true
	for _, p := range b.parts {
		if c.confirmed(p) {
			sum.add(p.counts())
			continue
		}
		sum.Unconfirmed += p.points
		done = false
	}
	at, err := c.store.Account(b.id, sum)
	if err != nil {
		return false
	}
	r := Reply{Request: b.request, Batch: b.id, Counts: sum, Done: done}
	c.whenSynced(at, func() { c.replies = append(c.replies, r) })
	return true
}

// counts are those of the first owner in ring order that answered, else of a stand-in.
func (p *part) counts() (of Counts) {
	found := false
	for _, t := range p.targets {
		if !p.has(t) || t.Joining {
			continue
		}
		counts := p.answers[target(t)].Counts
		if !t.Hint() {
			return counts
		}
		if !found {
			of, found = counts, true
		}
	}
	return of
}
