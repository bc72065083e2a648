package replication

import (
	"cmp"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// coordinator is what a node does with the batches of its clients.
type coordinator struct {
	*Core
	number  uint64 // of the last batch
	low     uint64 // below it no batch is open
	batches map[uint64]*batch
	rows    int                     // of all open batches
	targets map[Share][]ring.Target // until somebody comes or goes
	homes   map[int][]int           // as long: of the partitions, by n
	lanes   lanes
	places  []int // by partition: scratch of divide, all 0 in between
}

// batch is what a client gave this node, until every copy of it is written or its time is over.
type batch struct {
	id          BatchID
	request     uint64
	bucket      uint64
	deadline    int64
	parts       []part // by their first partition
	rows        int
	unconfirmed int // parts
	incomplete  int // parts
	replied     bool
	stale       bool // an owner knows that the bucket was deleted
}

// copyOf is a copy on a node, for an owner.
type copyOf struct{ node, owner ring.ID }

func target(t ring.Target) copyOf { return copyOf{t.Node, t.For} }

// sentCopy is a copy that was asked for.
type sentCopy struct {
	copyOf
	at       int64 // when it was sent last
	answered bool
	answer   Refusal
	counts   Counts
}

// Submit takes a batch of a client: at most MaxRows points of any series of its bucket, and
// deletions. Reply.Request is the request. The incarnation of a row is the one that this node
// knows, that of a deletion is new. Columns of one group, and rows of one series, are cheapest side
// by side.
func (c *Core) Submit(t Time, request uint64, of Batch) {
	c.now = t
	c.coordinator.submit(request, &of)
}

// Open returns how many batches are open and how many rows they have: whoever submits waits while
// these are too many. A batch is open until each of its targets has answered, at most
// Config.Timeout.
func (c *Core) Open() (batches, rows int) { return len(c.coordinator.batches), c.coordinator.rows }

func (c *coordinator) submit(request uint64, of *Batch) {
	c.number++
	b := &batch{id: BatchID{c.config.Self, c.config.Boot, c.number}, request: request,
		bucket: of.Bucket, deadline: c.now.Steady + c.config.Timeout,
		rows: Points(of.Columns, of.Rows), parts: c.divide(c.config.Bucket(c.view, of.Bucket).Copies, of)}
	b.unconfirmed, b.incomplete = len(b.parts), len(b.parts)
	c.batches[c.number] = b
	c.rows += b.rows
	c.aim(b)
	c.settle(b)
}

// liftRows brings rows behind deletions.
func (c *Change) liftRows(deletions []Deletion) {
	if len(deletions) == 0 {
		return
	}
	highest := make(map[metric.SeriesID]uint64, len(deletions))
	for _, d := range deletions {
		highest[d.Series] = max(highest[d.Series], d.Incarnation)
	}
	for i := range c.Rows {
		c.Rows[i].Incarnation = max(c.Rows[i].Incarnation, highest[c.Rows[i].Series])
	}
}

// clock returns the incarnation behind all that were seen.
func (c *coordinator) clock() uint64 {
	c.highest = max(c.highest+1, c.now.Wall)
	return c.highest
}

// plan aims at other nodes after the ring, or who is up, has changed.
func (c *coordinator) plan() {
	c.targets, c.homes, c.lanes = nil, nil, lanes{}
	c.each(c.aimPart)
}

// judgeAll says anew which parts are confirmed.
func (c *coordinator) judgeAll() { c.each(c.judge) }

// each does something with the parts of all open batches, and settles these.
func (c *coordinator) each(do func(b *batch, p *part)) {
	for _, n := range sortedKeys(c.batches) {
		b := c.batches[n]
		for i := range b.parts {
			do(b, &b.parts[i])
		}
		c.settle(b)
	}
}

// targetsOf returns who gets a write to a share now. Nobody changes the list.
func (c *coordinator) targetsOf(of Share) []ring.Target {
	list, ok := c.targets[of]
	if !ok {
		if c.targets == nil {
			c.targets = make(map[Share][]ring.Target)
		}
		list = c.view.Targets(nil, of.Partition, of.Copies, c.isUp)
		c.targets[of] = list
	}
	return list
}

// aim sends every part to those who should have it and were not sent it yet.
func (c *coordinator) aim(b *batch) {
	for i := range b.parts {
		c.aimPart(b, &b.parts[i])
	}
}

// lowest returns the number below which no batch of this boot is sent again.
func (c *coordinator) lowest() uint64 {
	for c.low <= c.number && c.batches[c.low] == nil {
		c.low++
	}
	return c.low
}

// resend repeats what was not answered, and ends what took too long.
func (c *coordinator) resend() { c.each(c.resendPart) }

// handleWriteReply takes the answer of a target.
func (c *coordinator) handleWriteReply(from ring.ID, m WriteReply) {
	b := c.batches[m.Batch.Number]
	if b == nil || m.Batch != b.id {
		return
	}
	p := b.part(m.Partition)
	if p == nil || p.attempt != m.Attempt {
		return
	}
	if m.Refusal == StaleBucket {
		b.stale = true
		c.settle(b)
		return
	}
	if m.Refusal == Stale {
		if !b.replied {
			c.raiseAgain(b, p, m.Later)
		}
		return
	}
	to := p.copySent(m.Key, copyOf{from, m.For})
	if to == nil || to.has() {
		return
	}
	to.answered, to.answer, to.counts = true, m.Refusal, m.Counts
	c.judge(b, p)
	c.settle(b)
}

// final reports whether a target has said what does not change by asking again.
func (s *sentCopy) final() bool { return s.answered && (s.answer == Taken || s.answer == Full) }

// has reports whether a target has its copy on disk.
func (s *sentCopy) has() bool { return s.answered && s.answer == Taken }

// raiseAgain sends a part again, behind deletions that were not known here. What was sent before
// may still be under way, so its rows stay as they are.
func (c *coordinator) raiseAgain(b *batch, p *part, later []Deletion) {
	known := make(map[metric.SeriesID]uint64, len(later))
	for _, d := range later {
		c.highest = max(c.highest, d.Incarnation)
		known[d.Series] = max(known[d.Series], d.Incarnation)
	}
	next := p.whole.change.InRows()
	next.Rows, next.Deletions = slices.Clone(next.Rows), slices.Clone(next.Deletions)
	for i := range next.Deletions {
		if n := &next.Deletions[i]; n.Incarnation < known[n.Series] {
			n.Incarnation = c.clock()
		}
	}
	next.liftRows(later)
	next.liftRows(next.Deletions)
	*p = part{
		whole:     piece{change: next},
		attempt:   p.attempt + 1,
		confirmed: p.confirmed,
		complete:  p.complete,
	}
	c.aimPart(b, p)
}

// settle replies once every part has its copies or its time is over, and lets a batch go once
// nobody is left to be sent to. What an owner knows of a deletion of the bucket ends both.
func (c *coordinator) settle(b *batch) {
	late := c.now.Steady >= b.deadline || b.stale
	if !b.replied && (b.unconfirmed == 0 || late) {
		b.replied = c.reply(b)
	}
	if _, open := c.batches[b.id.Number]; open && b.replied && (late || b.incomplete == 0) {
		delete(c.batches, b.id.Number)
		c.rows -= b.rows
	}
}

// writes returns how many copies a bucket needs now, and when the changes under way are complete.
func (c *coordinator) writes(bucket uint64) (now, next int) {
	own := c.config.Bucket(c.view, bucket)
	now = cmp.Or(own.W, c.config.W)
	return now, cmp.Or(own.NextW, c.config.NextW, now)
}

// reply logs the account of a batch, and tells the client when that is on disk. Without an
// account nothing is acknowledged: it reports false, and is called again.
func (c *coordinator) reply(b *batch) bool {
	var sum Counts
	for i := range b.parts {
		switch p := &b.parts[i]; {
		case b.stale:
			sum.Deleted += p.whole.change.Points()
		case p.confirmed:
			sum.add(p.counts())
		default:
			sum.Unconfirmed += p.whole.change.Points()
		}
	}
	at, err := c.store.Account(b.id, sum)
	if err != nil {
		return false
	}
	r := Reply{Request: b.request, Batch: b.id, Counts: sum, Done: b.unconfirmed == 0 || b.stale}
	c.whenSynced(at, func() { c.replies = append(c.replies, r) })
	return true
}
