package eventing

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/write"
)

const (
	second = int64(time.Second)
	// settle is the age from which on events are compared: younger ones may be on their way.
	settle = 5 * second
	// rest is the idle factor: after a comparison of length t the next one starts rest × t later, and
	// at most mostRest later.
	rest     = 20
	mostRest = 5 * time.Minute
	// anew is the number of comparisons after which a node's remembered sums are dropped and compared
	// again: this node may have lost events since.
	anew = 360
)

// sumOf returns a hash of digests, 0 for none.
func sumOf(list []events.Digest) uint64 {
	if len(list) == 0 {
		return 0
	}
	b := make([]byte, 0, 24*len(list))
	for _, d := range list {
		b = binary.LittleEndian.AppendUint64(b, uint64(d.Start))
		b = binary.LittleEndian.AppendUint64(b, d.Events)
		b = binary.LittleEndian.AppendUint64(b, d.Sum)
	}
	return max(xxh3.Hash(b), 1)
}

// compareWith compares with a peer when it comes up, when the ring changes, and at intervals.
func (e *Eventing) compareWith(p *peer) {
	timer := time.NewTimer(e.o.Compare)
	defer timer.Stop()
	// what the peer had in a comparison after which all of it was here
	known := make(map[uint64]halves)
	for n := 1; ; n++ {
		select {
		case <-p.ctx.Done():
			return
		case <-p.poke:
		case <-timer.C:
		}
		began, wait := time.Now(), time.Duration(0)
		if e.canCompare(p) {
			if n%anew == 0 {
				clear(known)
			}
			done, err := e.comparison(p, known)
			if !done {
				wait = e.o.Retry
			}
			if err != nil && p.ctx.Err() == nil {
				e.warn("events compare", "a comparison of events with a node failed; it is tried again", "node",
					e.o.Name(p.id), "err", err)
			}
		}
		if wait == 0 {
			wait = max(e.o.Compare, min(rest*time.Since(began), mostRest))
		}
		timer.Reset(wait)
	}
}

func (e *Eventing) canCompare(p *peer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return p.up && e.o.Check() == nil
}

// comparison fetches the events that a peer has and this node should have. known holds the peer's
// sums as of the last complete fetch. It returns false if the comparison must be repeated soon.
func (e *Eventing) comparison(p *peer, known map[uint64]halves) (done bool, err error) {
	version, moves := e.fetchVersion(p)
	now := e.o.Now().UnixNano()
	cut := max(now-settle-events.DigestStep, 0) / events.DigestStep * events.DigestStep
	reply, err := e.ask(p.ctx, p.id, (&sumsRequest{cut}).append(nil), maxReply)
	if err != nil {
		return false, err
	}
	var m sums
	if err := m.parse(reply); err != nil {
		return false, err
	}
	c := comparisonRun{e: e, peer: p.id, moves: moves, settled: now - settle}
	whole := true
	for bucket, theirs := range m.of {
		info, ok := e.o.ByID(bucket)
		if !ok { // it will be here soon, or is deleted
			whole = false
			continue
		}
		here, err := c.bucket(p.ctx, &info, known[bucket], theirs, cut)
		if err != nil && !errors.Is(err, buckets.ErrUnknown) {
			return false, err
		}
		known[bucket] = here
	}
	e.counters.comparisons.Add(1)
	if e.counters.fetched.Add(uint64(c.fetched)); c.fetched > 0 {
		e.counters.differences.Add(1)
	}
	if !moves {
		return true, nil
	}
	if !whole || m.version != version { // the ring is on its way
		return false, nil
	}
	if err := e.syncOwn(p.ctx); err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p.fetched = version
	return true, nil
}

// fetchVersion returns the version of the ring. It reports true if a change of this ring still
// needs this node to fetch events from the peer.
func (e *Eventing) fetchVersion(p *peer) (ring.Version, bool) {
	v := e.o.View()
	e.mu.Lock()
	defer e.mu.Unlock()
	return v.Version(), !e.held && p.fetched != v.Version() && v.IsChanging()
}

// syncOwn makes all events of this node durable.
func (e *Eventing) syncOwn(ctx context.Context) error {
	t, err := e.o.Own.Sync(0)
	if err != nil {
		return err
	}
	return e.o.Durable(ctx, t)
}

