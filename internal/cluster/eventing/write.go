package eventing

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
)

const (
	maxPushing   = 16 << 20 // bytes on their way to a node; beyond it a node counts as not reached
	placedAtOnce = 8        // chunks of a write
	firstWait    = 10 * time.Millisecond
	mostWait     = 200 * time.Millisecond
)

// Write implements events.Store. Events are on the disks of W owners each when it returns; those
// that are not in time are refused as account.Unconfirmed, and may stay. Those of which an owner
// knows that their bucket was deleted are refused as account.BucketDeleted.
func (e *Eventing) Write(bucket string, list []events.Event) (events.Written, error) {
	if err := e.o.Check(); err != nil {
		return events.Written{}, err
	}
	r, err := e.o.Own.Receive(bucket, list)
	if err != nil {
		return events.Written{}, err
	}
	ctx, cancel := context.WithTimeout(e.ctx, e.o.Timeout)
	defer cancel()
	w := writeRun{e: e, info: r.Bucket, deadline: time.Now().Add(e.o.Timeout)}
	chunks := w.chunks(r.Fresh)
	slots := make(chan struct{}, placedAtOnce)
	var all sync.WaitGroup
	for i := range chunks {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			w.place(ctx, &chunks[i])
		})
	}
	all.Wait()
	if err := e.ctx.Err(); err != nil {
		return events.Written{}, errStopped
	}
	if _, ok := e.o.ByID(r.Bucket.ID); !ok {
		return events.Written{}, buckets.UnknownError(bucket)
	}
	out := events.Written{Counts: r.Counts, Refused: r.Refused, Ahead: r.Ahead}
	for i := range chunks {
		w.count(&chunks[i], &r, &out)
	}
	slices.SortFunc(out.Refused, func(a, b events.Refused) int { return a.At - b.At })
	out.Token, err = e.o.Own.Enter(r.Bucket.ID, &out.Counts)
	return out, err
}

// writeRun is the events of one sender on their way.
type writeRun struct {
	e        *Eventing
	info     buckets.Info
	deadline time.Time
}

// chunk is events of one partition, which are stored together.
type chunk struct {
	partition int
	list      []events.Event
	at        []int // in the events of the sender
	bytes     int

	enough  bool      // W owners have them
	stale   bool      // an owner knows that the bucket was deleted
	owners  []ring.ID // that counted, in the order of the ring
	has     map[ring.ID][]events.Class
	retried map[ring.ID]bool // it may have had them from before
}

// chunks cuts events by the owners that they have, and by size.
func (w *writeRun) chunks(list []events.Event) (out []chunk) {
	v := w.e.o.View()
	open := make(map[int]int) // the last chunk of a partition
	hour, partition := int64(-1), 0
	for i := range list {
		if h := list[i].Time / events.DigestStep; h != hour {
			hour, partition = h, pieceOf(v, w.info.ID, h)
		}
		size := len(list[i].Body) + eventHead
		at, ok := open[partition]
		if !ok || len(out[at].list) == chunkEvents || out[at].bytes+size > chunkBytes {
			at = len(out)
			open[partition] = at
			out = append(out, chunk{
				partition: partition,
				has:       make(map[ring.ID][]events.Class),
				retried:   make(map[ring.ID]bool),
			})
		}
		c := &out[at]
		c.list, c.at, c.bytes = append(c.list, list[i]), append(c.at, i), c.bytes+size
	}
	return out
}

// writeReply is what became of a push.
type writeReply struct {
	to      ring.ID
	classes []events.Class
	err     error
}

// place gives the events of a chunk to their owners until enough have them, or time is up. Owners
// that have not answered by then go on by themselves.
func (w *writeRun) place(ctx context.Context, c *chunk) {
	e := w.e
	copies := e.o.Copies(w.info.ID)
	answers := make(chan writeReply, 2*ring.MaxCopies)
	asked := make(map[ring.ID]bool)
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		v := e.o.View()
		current := v.Owners(nil, c.partition, ring.Current, copies)
		var future []ring.ID
		if v.IsChanging() {
			future = v.Owners(nil, c.partition, ring.Future, copies)
		}
		if c.enough = w.hasQuorum(v, c, current, future); c.enough {
			return
		}
		request := (*storeRequest)(nil)
		for _, to := range slices.Concat(current, future) {
			if asked[to] || c.has[to] != nil || !e.o.Up(to) {
				continue
			}
			if request == nil {
				request = &storeRequest{
					version: v.Version(),
					bucket:  w.info.ID,
					defined: e.o.Define(w.info.ID),
					list:    c.list,
				}
			}
			asked[to] = w.push(to, request, c.bytes, answers)
		}
		timer := time.NewTimer(wait)
		for waiting := true; waiting; {
			select {
			case p := <-answers:
				delete(asked, p.to)
				if c.takeReply(&p); c.stale {
					timer.Stop()
					return
				}
				if c.enough = w.hasQuorum(v, c, current, future); c.enough {
					timer.Stop()
					return
				}
			case <-timer.C:
				waiting = false
			case <-ctx.Done():
				timer.Stop()
				w.keep(c)
				return
			}
		}
		if _, ok := e.o.ByID(w.info.ID); !ok {
			return // it was deleted
		}
	}
}

// takeReply takes the answer of an owner.
func (c *chunk) takeReply(p *writeReply) {
	code := call.CodeOf(p.err)
	switch {
	case p.err == nil:
		c.has[p.to] = p.classes
	// it was told what the bucket is
	case code == call.UnknownBucket || errors.Is(p.err, buckets.ErrUnknown):
		c.stale = true
	case code != call.OtherRing && code != call.Busy:
		c.retried[p.to] = true
	}
}

