package memory

import (
	"cmp"
	"slices"
	"time"
)

// Sweep applies the rules of the pools of leases: it cuts clients off that make no
// progress, earlier while memory is short, and refuses those that have waited too long
// for memory. It is called a few times a second.
func (b *Budget) Sweep() {
	now := b.now()
	b.mu.Lock()
	pools := make([]*Leases, 0, len(b.pools))
	for i := range b.pools {
		if p := b.pools[i].leases; p != nil {
			pools = append(pools, p)
		}
	}
	b.mu.Unlock()
	for _, p := range pools {
		p.sweep(now)
	}
}

// serve lends to those who wait, in their order. The one who has had memory for longest does
// not wait behind others: they may wait for what it has. Under the lock.
func (p *Leases) serve() {
	for len(p.waiting) > 0 {
		if !p.grant(p.waiting[0]) && !p.grantFirst() && !p.endStuck() {
			return
		}
	}
}

// grantFirst lends to the one who has had memory for longest, if it waits and there is room.
func (p *Leases) grantFirst() bool {
	return len(p.holding) > 0 && p.holding[0].waits != nil && p.grant(p.holding[0].waits)
}

// endStuck answers the one who came last of those that have memory, where all of them wait for
// more of the pool: none of them gives back what the others wait for, even when its client is gone.
// A client's end lies behind what it sent, so it shows only to who reads on. Once more memory is
// back the others are served, or it is the turn of the next one. Under the lock.
func (p *Leases) endStuck() bool {
	if len(p.holding) == 0 || slices.ContainsFunc(p.holding, func(l *Lease) bool {
		return l.waits == nil
	}) {
		return false
	}
	first, last := p.holding[0].waits, p.holding[len(p.holding)-1].waits
	if why := first.l.lacks(first.n); why != nil && why.OfPressure {
		return false // the process may have memory again in a moment
	}
	p.answer(last)
	return true
}

// grant answers somebody who waits, unless he has to wait on.
func (p *Leases) grant(w *waiter) bool {
	refusal := w.l.take(w.n)
	switch {
	case refusal == nil:
		w.got <- nil
	case refusal.TooLarge:
		p.refuse(w, refusal)
	default:
		return false
	}
	p.drop(w)
	return true
}

// refuse answers somebody who waits that there is nothing for him.
func (p *Leases) refuse(w *waiter, refusal *Refusal) {
	p.counts.Refused++
	w.got <- refusal
}

// drop takes somebody out of those who wait. Under the lock.
func (p *Leases) drop(w *waiter) {
	w.l.waits = nil
	p.waiting = slices.DeleteFunc(p.waiting, func(o *waiter) bool { return o == w })
}

// sweep cuts off who has to be, and lends what became free.
func (p *Leases) sweep(now time.Time) {
	p.mu.Lock()
	p.serve()
	victims := p.choose(now)
	p.mu.Unlock()
	for _, v := range victims {
		v.cut(v.why)
	}
}

// victim is a client that is cut off.
type victim struct {
	cut func(CutReason)
	why CutReason
}

// choose returns the clients to cut off now, and refuses somebody who has waited
// for too long where there is none. Under the lock.
func (p *Leases) choose(now time.Time) []victim {
	var victims []victim
	idle := make([]*Lease, 0, len(p.awaited)) // those that are not cut off yet
	going := int64(0)                         // bytes that come back soon
	cut := func(l *Lease, why CutReason) {
		l.cutAt = now
		going += l.bytes.Load()
		if why == CutStalled {
			p.counts.CutStalled++
		} else {
			p.counts.CutPressure++
		}
		victims = append(victims, victim{l.cut, why})
	}
	for l := range p.awaited {
		switch {
		case !l.cutAt.IsZero():
			if now.Sub(l.cutAt) < patience { // else its owner does not notice: nobody waits for it
				going += l.bytes.Load()
			}
		case p.o.Stall > 0 && now.Sub(l.lastMoved()) >= p.o.Stall:
			cut(l, CutStalled)
		default:
			idle = append(idle, l)
		}
	}
	target, short := p.target()
	if !short {
		return victims
	}
	slices.SortFunc(idle, func(a, b *Lease) int { return cmp.Compare(a.moved.Load(), b.moved.Load()) })
	for len(idle) > 0 && p.used.Load()-going > target && now.Sub(idle[0].lastMoved()) >= grace {
		cut(idle[0], CutPressure)
		idle = idle[1:]
	}
	if len(p.waiting) == 0 || going > 0 || now.Sub(p.waiting[0].since) < patience {
		return victims
	}
	if len(idle) > 0 {
		cut(slices.MinFunc(idle, func(a, b *Lease) int { return a.began.Compare(b.began) }), CutPressure)
		return victims
	}
	if now.Sub(p.refusedAt) >= grace {
		p.refusedAt = now
		p.answer(p.waiting[len(p.waiting)-1])
	}
	return victims
}

func (l *Lease) lastMoved() time.Time { return time.Unix(0, l.moved.Load()) }

// target returns down to how many bytes clients without progress are cut off, and
// whether memory is short at all. Under the lock.
func (p *Leases) target() (bytes int64, short bool) {
	bytes = p.o.Limit
	switch {
	case p.b.limit == 0:
		return bytes, false
	case p.b.Level() >= NoQueries:
		return 0, true
	case p.used.Load() > p.o.Limit/8*fullPart:
		bytes, short = p.o.Limit/8*clearPart, true
	}
	for _, w := range p.waiting {
		bytes, short = bytes-w.n, true
	}
	return max(bytes, 0), short
}

// answer lends to somebody out of his turn, or refuses him. Under the lock.
func (p *Leases) answer(w *waiter) {
	if refusal := w.l.take(w.n); refusal != nil {
		p.refuse(w, refusal)
	} else {
		w.got <- nil
	}
	p.drop(w)
}

// Counts returns what the pool refused and cut off.
func (p *Leases) Counts() LeaseCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.Waiting = int64(len(p.waiting))
	return c
}