// PendingFetches returns the number of nodes to fetch events from until the changes of a ring are
// complete.
func (e *Eventing) PendingFetches(v *ring.View, classes []int) (left int) {
	if !v.IsChanging() {
		return 0
	}
	from := make(map[ring.ID]bool)
	for _, n := range append([]int{0}, classes...) {
		for _, m := range v.Fetches(n) {
			if m.To != e.o.Self {
				continue
			}
			for _, id := range m.From {
				from[id] = true
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range from {
		if p := e.peers[id]; p == nil || p.fetched != v.Version() {
			left++
		}
	}
	return left
}

// comparisonRun is a comparison with a peer.
type comparisonRun struct {
	e       *Eventing
	peer    ring.ID
	moves   bool  // also events that are not settled
	settled int64 // older events are
	fetched int   // events that were not here
	young   bool  // some were left because they are not settled
}

// bucket fetches the missing events of a bucket from a peer. It returns the sums of the peer that
// this node certainly has.
func (c *comparisonRun) bucket(ctx context.Context, info *buckets.Info, known, theirs halves,
	cut int64) (done halves, err error) {
	start, end := int64(0), int64(maxTime)
	if known.old == theirs.old && !c.moves {
		start = cut
	}
	if known.recent == theirs.recent && !c.moves {
		end = cut
	}
	if start == end {
		return theirs, nil
	}
	own, err := c.e.digests(ctx, c.e.o.Self, info, start, end, events.DigestStep)
	if err != nil {
		return known, err
	}
	at := countBefore(own, cut)
	if (start > 0 || sumOf(own[:at]) == theirs.old) &&
		(end == cut || sumOf(own[at:]) == theirs.recent) {
		return theirs, nil // the same
	}
	hours, err := c.digests(ctx, info, start, end, events.DigestStep)
	if err != nil {
		return known, err
	}
	c.young = false
	for _, h := range differingStarts(hours, own) {
		if err := c.hour(ctx, info, h); err != nil {
			return known, err
		}
	}
	if done = theirs; c.young {
		done.recent = 0 // events that are left are of the last hours
	}
	return done, nil
}

// countBefore returns how many digests are before a time.
func countBefore(list []events.Digest, t int64) int {
	n, _ := slices.BinarySearchFunc(list, t, func(d events.Digest, t int64) int {
		return cmp.Compare(d.Start, t)
	})
	return n
}

// differingStarts returns the starts of the cells in which two nodes differ.
func differingStarts(theirs, own []events.Digest) (starts []int64) {
	have := make(map[int64]events.Digest, len(own))
	for _, d := range own {
		have[d.Start] = d
	}
	for _, d := range theirs {
		if have[d.Start] != d {
			starts = append(starts, d.Start)
		}
	}
	return starts
}

// digests asks the peer for its digests.
func (c *comparisonRun) digests(ctx context.Context, info *buckets.Info, start, end,
	step int64) ([]events.Digest, error) {
	reply, err := c.e.ask(ctx, c.peer, (&digestsRequest{info.ID, start, end, step}).append(nil),
		maxReply)
	if err != nil || len(reply) == 0 {
		return nil, err
	}
	return parseDigests(reply)
}

// hour fetches the missing events of an hour from a peer.
func (c *comparisonRun) hour(ctx context.Context, info *buckets.Info, start int64) error {
	end := start + events.DigestStep
	theirs, err := c.digests(ctx, info, start, end, second)
	if err != nil {
		return err
	}
	own, err := c.e.digests(ctx, c.e.o.Self, info, start, end, second)
	if err != nil {
		return err
	}
	steps := differingStarts(theirs, own)
	if !c.moves {
		n := len(steps)
		steps = slices.DeleteFunc(steps, func(s int64) bool { return s >= c.settled-second })
		c.young = c.young || len(steps) < n
	}
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[n] == steps[n-1]+second {
			n++
		}
		if err := c.fetch(ctx, info, steps[0], steps[n-1]+second); err != nil {
			return err
		}
		steps = steps[n:]
	}
	return nil
}

// fetch reads the events of a range from a peer.
func (c *comparisonRun) fetch(ctx context.Context, info *buckets.Info, start, end int64) error {
	q := pageRequest{bucket: info.ID, start: start, end: end, limit: pageBytes}
	for more := true; more; {
		p, err := c.e.fetch(ctx, c.peer, &q)
		if err != nil {
			return err
		}
		if len(p.list) == 0 {
			return nil
		}
		last := &p.list[len(p.list)-1]
		q.behind, more = position{last.Time, last.ID}, p.more
		classes, token, err := c.e.adopt(info.ID, p.list)
		if err != nil {
			return err
		}
		for _, class := range classes {
			if class != events.Duplicate {
				c.fetched++
			}
		}
		if err := c.e.o.Durable(ctx, token); err != nil { // no more than a page is ahead of the disk
			return err
		}
	}
	return nil
}

// adopt stores events of a comparison. No writer of this node stores them at the same time.
func (e *Eventing) adopt(bucket uint64, list []events.Event) ([]events.Class, write.Token, error) {
	e.taking.Lock()
	defer e.taking.Unlock()
	classes, token, err := e.o.Own.Adopt(bucket, list)
	if err == nil {
		e.copied.note(bucket, list, classes, 2*e.o.Timeout)
	}
	return classes, token, err
}