// hasQuorum reports whether enough owners have the events of a chunk, and reads at all nodes ask
// them.
func (w *writeRun) hasQuorum(v *ring.View, c *chunk, current, future []ring.ID) bool {
	if of := w.e.o.Agreed; of != nil && !of(v) {
		return false
	}
	q := w.e.o.Quorum(v, w.info.ID)
	c.owners = c.holders(c.owners[:0], current)
	return len(current) > 0 && len(c.owners) >= min(q.Writes, len(current)) &&
		len(c.holders(nil, future)) >= min(q.Next, len(future))
}

// holders appends those of a list that have the events.
func (c *chunk) holders(dst, of []ring.ID) []ring.ID {
	for _, id := range of {
		if c.has[id] != nil {
			dst = append(dst, id)
		}
	}
	return dst
}

// push gives events to an owner, and reports whether an answer will come.
func (w *writeRun) push(to ring.ID, m *storeRequest, bytes int, answers chan<- writeReply) bool {
	e := w.e
	if to == e.o.Self {
		list := slices.Clone(m.list)
		for i := range list {
			list[i].Body = slices.Clone(list[i].Body) // the write may be over before
		}
		return e.startTask(func() {
			ctx, cancel := context.WithDeadline(e.ctx, w.deadline)
			defer cancel()
			classes, err := e.take(ctx, &storeRequest{version: m.version, bucket: m.bucket, list: list})
			answers <- writeReply{to, classes, err}
		})
	}
	e.mu.Lock()
	p := e.peers[to]
	if p == nil || p.pushing > 0 && p.pushing+int64(bytes) > maxPushing {
		e.mu.Unlock()
		return false
	}
	p.pushing += int64(bytes)
	e.mu.Unlock()
	request := m.append(make([]byte, 0, bytes+len(m.list)*eventHead+len(m.defined)+64))
	n := len(m.list)
	ended := func() {
		e.mu.Lock()
		p.pushing -= int64(bytes)
		e.mu.Unlock()
	}
	started := e.startTask(func() {
		defer ended()
		ctx, cancel := context.WithDeadline(p.ctx, w.deadline)
		defer cancel()
		reply, err := e.ask(ctx, to, request, n)
		classes := make([]events.Class, len(reply))
		for i, b := range reply {
			if classes[i] = events.Class(b); b >= events.Classes {
				err = errMalformed
			}
		}
		if err == nil && len(classes) != n {
			err = errMalformed
		}
		answers <- writeReply{to, classes, err}
	})
	if !started {
		ended()
	}
	return started
}

// keep stores events here that have too few owners: they are not acknowledged, but comparisons
// bring them to their owners later.
func (w *writeRun) keep(c *chunk) {
	if len(c.has) > 0 {
		return // somebody has them
	}
	_, _, err := w.e.o.Own.Adopt(w.info.ID, c.list)
	if err != nil && !errors.Is(err, buckets.ErrUnknown) {
		w.e.warn("events keep", "events that no owner has confirmed are not kept here", "bucket",
			w.info.Name, "err", err)
	}
}

// count counts what became of the events of a chunk, and shows those that are new to live tails.
func (w *writeRun) count(c *chunk, r *events.Received, out *events.Written) {
	if !c.enough {
		why := account.BucketDeleted
		if !c.stale {
			why = account.Unconfirmed
			w.e.counters.unconfirmed.Add(uint64(len(c.list)))
		}
		out.Counts.Refused[why] += uint64(len(c.list))
		for _, at := range c.at {
			out.Refused = append(out.Refused, events.Refused{At: r.From[at], Why: why})
		}
		return
	}
	fresh := make([]events.Event, 0, len(c.list))
	for i := range c.list {
		class := r.Class(c.at[i], c.class(i))
		if class.Count(&out.Counts); class != events.Duplicate {
			fresh = append(fresh, c.list[i])
		}
	}
	w.e.show(w.info.ID, fresh)
}

// class is that of the first owner, but for an event that any owner had before.
func (c *chunk) class(i int) events.Class {
	class := events.Accepted
	for n := len(c.owners) - 1; n >= 0; n-- {
		id := c.owners[n]
		switch of := c.has[id][i]; {
		case of == events.Duplicate && !c.retried[id]:
			return of
		case of != events.Duplicate:
			class = of
		}
	}
	return class
}

// take stores events as an owner. They are on disk when it returns.
func (e *Eventing) take(ctx context.Context, m *storeRequest) ([]events.Class, error) {
	e.taking.RLock()
	if err := e.checkVersion(m.version); err != nil {
		e.taking.RUnlock()
		return nil, err
	}
	if e.o.Own.DiskFull() {
		e.taking.RUnlock()
		return nil, &call.Error{Peer: e.o.Self, Code: call.Failed, Text: "its disk is full"}
	}
	classes, token, err := e.o.Own.Adopt(m.bucket, m.list)
	if err == nil {
		e.recent.Lock()
		e.copied.replaceClasses(m.bucket, m.list, classes)
		e.recent.Unlock()
	}
	e.taking.RUnlock()
	if errors.Is(err, buckets.ErrUnknown) && e.o.Known != nil && e.o.Known(m.bucket) {
		return nil, &call.Error{
			Peer: e.o.Self,
			Code: call.Failed,
			Text: "it has another bucket of this name",
		}
	}
	if err != nil {
		return nil, err
	}
	return classes, e.o.Durable(ctx, token)
}

// ask asks a node for a reply of a bounded length.
func (e *Eventing) ask(ctx context.Context, to ring.ID, request []byte,
	most int) (reply []byte, err error) {
	err = e.o.Ask(ctx, to, request, func(part []byte) error {
		if len(reply)+len(part) > most {
			return errMalformed
		}
		reply = append(reply, part...)
		return nil
	})
	return reply, err
}
