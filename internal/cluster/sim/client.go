package sim

import (
	"fmt"
	"slices"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// Entry is a batch in the client's journal.
type Entry struct {
	Node     int
	Rows     []replication.Row // as they were sent
	Deletes  []metric.SeriesID
	At       int64 // when it was sent
	Ended    int64 // when the reply came, or none can come any more; 0: it is under way
	Answered bool
	Reply    replication.Reply
}

// requests is the journal: what clients sent and were told.
type requests struct {
	journal []*Entry
	slots   uint64 // that rows were sent for, from 0 on
	senders senders
	reads   map[uint64]replication.Reply
}

// Series returns the id of a series by its number.
func Series(n int) metric.SeriesID { return metric.Series(1, []byte(fmt.Sprint("series", n))) }

// Write sends points to a node. Nil means the node is down, or stopped.
func (c *Cluster) Write(node int, rows []replication.Row, deletes ...metric.SeriesID) *Entry {
	n := c.nodes[node]
	if !n.isUp(c.now) {
		return nil
	}
	e := &Entry{Node: node, Rows: rows, Deletes: deletes, At: c.now}
	c.journal = append(c.journal, e)
	for _, r := range rows {
		c.slots = max(c.slots, r.Slot+1)
	}
	request := uint64(len(c.journal))
	c.note("%v gets batch %d: %s", n, request, e)
	of := c.senders.batch(c.rng, rows)
	of.Bucket, of.Deletions = c.bucket(rows, deletes), deletes
	n.core.Submit(c.time(n), request, of)
	c.drain(n)
	return e
}

// String returns what a batch has, for the history.
func (e *Entry) String() string {
	s := ""
	for _, r := range e.Rows {
		s += fmt.Sprintf(" %x/%d=%x", r.Series[:2], r.Slot, r.Value.Word)
	}
	for _, d := range e.Deletes {
		s += fmt.Sprintf(" delete %x", d[:2])
	}
	return s
}

// Read asks a node for slots.
func (c *Cluster) Read(node int, series metric.SeriesID, from, past uint64) (request uint64) {
	n := c.nodes[node]
	c.journal = append(c.journal, &Entry{Node: node, At: c.now})
	request = uint64(len(c.journal))
	n.core.Query(c.time(n), request, series, from, past)
	c.drain(n)
	return request
}

// noteReply notes what a node told a client.
func (c *Cluster) noteReply(n *node, r replication.Reply) {
	if r.Slots != nil {
		if c.reads == nil {
			c.reads = make(map[uint64]replication.Reply)
		}
		c.reads[r.Request] = r
		return
	}
	e := c.journal[r.Request-1]
	e.Answered, e.Reply, e.Ended = true, r, c.now
	c.note("%v replies to batch %d: %+v, done %t", n, r.Request, r.Counts, r.Done)
}

// failBatches ends the batches of a node that crashed: their replies never come.
func (c *Cluster) failBatches(n *node) {
	for _, e := range c.journal {
		if e.Node == n.number && e.Ended == 0 {
			e.Ended = c.now
		}
	}
}

// Check says what of the promises does not hold, once everything has healed. Strict: no deletion
// takes a point that it could not know of. Agree: clocks do, and what was deleted stays so.
func (c *Cluster) Check(strict, agree bool) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	deleted := make(map[metric.SeriesID]bool)
	for _, e := range c.journal {
		for _, s := range e.Deletes {
			deleted[s] = true
		}
	}
	sent := make(map[replication.Row]*Entry) // by series, slot and value
	for number, e := range c.journal {
		for _, r := range e.Rows {
			r.Incarnation = 0
			sent[r] = e
			if !e.Answered || !e.Reply.Done || c.deletedBehind(e, r.Series) || deleted[r.Series] && !strict {
				continue
			}
			if got := c.value(r.Series, r.Slot); got.Compare(r.Value) < 0 {
				say("batch %d was acknowledged, %x/%d should hold %x or more and holds %x", number+1,
					r.Series[:2], r.Slot, r.Value.Word, got.Word)
			}
		}
	}
	wrong = append(wrong, c.checkStored(sent, agree)...)
	return append(wrong, c.checkAccount()...)
}

