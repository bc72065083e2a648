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
		if !p.grant(p.waiting[0]) && !p.grantFirst() {
			return
		}
	}
}

// grantFirst lends to the one who has had memory for longest, if it waits and there is room.
func (p *Leases) grantFirst() bool {
	if len(p.holding) == 0 {
		return false
	}
	i := slices.IndexFunc(p.waiting, func(w *waiter) bool { return w.l == p.holding[0] })
	return i >= 0 && p.grant(p.waiting[i])
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
	cut func(Cut)
	why Cut
}

// choose returns the clients to cut off now, and refuses somebody who has waited
// for too long where there is none. Under the lock.
func (p *Leases) choose(now time.Time) []victim {
	var victims []victim
	idle := make([]*Lease, 0, len(p.awaited)) // those that are not cut off yet
	going := int64(0)                         // bytes that come back soon
	cut := func(l *Lease, why Cut) {
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
		p.refuseLast()
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

// refuseLast refuses the one who came last to wait. Under the lock.
func (p *Leases) refuseLast() {
	w := p.waiting[len(p.waiting)-1]
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
