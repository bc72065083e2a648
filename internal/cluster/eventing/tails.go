package eventing

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/store/events"
)

// maxShown is how many bytes of events wait for the live tails of a node. Further events are
// missed.
const maxShown = 2 << 20

// tails are the live tails of another node, and what it has shown to those of this one.
type tails struct {
	tell chan struct{} // tell it of ours now
	more chan struct{}

	mu      sync.Mutex
	of      map[uint64]bool // buckets
	until   time.Time       // when to forget them
	queue   []tailBatch
	bytes   int
	missed  map[uint64]uint64 // by bucket, behind those of the queue
	pending tailBatch         // that was not answered; number 0: none

	boot, last uint64 // of what it showed

	told   int // tells that ended
	toldOf chan struct{}
}

func (t *tails) begin() {
	t.tell, t.more, t.missed, t.toldOf = make(chan struct{}, 1), make(chan struct{}, 1),
		make(map[uint64]uint64), make(chan struct{})
}

// set notes which tails there are.
func (t *tails) set(list []uint64, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of, t.until = make(map[uint64]bool, len(list)), until
	for _, b := range list {
		t.of[b] = true
	}
	poke(t.more)
}

// offer queues copies of events, if there is a tail for them. It returns how many found no room.
func (t *tails) offer(bucket uint64, list []events.Event) (missed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.of[bucket] || time.Now().After(t.until) {
		return 0
	}
	defer poke(t.more)
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && (n == 0 || size+sizeOf(list[n:n+1]) <= chunkBytes) {
			size += sizeOf(list[n : n+1])
			n++
		}
		if t.missed[bucket] > 0 || t.bytes+size > maxShown {
			t.missed[bucket] += uint64(len(list))
			return len(list)
		}
		m := tailBatch{bucket: bucket}
		for i := range list[:n] {
			m.list = append(m.list, events.Event{
				Time: list[i].Time,
				ID:   list[i].ID,
				Body: slices.Clone(list[i].Body),
			})
		}
		t.queue, t.bytes = append(t.queue, m), t.bytes+size
		list = list[n:]
	}
	return 0
}

func sizeOf(list []events.Event) (n int) {
	for i := range list {
		n += len(list[i].Body) + eventHead
	}
	return n
}

// next returns what is to be shown next. It is the same until answered is called.
func (t *tails) next(number *atomic.Uint64) (m tailBatch, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Now().After(t.until) {
		t.queue, t.bytes, t.pending = nil, 0, tailBatch{}
		clear(t.missed)
		return tailBatch{}, false
	}
	if t.pending.number > 0 {
		return t.pending, true
	}
	if len(t.queue) > 0 {
		t.pending, t.queue = t.queue[0], t.queue[1:]
		t.bytes -= sizeOf(t.pending.list)
	} else {
		for bucket, n := range t.missed {
			t.pending = tailBatch{bucket: bucket, missed: n}
			delete(t.missed, bucket)
			break
		}
		if t.pending.missed == 0 {
			return tailBatch{}, false
		}
	}
	t.pending.number = number.Add(1)
	return t.pending, true
}

// ackLast notes that the last one was shown.
func (t *tails) ackLast() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = tailBatch{}
}

// isNew reports whether a message of the other node was not here yet.
func (t *tails) isNew(m *tailBatch) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.boot == t.boot && m.number <= t.last {
		return false
	}
	t.boot, t.last = m.boot, m.number
	return true
}

// show offers new events to the live tails of all nodes.
func (e *Eventing) show(bucket uint64, list []events.Event) {
	if len(list) == 0 {
		return
	}
	e.o.Own.Show(bucket, list, 0)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.peers {
		e.counters.missed.Add(uint64(p.tails.offer(bucket, list)))
	}
}

// showTo sends a peer what its tails are to show. What was not answered is sent again.
func (e *Eventing) showTo(p *peer) {
	timer := time.NewTimer(e.o.Retry)
	defer timer.Stop()
	for {
		select {
		case <-p.tails.more:
		case <-timer.C:
		case <-p.ctx.Done():
			return
		}
		for m, ok := p.tails.next(&e.shown); ok; m, ok = p.tails.next(&e.shown) {
			m.boot = e.boot
			ctx, cancel := context.WithTimeout(p.ctx, e.o.Timeout)
			_, err := e.ask(ctx, p.id, m.append(nil), 0)
			cancel()
			if err != nil {
				timer.Reset(e.o.Retry)
				break
			}
			p.tails.ackLast()
		}
	}
}

// tellOf tells a peer which live tails this node has: when that has changed, and every now and
// then.
func (e *Eventing) tellOf(p *peer) {
	timer := time.NewTimer(e.o.Follow)
	defer timer.Stop()
	told := false // it knows of some
	for {
		select {
		case <-p.tails.tell:
		case <-timer.C:
		case <-p.ctx.Done():
			return
		}
		list := e.o.Own.Followed()
		if list = list[:min(len(list), maxBuckets)]; len(list) > 0 || told {
			ctx, cancel := context.WithTimeout(p.ctx, e.o.Timeout)
			_, err := e.ask(ctx, p.id, (&followRequest{list}).append(nil), 0)
			cancel()
			told = told && err != nil || len(list) > 0
		}
		p.tails.finishPeer()
		timer.Reset(e.o.Follow)
	}
}

// finishPeer notes that the peer was told.
func (t *tails) finishPeer() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told++
	close(t.toldOf)
	t.toldOf = make(chan struct{})
}

// await waits for a tell that begins from now on.
func (t *tails) await(ctx context.Context) {
	t.mu.Lock()
	want := t.told + 2 // one may be under way
	t.mu.Unlock()
	for {
		poke(t.tell)
		t.mu.Lock()
		told, changed := t.told, t.toldOf
		t.mu.Unlock()
		if told >= want {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// followWait is how long Follow waits for a node that does not answer: what is written there
// meanwhile is not shown.
const followWait = time.Second

// Follow implements events.Store. What is written on nodes that are up is shown from the return on.
func (e *Eventing) Follow(bucket string, bytes int) (*events.Follower, error) {
	f, err := e.o.Own.Follow(bucket, bytes)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(e.ctx, followWait)
	defer cancel()
	var all sync.WaitGroup
	for _, id := range e.otherNodes(true) {
		if p := e.peer(id); p != nil {
			all.Go(func() { p.tails.await(ctx) })
		}
	}
	all.Wait()
	return f, nil
}
