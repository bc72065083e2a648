package cluster

import (
	"sync"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
)

// outboxWait is how long rows wait at most for the answers to others of their stream.
const outboxWait = 50 * time.Millisecond

// commitQueue is the commits of one stream, in their order, and the batches of them that the
// protocol has not been given yet. A batch costs as much as many rows. So while one of the stream
// waits for its answer, what the stream commits is put together. Commits of which reports are
// wanted are not: a report is of the batches of its commit alone.
type commitQueue struct {
	all    *commits
	report func(write.Token, account.Counts)
	// returns at once
	submit func(request uint64, columns []replication.Column, rows []replication.Row)

	// all.mu guards these.
	now      *commit    // that the stream adds to; nil: nothing was given out for it
	list     []*commit  // that are not reported yet
	added    bool       // there are rows behind the last commit
	outbox   []outBatch // rows are added to the last one
	underway int        // batches that were not answered
	// somebody gives batches to the protocol, and nobody else does: they stay in order
	submitting bool
	late       bool // what is in the outbox has waited long enough
	timer      *time.Timer

	// reporting is held while reports are made: they come in order. It is taken before commits.mu.
	reporting sync.Mutex
}

// outBatch is points that the protocol was not given yet: one batch.
type outBatch struct {
	request uint64
	of      *commit
	columns []replication.Column
	rows    []replication.Row // behind those of columns
	points  int
	names   int // bytes of their keys
}

// add puts points behind these, if that keeps them in order and in bounds.
func (b *outBatch) add(o *outBatch) bool {
	if b.points+o.points > replication.MaxRows || b.names+o.names > batchNames || len(b.rows) > 0 &&
		len(o.columns) > 0 {
		return false
	}
	b.columns, b.rows = append(b.columns, o.columns...), append(b.rows, o.rows...)
	b.points, b.names = b.points+o.points, b.names+o.names
	return true
}

func (c *commits) newQueue(report func(write.Token, account.Counts),
	submit func(request uint64, columns []replication.Column, rows []replication.Row)) *commitQueue {
	return &commitQueue{all: c, report: report, submit: submit}
}

// add takes points of the present commit, for which there is room.
func (q *commitQueue) add(points outBatch) {
	c := q.all
	c.mu.Lock()
	of := q.current()
	q.added = true
	if n := len(q.outbox); n > 0 && q.outbox[n-1].of == of && q.outbox[n-1].add(&points) {
		b := &q.outbox[n-1]
		c.requests[b.request] = request{of: of, rows: b.points}
	} else {
		of.batches++
		c.last++
		points.request, points.of = c.last, of
		c.requests[c.last] = request{of: of, rows: points.points}
		q.outbox = append(q.outbox, points)
	}
	c.mu.Unlock()
	q.drain()
}

// isDue reports whether the first batch of the outbox goes to the protocol now. The lock is held.
func (q *commitQueue) isDue() bool {
	switch {
	case len(q.outbox) == 0:
		return false
	case len(q.outbox) > 1 || q.outbox[0].points == replication.MaxRows:
		return true // it gets no more
	case q.report != nil:
		return q.outbox[0].of != q.now // its commit is complete
	}
	return q.late || q.underway == 0 && !q.added
}

// drain gives the protocol what is due.
func (q *commitQueue) drain() {
	c := q.all
	c.mu.Lock()
	defer c.mu.Unlock()
	for !q.submitting && q.isDue() {
		b := q.outbox[0]
		q.outbox[0] = outBatch{}
		q.outbox = q.outbox[1:]
		if b.of == q.now && b.of.token.Position != 0 {
			q.now = nil // it may be done at any time, so nothing is added to it
		}
		q.underway++
		q.submitting = true
		c.mu.Unlock()
		q.submit(b.request, b.columns, b.rows)
		c.mu.Lock()
		q.submitting = false
	}
	switch {
	case len(q.outbox) == 0:
		q.late = false
		if q.timer != nil {
			q.timer.Stop()
			q.timer = nil
		}
	case q.timer == nil:
		q.timer = time.AfterFunc(outboxWait, func() {
			c.mu.Lock()
			q.late = true
			c.mu.Unlock()
			q.drain()
		})
	}
}

// current returns the commit that the stream adds to. The lock is held.
func (q *commitQueue) current() *commit {
	if q.now == nil {
		q.now = &commit{queue: q, done: make(chan struct{})}
		q.list = append(q.list, q.now)
	}
	return q.now
}

func (q *commitQueue) hasPending() bool {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	return q.added
}

// commit completes the present commit: of its points these were refused, or are unset.
func (q *commitQueue) commit(number uint64, refused account.Counts,
	refusals write.Token) write.Token {
	c := q.all
	c.mu.Lock()
	of := q.current()
	q.added = false
	if of.token.Position == 0 {
		c.position++
		of.token.Position = c.position
		c.waiting[c.position] = of
	}
	of.token.Commit = number
	if refusals.Position > of.refusals.Position {
		of.refusals = refusals
	}
	of.counts.Add(&refused)
	if n := len(q.outbox); q.report != nil || n == 0 || q.outbox[n-1].of != of {
		q.now = nil
	}
	token := of.token
	c.mu.Unlock()
	q.drain()
	q.settle()
	return token
}

// settle reports the commits that are complete, in order.
func (q *commitQueue) settle() {
	q.reporting.Lock()
	defer q.reporting.Unlock()
	c := q.all
	for {
		c.mu.Lock()
		if len(q.list) == 0 || q.list[0].token.Position == 0 || q.list[0].batches > 0 {
			c.mu.Unlock()
			return
		}
		of := q.list[0]
		q.list = q.list[1:]
		c.mu.Unlock()
		if q.report != nil {
			q.report(of.token, of.counts)
		}
		c.mu.Lock()
		delete(c.waiting, of.token.Position)
		if of.refusals.Position > c.refusals.Position {
			c.refusals = of.refusals
		}
		c.mu.Unlock()
		close(of.done)
	}
}
