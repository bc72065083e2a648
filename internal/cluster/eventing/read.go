package eventing

import (
	"context"
	"errors"
	"time"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store/events"
)

// patience is how long a read waits for a node without which its answer is whole as well.
const patience = 500 * time.Millisecond

// readMemory is what the pages of a read take, shared by the nodes; a page is as small as minPage
// then.
const (
	readMemory = 8 << 20
	minPage    = 32 << 10
)

// Read implements events.Store over all nodes. A gap is also what fewer owners have answered for
// than it takes.
func (e *Eventing) Read(ctx context.Context, bucket string, start, end int64,
	fn func(*events.Event) error) ([]events.Gap, error) {
	lease := e.o.Own.Leases().LeaseFor(ctx)
	defer lease.Release()
	return e.merge(ctx, lease, bucket, pageRequest{start: start, end: end}, fn)
}

// ReadBack is Read in the other order.
func (e *Eventing) ReadBack(ctx context.Context, bucket string, start, end int64,
	fn func(*events.Event) error) ([]events.Gap, error) {
	lease := e.o.Own.Leases().LeaseFor(ctx)
	defer lease.Release()
	return e.merge(ctx, lease, bucket, pageRequest{start: start, end: end, back: true}, fn)
}

// merge reads the events of all nodes in one order, with memory of a lease, to which it gives it
// back. It has answered for those behind which it stopped.
func (e *Eventing) merge(ctx context.Context, lease *memory.Lease, bucket string, q pageRequest,
	fn func(*events.Event) error) ([]events.Gap, error) {
	info, err := e.o.Bucket(bucket)
	if err != nil {
		return nil, err
	}
	first, _ := e.o.Own.Lives(&info)
	if q.start = max(q.start, first); q.start >= q.end {
		return nil, nil
	}
	q.bucket = info.ID
	// Pages are read by other goroutines than that of the lease that ctx may have.
	pages, cancel := context.WithCancel(e.ctx)
	defer cancel()
	m := mergeRun{e: e, ctx: ctx, back: q.back, cover: e.cover(info, q.start, q.end), lease: lease}
	had := lease.Bytes()
	defer func() { lease.Shrink(lease.Bytes() - had) }()
	nodes := e.nodesToAsk(&m.cover)
	q.limit = min(max(readMemory/2/len(nodes), minPage), pageBytes)
	if err := m.lease.GrowWhenFree(ctx, 2*int64(q.limit)*int64(len(nodes))); err != nil {
		return nil, err
	}
	for _, id := range nodes {
		m.from = append(m.from, e.read(pages, id, q))
	}
	last, err := m.run(fn)
	if last != nil && q.back {
		m.cover.start = max(m.cover.start, *last)
	} else if last != nil {
		m.cover.end = min(m.cover.end, *last+1)
	}
	if err != nil {
		return nil, err
	}
	return e.missingGaps(&m.cover, m.gapsByNode()), nil
}

// mergeRun is a read over several nodes.
type mergeRun struct {
	e     *Eventing
	ctx   context.Context
	back  bool
	cover cover
	lease *memory.Lease
	from  []*nodeEvents
}

// gapsByNode are the nodes that have answered so far.
func (m *mergeRun) gapsByNode() map[ring.ID][]events.Gap {
	of := make(map[ring.ID][]events.Gap, len(m.from))
	for _, r := range m.from {
		if r.heard && !r.gone {
			of[r.node] = r.gaps
		}
	}
	return of
}

// isNeeded reports whether the answer is not whole without a node.
func (m *mergeRun) isNeeded(r *nodeEvents) bool {
	answered := m.gapsByNode()
	delete(answered, r.node)
	return len(m.cover.gaps(answered, 0)) > 0
}

// run calls fn with each event once. It returns the time of the last one if fn stopped at it.
func (m *mergeRun) run(fn func(*events.Event) error) (last *int64, err error) {
	var before events.Event
	for n := 0; ; n++ {
		var next *events.Event
		for _, r := range m.from {
			if err := m.load(r); err != nil {
				return nil, err
			}
			for len(r.list) > 0 && n > 0 && eventfile.Compare(&r.list[0], &before) == 0 { // another copy
				r.list = r.list[1:]
				if err := m.load(r); err != nil {
					return nil, err
				}
			}
			if len(r.list) == 0 {
				continue
			}
			if e := &r.list[0]; next == nil || eventfile.Compare(e, next) < 0 != m.back {
				next = e
			}
		}
		if next == nil {
			return nil, m.ctx.Err()
		}
		before = *next
		if err := fn(next); errors.Is(err, events.Stop) {
			return &before.Time, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// load gets the next page of a node, if nothing is left of the last one. A node that fails is gone.
// So is one that keeps others waiting after they have answered.
func (m *mergeRun) load(r *nodeEvents) error {
	for len(r.list) == 0 && !r.ended {
		timer := time.NewTimer(patience)
		select {
		case p, ok := <-r.pages:
			timer.Stop()
			if err := m.take(r, p, ok); err != nil {
				return err
			}
		case <-timer.C:
			if err := m.hear(); err != nil {
				return err
			}
			if len(r.list) == 0 && !m.isNeeded(r) {
				r.cancel()
				r.ended, r.gone = true, true
			}
		case <-m.ctx.Done():
			timer.Stop()
			return m.ctx.Err()
		}
	}
	return nil
}

// hear takes the pages that have come of all nodes.
func (m *mergeRun) hear() error {
	for _, r := range m.from {
		if len(r.list) > 0 || r.ended {
			continue
		}
		select {
		case p, ok := <-r.pages:
			if err := m.take(r, p, ok); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// take takes a page of a node, or with ok false the end of all.
func (m *mergeRun) take(r *nodeEvents, p page, ok bool) error {
	if !ok {
		r.ended, r.gone = true, r.err != nil
		return nil
	}
	if err := m.lend(r, p.list); err != nil {
		return err
	}
	r.heard, r.list, r.gaps = true, p.list, mergeGaps(append(r.gaps, p.gaps...), maxGaps)
	return nil
}

// lend makes up for what a page has beyond what was lent for it: an event may be longer than a
// page.
func (m *mergeRun) lend(r *nodeEvents, list []events.Event) error {
	size := int64(0)
	for i := range list {
		size = max(size, int64(len(list[i].Body)))
	}
	if size <= r.lent {
		return nil
	}
	err := m.lease.GrowWhenFree(m.ctx, size-r.lent)
	if err == nil {
		r.lent = size
	}
	return err
}
