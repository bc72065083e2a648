package replication

import (
	"cmp"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/metric"
)

// coordinator is what a node does with the batches of its clients.
type coordinator struct {
	*Core
	number  uint64 // of the last batch
	low     uint64 // below it no batch is open
	batches map[uint64]*batch
	rows    int                     // of all open batches
	targets map[Share][]ring.Target // until somebody comes or goes
	places  []int                   // by partition: scratch of divide, all 0 in between
}

// batch is what a client gave this node, until every copy of it is written or its time is over.
type batch struct {
	id          BatchID
	request     uint64
	bucket      uint64
	deadline    int64
	parts       []part // by partition
	rows        int
	unconfirmed int // parts
	incomplete  int // parts
	replied     bool
}

// part is the part of a batch in one partition.
type part struct {
	change    Change
	attempt   int
	targets   []ring.Target
	copies    []sentCopy // of this attempt
	confirmed bool       // it has its copies
	complete  bool       // every target has said its last word
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

// Submit takes a batch of a client for a bucket: at most MaxRows rows of any of its series, and deletions,
// which come before the rows. Reply.Request is the request. The incarnation of a row is the one that this node knows,
// that of a deletion is new. Rows of one series are cheapest side by side.
func (c *Core) Submit(t Time, request, bucket uint64, rows []Row, deletions []metric.SeriesID) {
	c.now = t
	c.coordinator.submit(request, bucket, rows, deletions)
}

// Open returns how many batches are open and how many rows they have: whoever submits waits while these
// are too many. A batch is open until each of its targets has answered, at most Config.Timeout.
func (c *Core) Open() (batches, rows int) { return len(c.coordinator.batches), c.coordinator.rows }

func (c *coordinator) submit(request, bucket uint64, rows []Row, deletions []metric.SeriesID) {
	c.number++
	b := &batch{id: BatchID{c.config.Self, c.config.Boot, c.number}, request: request, bucket: bucket, deadline: c.now.Steady + c.config.Timeout,
		rows: len(rows), parts: c.divide(c.config.Bucket(bucket).Copies, rows, deletions)}
	b.unconfirmed, b.incomplete = len(b.parts), len(b.parts)
	c.batches[c.number] = b
	c.rows += b.rows
	c.aim(b)
	c.settle(b)
}

// divide returns the parts of a batch. Their rows lie in one copy.
func (c *coordinator) divide(copies int, rows []Row, deletions []metric.SeriesID) (parts []part) {
	if len(c.places) != c.view.Partitions() {
		c.places = make([]int, c.view.Partitions())
	}
	var used []int
	for i := range rows {
		p := c.view.Partition(rows[i].Series)
		if c.places[p] == 0 {
			used = append(used, p)
		}
		c.places[p]++
	}
	for _, s := range deletions {
		if p := c.view.Partition(s); !slices.Contains(used, p) {
			used = append(used, p)
		}
	}
	slices.Sort(used)
	parts = make([]part, len(used))
	copied, start := make([]Row, len(rows)), 0
	for i, p := range used {
		n := c.places[p]
		parts[i].change = Change{Partition: p, Copies: copies, Rows: copied[start : start : start+n]}
		start += n
		c.places[p] = i
	}
	var last metric.SeriesID
	var incarnation uint64
	for i, r := range rows {
		if i == 0 || r.Series != last {
			last, incarnation = r.Series, c.store.Incarnation(r.Series)
		}
		r.Incarnation = incarnation
		change := &parts[c.places[c.view.Partition(r.Series)]].change
		change.Rows = append(change.Rows, r)
	}
	for _, s := range deletions {
		change := &parts[c.places[c.view.Partition(s)]].change
		change.Deletions = append(change.Deletions, Deletion{s, c.clock()})
	}
	for i, p := range used {
		c.places[p] = 0
		parts[i].change.liftRows(parts[i].change.Deletions)
	}
	return parts
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
	c.targets = nil
	for _, n := range sortedKeys(c.batches) {
		b := c.batches[n]
		c.aim(b)
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

func (c *coordinator) aimPart(b *batch, p *part) {
	p.targets = c.targetsOf(p.change.share())
	if p.copies == nil {
		p.copies = make([]sentCopy, 0, len(p.targets))
	}
	for _, t := range p.targets {
		if p.copy(t) == nil {
			p.copies = append(p.copies, sentCopy{copyOf: target(t)})
			c.sendPart(b, p, &p.copies[len(p.copies)-1])
		}
	}
	c.judge(b, p)
}

// copy returns the copy that a target was asked for, nil if it was not.
func (p *part) copy(t ring.Target) *sentCopy { return p.find(target(t)) }

func (p *part) find(of copyOf) *sentCopy {
	for i := range p.copies {
		if p.copies[i].copyOf == of {
			return &p.copies[i]
		}
	}
	return nil
}

func (c *coordinator) sendPart(b *batch, p *part, to *sentCopy) {
	to.at = c.now.Steady
	c.send(to.node, Write{Key: Key{b.id, p.change.Partition, p.attempt, to.owner}, Version: c.view.Version(),
		Settled: c.lowest(), Change: p.change})
}

// lowest returns the number below which no batch of this boot is sent again.
func (c *coordinator) lowest() uint64 {
	for c.low <= c.number && c.batches[c.low] == nil {
		c.low++
	}
	return c.low
}

// resend repeats what was not answered, and ends what took too long.
func (c *coordinator) resend() {
	for _, n := range sortedKeys(c.batches) {
		b := c.batches[n]
		for i := range b.parts {
			c.resendPart(b, &b.parts[i])
		}
		c.settle(b)
	}
}

func (c *coordinator) resendPart(b *batch, p *part) {
	if !p.confirmed {
		c.judge(b, p) // its bucket may need fewer copies by now
	}
	if p.complete {
		return
	}
	for _, t := range p.targets {
		if to := p.copy(t); !to.final() && c.isUp(t.Node) && c.now.Steady >= to.at+c.config.Resend {
			c.sendPart(b, p, to)
		}
	}
}

// written takes the answer of a target.
func (c *coordinator) written(from ring.ID, m Written) {
	b := c.batches[m.Batch.Number]
	if b == nil || m.Batch != b.id {
		return
	}
	i, found := slices.BinarySearchFunc(b.parts, m.Partition, func(p part, n int) int { return cmp.Compare(p.change.Partition, n) })
	if !found || b.parts[i].attempt != m.Attempt {
		return
	}
	p := &b.parts[i]
	if m.Refusal == Stale {
		if !b.replied {
			c.raiseAgain(b, p, m.Later)
		}
		return
	}
	to := p.find(copyOf{from, m.For})
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

// raiseAgain sends a part again, behind deletions that were not known here. What was sent before may still
// be under way, so its rows stay as they are.
func (c *coordinator) raiseAgain(b *batch, p *part, later []Deletion) {
	known := make(map[metric.SeriesID]uint64, len(later))
	for _, d := range later {
		c.highest = max(c.highest, d.Incarnation)
		known[d.Series] = max(known[d.Series], d.Incarnation)
	}
	next := Change{Partition: p.change.Partition, Copies: p.change.Copies, Rows: slices.Clone(p.change.Rows), Deletions: slices.Clone(p.change.Deletions)}
	for i := range next.Deletions {
		if n := &next.Deletions[i]; n.Incarnation < known[n.Series] {
			n.Incarnation = c.clock()
		}
	}
	next.liftRows(later)
	next.liftRows(next.Deletions)
	p.change = next
	p.attempt++
	p.copies = nil
	c.aimPart(b, p)
}

// judge says anew whether a part is confirmed and complete.
func (c *coordinator) judge(b *batch, p *part) {
	confirmed, complete := c.confirmed(b, p), len(p.targets) > 0
	for _, t := range p.targets {
		complete = complete && p.copy(t).final()
	}
	b.unconfirmed += change(p.confirmed, confirmed)
	b.incomplete += change(p.complete, complete)
	p.confirmed, p.complete = confirmed, complete
}

// change returns what becomes of the number of those that are not so.
func change(before, now bool) int {
	switch {
	case before == now:
		return 0
	case now:
		return -1
	}
	return 1
}

// settle replies once every part has its copies or its time is over, and lets a batch go once
// nobody is left to be sent to.
func (c *coordinator) settle(b *batch) {
	late := c.now.Steady >= b.deadline
	if !b.replied && (b.unconfirmed == 0 || late) {
		b.replied = c.reply(b)
	}
	if _, open := c.batches[b.id.Number]; open && b.replied && (late || b.incomplete == 0) {
		delete(c.batches, b.id.Number)
		c.rows -= b.rows
	}
}

// confirmed reports whether W nodes have a part on disk for owners of now, and every owner to
// come that is up has it besides. As many as will be W have it for owners to come: a read under the ring
// that follows finds it, whenever that begins, and though an owner to come was down.
func (c *coordinator) confirmed(b *batch, p *part) bool {
	var buf [ring.MaxCopies]ring.ID
	var future []ring.ID
	if c.view.Changing() {
		future = c.view.Owners(buf[:0], p.change.Partition, ring.Future, p.change.Copies)
	}
	copies, next := 0, 0
	for _, t := range p.targets {
		has := p.copy(t).has()
		switch {
		case t.Joining && !t.Hint() && !has:
			return false
		case !t.Joining && has:
			copies++
		}
		if has && slices.Contains(future, t.For) {
			next++
		}
	}
	w, nextW := c.writes(b.bucket)
	return copies >= w && next >= min(nextW, len(future))
}

// writes returns how many copies a bucket needs now, and when the changes under way are complete.
func (c *coordinator) writes(bucket uint64) (now, next int) {
	own := c.config.Bucket(bucket)
	now = cmp.Or(own.W, c.config.W)
	return now, cmp.Or(own.NextW, c.config.NextW, now)
}

// reply logs the account of a batch, and tells the client when that is on disk. Without an
// account nothing is acknowledged: it reports false, and is called again.
func (c *coordinator) reply(b *batch) bool {
	var sum Counts
	for i := range b.parts {
		if p := &b.parts[i]; p.confirmed {
			sum.add(p.counts())
		} else {
			sum.Unconfirmed += len(p.change.Rows)
		}
	}
	at, err := c.store.Account(b.id, sum)
	if err != nil {
		return false
	}
	r := Reply{Request: b.request, Batch: b.id, Counts: sum, Done: b.unconfirmed == 0}
	c.whenSynced(at, func() { c.replies = append(c.replies, r) })
	return true
}

// counts are those of the first owner in ring order that answered, else of a stand-in.
func (p *part) counts() (of Counts) {
	found := false
	for _, t := range p.targets {
		to := p.copy(t)
		if !to.has() || t.Joining {
			continue
		}
		if !t.Hint() {
			return to.counts
		}
		if !found {
			of, found = to.counts, true
		}
	}
	return of
}
