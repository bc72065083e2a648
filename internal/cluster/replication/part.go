package replication

import (
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// part is what of a batch lies in partitions that have the same owners: each of these gets one
// message, not one for each partition. That holds while they are all up and the ring stays. Then
// the part is split.
type part struct {
	whole     piece
	split     []piece // by partition; nil: the part goes whole
	attempt   int
	confirmed bool // it has its copies
	complete  bool // every target has said its last word
}

// piece is a change and who gets it.
type piece struct {
	change  Change
	targets []ring.Target // of what is not split
	copies  []sentCopy    // of this attempt
}

// pieces yields what has targets of its own.
func (p *part) pieces(yield func(*piece) bool) {
	if p.split == nil {
		yield(&p.whole)
		return
	}
	for i := range p.split {
		if !yield(&p.split[i]) {
			return
		}
	}
}

// part returns the one that a partition is in.
func (b *batch) part(partition int) *part {
	for i := range b.parts {
		if c := &b.parts[i].whole.change; c.Partition == partition ||
			slices.Contains(c.Further, partition) {
			return &b.parts[i]
		}
	}
	return nil
}

func (q *piece) find(of copyOf) *sentCopy {
	for i := range q.copies {
		if q.copies[i].copyOf == of {
			return &q.copies[i]
		}
	}
	return nil
}

// copyFor returns what a target of a piece was asked for, nil if it was not. After a split that may
// still be the whole part: sent again it is known as the same.
func (p *part) copyFor(q *piece, t ring.Target) (of *piece, to *sentCopy) {
	if to := p.whole.find(target(t)); to != nil && (to.has() || p.goesWhole(to.copyOf)) {
		return &p.whole, to
	}
	return q, q.find(target(t))
}

// goesWhole reports whether a node that was asked for the whole part is a target of all of it, and
// was asked for nothing less.
func (p *part) goesWhole(of copyOf) bool {
	for i := range p.split {
		q := &p.split[i]
		if q.find(of) != nil || !slices.ContainsFunc(q.targets, func(t ring.Target) bool {
			return target(t) == of
		}) {
			return false
		}
	}
	return true
}

// copySent returns the copy that an answer is about, nil if none was asked for.
func (p *part) copySent(k Key, of copyOf) *sentCopy {
	if k.Further == len(p.whole.change.Further) {
		return p.whole.find(of)
	}
	for q := range p.pieces {
		if q.change.Partition == k.Partition {
			return q.find(of)
		}
	}
	return nil
}

// homesOf returns for each partition the first one that has the same owners, for buckets of n
// copies. One of which an owner is down, or will be another one, has its own way.
func (c *coordinator) homesOf(copies int) []int {
	if homes, ok := c.homes[copies]; ok {
		return homes
	}
	homes, first := make([]int, c.view.Partitions()), make(map[string]int)
	var nodes []string
	var key []byte
	for p := range homes {
		targets := c.targetsOf(Share{p, copies})
		homes[p] = p
		if c.view.IsChanging() || slices.ContainsFunc(targets, ring.Target.Hint) {
			continue
		}
		nodes, key = nodes[:0], key[:0]
		for _, t := range targets {
			nodes = append(nodes, string(t.Node[:]))
		}
		slices.Sort(nodes)
		for _, n := range nodes {
			key = append(key, n...)
		}
		if home, ok := first[string(key)]; ok {
			homes[p] = home
		} else {
			first[string(key)] = p
		}
	}
	if c.homes == nil {
		c.homes = make(map[int][]int)
	}
	c.homes[copies] = homes
	return homes
}

// divide returns the parts of a batch. Their points are in the order in which they came.
func (c *coordinator) divide(copies int, of *Batch) []part {
	homes := c.homesOf(copies)
	if len(c.places) != len(homes) {
		c.places = make([]int, len(homes))
	}
	c.countColumns(copies, of.Columns)
	for i := range of.Rows {
		c.places[c.view.Partition(of.Rows[i].Series)]++
	}
	for _, s := range of.Deletions {
		c.places[c.view.Partition(s)]++
	}
	parts := c.partsOf(copies, homes, len(of.Rows))
	c.divideColumns(parts, copies, of.Columns)
	var last metric.SeriesID
	var incarnation uint64
	var into *Change
	for i, r := range of.Rows {
		if i == 0 || r.Series != last {
			last, incarnation = r.Series, c.store.Incarnation(r.Series)
			into = &parts[c.places[homes[c.view.Partition(r.Series)]]].whole.change
		}
		r.Incarnation = incarnation
		into.Rows = append(into.Rows, r)
	}
	for _, s := range of.Deletions {
		into := &parts[c.places[homes[c.view.Partition(s)]]].whole.change
		into.Deletions = append(into.Deletions, Deletion{s, c.clock()})
	}
	clear(c.places)
	for i := range parts {
		if change := &parts[i].whole.change; len(change.Deletions) > 0 {
			*change = change.InRows()
			change.liftRows(change.Deletions)
		}
	}
	return parts
}

// partsOf returns the parts for the partitions that have a count in places. Each part has room for
// the rows that its partitions count, and rows bounds this room. Afterwards places has the number
// of the part of each first partition.
func (c *coordinator) partsOf(copies int, homes []int, rows int) (parts []part) {
	size := make(map[int]int) // of a part, by home
	for p, n := range c.places {
		if n > 0 {
			size[homes[p]] += n
		}
	}
	parts = make([]part, 0, len(size))
	number := make(map[int]int, len(size))
	for p, n := range c.places {
		if n == 0 {
			continue
		}
		i, ok := number[homes[p]]
		if !ok {
			i = len(parts)
			number[homes[p]] = i
			parts = append(parts, part{whole: piece{change: Change{
				Partition: p,
				Copies:    copies,
				Rows:      make([]Row, 0, min(rows, size[homes[p]])),
			}}})
			continue
		}
		change := &parts[i].whole.change
		change.Further = append(change.Further, p)
	}
	for home, i := range number {
		c.places[home] = i
	}
	return parts
}

// splitByPartition returns the changes that a change of several partitions is made of.
func (c *coordinator) splitByPartition(of *Change) []piece {
	list := make([]piece, 1+len(of.Further))
	at := make(map[int]*Change, len(list))
	for i, p := range append([]int{of.Partition}, of.Further...) {
		list[i].change = Change{Partition: p, Copies: of.Copies}
		at[p] = &list[i].change
	}
	for _, r := range of.InRows().Rows {
		into := at[c.view.Partition(r.Series)]
		into.Rows = append(into.Rows, r)
	}
	for _, d := range of.Deletions {
		into := at[c.view.Partition(d.Series)]
		into.Deletions = append(into.Deletions, d)
	}
	return list
}

// retarget says anew who gets a part.
func (c *coordinator) retarget(p *part) {
	of := &p.whole.change
	if p.split == nil && len(of.Further) > 0 {
		homes := c.homesOf(of.Copies)
		if slices.ContainsFunc(of.Further, func(further int) bool {
			return homes[further] != homes[of.Partition]
		}) {
			p.split = c.splitByPartition(of)
		}
	}
	for q := range p.pieces {
		q.targets = c.targetsOf(q.change.share())
	}
}

func (c *coordinator) aimPart(b *batch, p *part) {
	c.retarget(p)
	for q := range p.pieces {
		if q.copies == nil {
			q.copies = make([]sentCopy, 0, len(q.targets))
		}
		for _, t := range q.targets {
			if _, to := p.copyFor(q, t); to == nil {
				q.copies = append(q.copies, sentCopy{copyOf: target(t)})
				c.sendPiece(b, p, q, &q.copies[len(q.copies)-1])
			}
		}
	}
	c.judge(b, p)
}

func (c *coordinator) sendPiece(b *batch, p *part, q *piece, to *sentCopy) {
	to.at = c.now.Steady
	c.send(to.node, Write{
		Key:     Key{b.id, q.change.Partition, len(q.change.Further), p.attempt, to.owner},
		Version: c.view.Version(),
		Settled: c.lowest(), Change: q.change})
}

func (c *coordinator) resendPart(b *batch, p *part) {
	if !p.confirmed {
		c.judge(b, p) // its bucket may need fewer copies by now
	}
	if p.complete {
		return
	}
	for q := range p.pieces {
		for _, t := range q.targets {
			if of, to := p.copyFor(q, t); !to.final() && c.isUp(t.Node) &&
				c.now.Steady >= to.at+c.config.Resend {
				c.sendPiece(b, p, of, to)
			}
		}
	}
}

// judge says anew whether a part is confirmed and complete.
func (c *coordinator) judge(b *batch, p *part) {
	confirmed, complete := c.keeping.agreed, true
	for q := range p.pieces {
		confirmed = confirmed && c.isConfirmed(b, p, q)
		complete = complete && len(q.targets) > 0
		for _, t := range q.targets {
			_, to := p.copyFor(q, t)
			complete = complete && to.final()
		}
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

// isConfirmed reports whether W nodes have a piece on disk for owners of now, and every owner to
// come that is up has it besides. As many as will be W have it for owners to come: a read under the
// ring that follows finds it, whenever that begins, and though an owner to come was down.
func (c *coordinator) isConfirmed(b *batch, p *part, q *piece) bool {
	var buf [ring.MaxCopies]ring.ID
	var future []ring.ID
	if c.view.IsChanging() {
		future = c.view.Owners(buf[:0], q.change.Partition, ring.Future, q.change.Copies)
	}
	copies, next := 0, 0
	for _, t := range q.targets {
		_, to := p.copyFor(q, t)
		has := to.has()
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

// counts are those of an owner that has all of the part, else the sum of those of the pieces.
func (p *part) counts() (sum Counts) {
	for q := range p.pieces {
		for _, t := range q.targets {
			if to := p.whole.find(target(t)); to != nil && to.has() && !t.Joining && !t.Hint() {
				return to.counts
			}
		}
	}
	for q := range p.pieces {
		sum.add(p.countsOf(q))
	}
	return sum
}

// countsOf are those of the first owner in ring order that has a piece, else of a stand-in.
func (p *part) countsOf(q *piece) (of Counts) {
	found := false
	for _, t := range q.targets {
		to := q.find(target(t))
		if to == nil || !to.has() || t.Joining {
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