// copies says which acknowledged points are on fewer than W disks now, be it as hints. Every
// disk of a member that was lost may have taken one.
func (c *Cluster) copies() (wrong []string) {
	lost := 0
	for _, n := range c.nodes {
		if n.hasLostDisk() {
			lost++
		}
	}
	deleted := make(map[metric.SeriesID]bool)
	for _, e := range c.journal {
		for _, s := range e.Deletes {
			deleted[s] = true
		}
	}
	for number, e := range c.journal {
		if !e.Answered || !e.Reply.Done {
			continue
		}
		for _, r := range e.Rows {
			have := 0
			for _, n := range c.nodes {
				if !n.gone && n.disk.has(r) {
					have++
				}
			}
			if have < c.writes(c.copiesOf(r.Series))-lost && !deleted[r.Series] {
				wrong = append(wrong, fmt.Sprintf("batch %d was acknowledged, %x/%d=%x is on %d disks",
					number+1, r.Series[:2], r.Slot, r.Value.Word, have))
			}
		}
	}
	return wrong
}

// deletedBehind reports whether a deletion of a series may have come behind a batch.
func (c *Cluster) deletedBehind(of *Entry, s metric.SeriesID) bool {
	return slices.ContainsFunc(c.journal, func(e *Entry) bool {
		return slices.Contains(e.Deletes, s) && (e.Ended == 0 || e.Ended >= of.At || !e.Reply.Done)
	})
}

// value returns what the first owner of a series holds in a slot. Copies are equal when this
// is asked.
func (c *Cluster) value(s metric.SeriesID, slot uint64) replication.Value {
	return c.nodeOf(c.view.Owners(nil, c.view.Partition(s), ring.Current,
		0)[0]).disk.seriesOf(s).slots[slot]
}

// checkStored looks for points that nobody sent, and for such that were deleted.
func (c *Cluster) checkStored(sent map[replication.Row]*Entry, agree bool) (wrong []string) {
	for s := range c.seriesSent() {
		for slot := range c.slots {
			v := c.value(s, slot)
			if v == (replication.Value{}) {
				continue
			}
			e := sent[replication.Row{Series: s, Slot: slot, Value: v}]
			if e == nil {
				wrong = append(wrong, fmt.Sprintf("%x/%d holds %x, which nobody sent", s[:2], slot, v.Word))
				continue
			}
			for number, d := range c.journal {
				before := e.Ended != 0 && e.Ended < d.At
				if agree && slices.Contains(d.Deletes, s) && d.Answered && d.Reply.Done && before {
					wrong = append(wrong, fmt.Sprintf("%x/%d holds %x again, which batch %d deleted", s[:2], slot,
						v.Word, number+1))
				}
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

func (c *Cluster) seriesSent() map[metric.SeriesID]bool {
	all := make(map[metric.SeriesID]bool)
	for _, e := range c.journal {
		for _, r := range e.Rows {
			all[r.Series] = true
		}
	}
	return all
}

// checkAccount compares what clients were told with what the nodes logged before.
func (c *Cluster) checkAccount() (wrong []string) {
	for number, e := range c.journal {
		if !e.Answered || c.nodes[e.Node].gone {
			continue
		}
		logged, ok := c.nodes[e.Node].disk.account[e.Reply.Batch]
		if !ok || logged != e.Reply.Counts || logged.Points() != len(e.Rows) {
			wrong = append(wrong,
				fmt.Sprintf("batch %d of %d points: the client was told %+v, the account says %+v, %t",
					number+1, len(e.Rows), e.Reply.Counts, logged, ok))
		}
		if e.Reply.Done && e.Reply.Counts.Unconfirmed > 0 {
			wrong = append(wrong, fmt.Sprintf("batch %d is done with %d points unconfirmed", number+1,
				e.Reply.Counts.Unconfirmed))
		}
	}
	return wrong
}
