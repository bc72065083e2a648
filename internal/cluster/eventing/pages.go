package eventing

import (
	"context"
	"time"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/store/events"
)

// nodeEvents is the events of one node, in the order of a read.
type nodeEvents struct {
	node   ring.ID
	pages  chan page
	cancel context.CancelFunc
	err    error // why there are no more pages; valid when pages is closed

	// Of who merges:
	list  []events.Event
	lent  int64 // for the longest of its events
	heard bool  // a page has come
	ended bool
	gone  bool // it failed, or was given up
	gaps  []events.Gap
}

// againWait is the wait before a node is asked again that has too much to do, or another ring.
const againWait = 50 * time.Millisecond

// read begins to read the events of a node. The next page is fetched while the last one is used.
func (e *Eventing) read(ctx context.Context, node ring.ID, q pageRequest) *nodeEvents {
	r := &nodeEvents{node: node, pages: make(chan page), lent: int64(q.limit)}
	ctx, r.cancel = context.WithCancel(ctx)
	fetch := func() {
		defer close(r.pages)
		for more := true; more; {
			var p page
			r.err = e.agreed(ctx, func(v ring.Version) (err error) {
				q.version = v
				p, err = e.fetch(ctx, node, &q)
				return err
			})
			if r.err != nil {
				return
			}
			if n := len(p.list); n > 0 {
				q.behind = position{p.list[n-1].Time, p.list[n-1].ID}
			}
			more = p.more && len(p.list) > 0
			select {
			case r.pages <- p:
			case <-ctx.Done():
				r.err = ctx.Err()
				return
			}
		}
	}
	if !e.startTask(fetch) {
		r.err = errStopped
		close(r.pages)
	}
	return r
}

// fetch returns a page of a node.
func (e *Eventing) fetch(ctx context.Context, node ring.ID, q *pageRequest) (p page, err error) {
	if node == e.o.Self {
		return e.page(ctx, q)
	}
	reply, err := e.ask(ctx, node, q.append(nil), maxReply)
	if err != nil || len(reply) == 0 {
		return page{}, err
	}
	err = p.parse(reply)
	return p, err
}

// agreed does something that is good under the ring of this node, again while a node has too much
// to do or another ring: with another one as long as a write waits.
func (e *Eventing) agreed(ctx context.Context, do func(v ring.Version) error) error {
	for began := time.Now(); ; {
		err := do(e.o.View().Version())
		code := call.CodeOf(err)
		if code != call.Busy && (code != call.OtherRing || time.Since(began) > e.o.Timeout) {
			return err
		}
		timer := time.NewTimer(againWait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
