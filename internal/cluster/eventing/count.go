package eventing

import (
	"context"
	"time"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/store/events"
)

// cellMemory is what a cell of a count takes, for each node.
const cellMemory = 64

// Count implements events.Store. The nodes send digests of cells, which an hour or a step begins;
// of cells of which they have different events these are read.
func (e *Eventing) Count(ctx context.Context, bucket string, start, end, step int64) ([]int64,
	[]events.Gap, error) {
	info, err := e.o.Bucket(bucket)
	if err != nil {
		return nil, nil, err
	}
	first, _ := e.o.Own.Lives(&info)
	steps, err := events.NewSteps(start, end, first, step)
	if err != nil {
		return nil, nil, err
	}
	if max(start, first) >= end {
		return steps.Counts(), nil, nil
	}
	m := &countRequest{bucket: info.ID, start: start, end: end, step: step}
	if first > start { // the first step of which not everything has expired
		m.start += int64(uint64(first-start) / uint64(step) * uint64(step))
	}
	c := countRun{
		e:        e,
		ctx:      ctx,
		cover:    e.cover(info, start, end),
		answered: make(map[ring.ID][]events.Gap),
	}
	nodes := e.nodesToAsk(&c.cover)
	lease := e.o.Own.Leases().LeaseFor(ctx)
	defer lease.Release()
	cells := int64(len(steps.Counts())) +
		(min(end, c.cover.end)-max(start, c.cover.start))/events.DigestStep + 1
	if err := lease.GrowWhenFree(ctx, cellMemory*cells*int64(len(nodes))); err != nil {
		return nil, nil, err
	}
	if err := c.ask(nodes, m); err != nil {
		return nil, nil, err
	}
	var gaps []events.Gap
	for from, past, ok := c.next(steps, m.cells()); ok; from, past, ok = c.next(steps, m.cells()) {
		more, err := e.merge(ctx, lease, bucket, pageRequest{
			start: from,
			end:   min(past, end),
			keys:  true,
		}, func(n *events.Event) error {
			steps.Add(n.Time)
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		gaps = append(gaps, more...)
	}
	return steps.Counts(), mergeGaps(append(gaps, e.missingGaps(&c.cover, c.answered)...),
		maxTold), nil
}

// countRun is a count over several nodes.
type countRun struct {
	e        *Eventing
	ctx      context.Context
	cover    cover
	answered map[ring.ID][]events.Gap
	cells    []cell // of all that have answered, by time
}

// cell is what nodes say of a cell.
type cell struct {
	events.Digest
	differs bool
}

// answer is that of a node.
type answer struct {
	node ring.ID
	cellList
	err error
}

// ask asks nodes for their digests. A node that fails, or without which the answer is whole, is
// left out.
func (c *countRun) ask(nodes []ring.ID, m *countRequest) error {
	asking, cancel := context.WithCancel(c.e.ctx)
	defer cancel()
	answers := make(chan answer, len(nodes))
	for _, id := range nodes {
		ask := func() {
			t, err := c.e.cellsOf(asking, id, *m)
			answers <- answer{id, t, err}
		}
		if !c.e.startTask(ask) {
			return errStopped
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for waiting := len(nodes); waiting > 0; {
		select {
		case a := <-answers:
			if waiting--; a.err == nil {
				c.answered[a.node] = a.gaps
				c.add(a.list)
			}
		case <-timer.C:
			if len(c.cover.gaps(c.answered, 0)) == 0 {
				return nil
			}
			timer.Reset(patience)
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	return nil
}

// add merges digests of a node with those of others. A node that has nothing of a cell differs from
// nobody.
func (c *countRun) add(list []events.Digest) {
	if len(c.cells) == 0 {
		c.cells = make([]cell, len(list))
		for i, d := range list {
			c.cells[i].Digest = d
		}
		return
	}
	out := make([]cell, 0, max(len(list), len(c.cells)))
	for have := c.cells; len(have)+len(list) > 0; {
		switch {
		case len(list) == 0 || len(have) > 0 && have[0].Start < list[0].Start:
			out, have = append(out, have[0]), have[1:]
		case len(have) == 0 || list[0].Start < have[0].Start:
			out, list = append(out, cell{Digest: list[0]}), list[1:]
		default:
			n := have[0]
			n.differs = n.differs || n.Digest != list[0]
			out, have, list = append(out, n), have[1:], list[1:]
		}
	}
	c.cells = out
}

// next counts cells up to the next range of which nodes have different events, and returns that.
func (c *countRun) next(steps *events.Steps, cells events.Cells) (from, past int64, ok bool) {
	for len(c.cells) > 0 && (!ok || c.cells[0].differs && c.cells[0].Start == past) {
		n := c.cells[0]
		c.cells = c.cells[1:]
		if !n.differs {
			steps.AddMany(n.Start, int64(n.Events))
			continue
		}
		if !ok {
			from, ok = n.Start, true
		}
		_, end := cells.Of(n.Start)
		past = int64(min(end, maxTime))
	}
	return from, past, ok
}

// cellsOf returns the digests of a node, as they are under the ring of this one.
func (e *Eventing) cellsOf(ctx context.Context, node ring.ID, m countRequest) (t cellList,
	err error) {
	err = e.agreed(ctx, func(v ring.Version) error {
		m.version = v
		if node == e.o.Self {
			t, err = e.ownCells(ctx, &m)
			return err
		}
		reply, err := e.ask(ctx, node, m.append(nil), maxReply)
		if err != nil {
			return err
		}
		return t.parse(reply)
	})
	return t, err
}

// ownCells returns the digests of this node. A bucket that is not here has none.
func (e *Eventing) ownCells(ctx context.Context, m *countRequest) (t cellList, err error) {
	if err := e.checkVersion(m.version); err != nil {
		return cellList{}, err
	}
	info, ok := e.o.ByID(m.bucket)
	if !ok {
		return cellList{}, nil
	}
	first, _ := e.o.Own.Lives(&info)
	t.list, t.gaps, err = e.o.Own.Digests(ctx, info.ID, max(m.start, first), m.end, m.cells())
	t.gaps = mergeGaps(t.gaps, maxGaps)
	return t, err
}
