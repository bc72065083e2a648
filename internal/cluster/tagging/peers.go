package tagging

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// maxQueued bounds the queued bytes of a node. Changes beyond it reach the node by a comparison.
const maxQueued = 4 << 20

type counters struct {
	lost, comparisons, differences, moved, expired atomic.Uint64
}

// peer is the state of another member. Tagging.mu guards it.
type peer struct {
	id      ring.ID
	up      bool
	met     bool // a comparison has ended since this node may have missed changes
	ctx     context.Context
	cancel  context.CancelFunc
	queue   []queuedChange
	bytes   int64
	pushed  uint64 // the number of the last change sent
	lost    uint64 // the number of the last change that was dropped from the queue or not applied
	passed  uint64 // all changes up to this number reached the peer by a comparison
	want    chan struct{}
	compare chan struct{}
}

// queuedChange is a change or a deletion on its way.
type queuedChange struct {
	number  uint64
	bucket  uint64
	change  []byte
	deleted deletedSeries
}

// size returns the memory of a change in a queue.
func (o *queuedChange) size() int64 { return int64(len(o.change)) + 96 }

// has reports whether all changes up to a number are on the peer's disk.
func (p *peer) has(number uint64) bool {
	return number <= p.passed || number <= p.pushed && p.lost <= p.passed
}

// lose leaves the changes up to a number to a comparison.
func (t *Tagging) lose(p *peer, number uint64) {
	t.counters.lost.Add(1)
	p.lost = max(p.lost, number)
	signal(p.compare)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // a signal is pending already
	}
}

// notifyChange wakes all waiters for a change of the peers. The lock is held.
func (t *Tagging) notifyChange() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// broadcast queues a change or a deletion for all other nodes.
func (t *Tagging) broadcast(o queuedChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number++
	o.number = t.number
	for _, p := range t.peers {
		if !p.up || p.bytes+o.size() > maxQueued {
			t.lose(p, o.number)
			continue
		}
		p.queue = append(p.queue, o)
		p.bytes += o.size()
		signal(p.want)
	}
}

// Members sets the other members, and whether each of them is reachable.
func (t *Tagging) Members(others map[ring.ID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return
	}
	if !t.begun {
		t.begun = true
		t.done.Go(t.leave)
	}
	reached, changes := 1, false
	for id, up := range others {
		p := t.peers[id]
		if p == nil {
			p = &peer{
				id:      id,
				met:     !t.behind,
				lost:    t.number,
				want:    make(chan struct{}, 1),
				compare: make(chan struct{}, 1),
			}
			p.ctx, p.cancel = context.WithCancel(t.ctx)
			t.peers[id] = p
			t.done.Go(func() { t.pushTo(p) })
			t.done.Go(func() { t.compareWith(p) })
		}
		if changes = changes || p.up != up; up && !p.up {
			signal(p.compare)
		}
		if p.up = up; up {
			reached++
		}
	}
	for id, p := range t.peers {
		if _, ok := others[id]; !ok {
			p.cancel()
			delete(t.peers, id)
			changes = true
		}
	}
	// the others may go on without this one
	if t.few = 2*reached <= len(others)+1 && len(others) > 0; t.few {
		t.behind = true
		for _, p := range t.peers {
			p.met = p.met && p.up
		}
	}
	if changes {
		t.notifyChange()
	}
}

// next takes the next batch from the queue of a peer.
func (t *Tagging) next(p *peer) (list []queuedChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := make(map[uint64]bool)
	bytes, deletions := 0, 0
	for i := range p.queue {
		o := &p.queue[i]
		of[o.bucket] = true
		if o.change == nil {
			deletions++
		}
		if bytes += len(o.change); i > 0 &&
			(bytes > pushBytes || deletions > maxDeletions || len(of) > bucketsOfPush) {
			break
		}
		list = append(list, *o)
		p.bytes -= o.size()
	}
	p.queue = slices.Delete(p.queue, 0, len(list))
	return list
}

// pushTo sends the queue of a peer, in order.
func (t *Tagging) pushTo(p *peer) {
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.want:
		}
		for list := t.next(p); len(list) > 0; list = t.next(p) {
			refused, err := t.pushList(p, list)
			if err != nil && p.ctx.Err() == nil {
				t.warn("tags push", "changes of tags did not reach a node; the next comparison brings them",
					"node", t.o.Name(p.id), "err", err)
			}
			t.mu.Lock()
			last := list[len(list)-1].number
			if p.pushed = last; err != nil || refused > 0 {
				t.lose(p, last)
			}
			t.notifyChange()
			t.mu.Unlock()
		}
	}
}

// pushList sends one batch of a queue.
func (t *Tagging) pushList(p *peer, list []queuedChange) (refused uint64, err error) {
	var g push
	of := make(map[uint64]bool)
	for i := range list {
		of[list[i].bucket] = true
		if g.changes = append(g.changes, list[i].change...); list[i].change == nil {
			g.deletions = append(g.deletions, list[i].deleted)
		}
	}
	g.defined = t.o.Define(slices.Sorted(maps.Keys(of)))
	ctx, cancel := context.WithTimeout(p.ctx, t.o.Timeout)
	defer cancel()
	got, err := t.push(ctx, p.id, &g)
	return got.refused, err
}

// compareWith compares with a peer when it comes up, after a lost change, and at intervals.
func (t *Tagging) compareWith(p *peer) {
	timer := time.NewTimer(t.o.Compare)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.compare:
		case <-timer.C:
		}
		wait := t.o.Compare
		if !t.comparison(p) {
			wait = t.o.Retry
		}
		timer.Reset(wait)
	}
}

// comparison compares with a peer once. It returns false if it must be repeated soon.
func (t *Tagging) comparison(p *peer) bool {
	t.mu.Lock()
	up, number := p.up, t.number
	t.mu.Unlock()
	if !up || t.o.Check() != nil {
		return !up
	}
	t.o.Tags.Forget()
	done, err := t.exchange.compare(p.ctx, p.id)
	t.counters.moved.Add(uint64(done.moved))
	if err != nil {
		if p.ctx.Err() == nil {
			t.warn("tags compare", "a comparison of tags with a node failed; it is tried again", "node",
				t.o.Name(p.id), "err", err)
		}
		return false
	}
	t.counters.comparisons.Add(1)
	if done.moved > 0 {
		t.counters.differences.Add(1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.met = p.met || p.up
	if done.refused == 0 {
		p.passed = max(p.passed, number)
	}
	t.notifyChange()
	return p.lost <= p.passed || done.refused > 0
}
