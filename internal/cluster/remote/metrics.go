package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// Metrics calls fn with every key of the bucket that starts with prefix until fn returns false. The
// key is valid during the call.
func (r *Remote) Metrics(ctx context.Context, info buckets.Info, prefix []byte,
	fn func(key []byte) bool) error {
	l := &listing{r: r, info: info, prefix: prefix, fn: fn, given: map[metric.SeriesID]struct{}{}}
	return r.agreed(ctx, func() error { return l.run(ctx) })
}

// listing is the metrics of a bucket on their way.
type listing struct {
	r      *Remote
	info   buckets.Info
	prefix []byte
	fn     func(key []byte) bool
	given  map[metric.SeriesID]struct{} // to fn
	some   map[metric.SeriesID]*rareKey // that were listed by fewer copies than a read needs

	view   *ring.View
	parts  []listedPart // by number
	failed map[ring.ID]error
	behind bool
}

// listedPart is how far the list of a partition is.
type listedPart struct {
	readers
	asked, waiting, got int // of its readers: got are complete answers
}

// nextReaders returns how many readers are to be asked next: as in a gather, those who keep hints
// answer first.
func (p *listedPart) nextReaders() int {
	switch {
	case p.asked < p.holders:
		return p.holders - p.asked
	case p.asked == p.holders && p.waiting > 0:
		return 0
	}
	return max(p.need-p.got-p.waiting, 0)
}

// rareKey is a key that not enough copies have listed: the others may have deleted it, or not have
// it yet.
type rareKey struct {
	key    []byte
	copies int
}

// keys are some keys of a node, or the end of all of them.
type keys struct {
	of    *keysRequest
	list  []byte // each with its length in front
	ended bool
	err   error
}

// keysRequest is a request for the keys of some partitions.
type keysRequest struct {
	node       ring.ID
	partitions []int
	q          request
}

// errEnough ends a listing whose taker wants no more.
var errEnough = errors.New("no more keys are wanted")

// run asks so many readers of each partition as a read needs.
func (l *listing) run(outer context.Context) error {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	l.view, l.failed, l.behind = l.r.o.View(), map[ring.ID]error{}, false
	l.some = map[metric.SeriesID]*rareKey{}
	n := l.view.Partitions()
	l.parts = make([]listedPart, n)
	all := make([]int, n)
	for p := range n {
		all[p], l.parts[p].readers = p, l.r.readers(l.view, l.info.ID, p)
	}
	from := make(chan keys)
	open, err := l.ask(ctx, from, all)
	for err == nil && open > 0 {
		select {
		case k := <-from:
			more := 0
			if more, err = l.take(ctx, from, k); k.ended {
				open--
			}
			open += more
		case <-outer.Done():
			return outer.Err()
		}
	}
	if err == nil {
		err = l.decide(outer)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// decide asks whether the metrics are there that not enough copies have listed.
func (l *listing) decide(ctx context.Context) error {
	var list [][]byte
	ask := func() error {
		targets, err := l.r.gather(ctx, l.info, request{kind: askExists}, list)
		for i := 0; i < len(targets) && err == nil; i++ {
			if key := targets[i].key; exists(targets[i].answers) {
				l.given[metric.Series(l.info.ID, key)] = struct{}{}
				if !l.fn(key) {
					err = errEnough
				}
			}
		}
		list = list[:0]
		return err
	}
	for _, f := range l.some {
		if list = append(list, f.key); len(list) == maxKeys {
			if err := ask(); err != nil {
				return err
			}
		}
	}
	return ask()
}

// ask asks more readers of partitions, where these have not enough, and returns how many requests
// these are.
func (l *listing) ask(ctx context.Context, from chan<- keys,
	partitions []int) (requests int, err error) {
	byNode := make(map[ring.ID][]int)
	for _, p := range partitions {
		part := &l.parts[p]
		for n := part.nextReaders(); n > 0; n-- {
			if part.asked == len(part.ids) {
				return 0, l.tooFewError(p)
			}
			id := part.ids[part.asked]
			part.asked++
			part.waiting++
			byNode[id] = append(byNode[id], p)
		}
	}
	for id, list := range byNode {
		go l.await(ctx, l.newKeysRequest(id, list), from)
	}
	return len(byNode), nil
}

func (l *listing) newKeysRequest(id ring.ID, partitions []int) *keysRequest {
	q := request{kind: askMetrics, version: l.view.Version(), bucket: l.info.ID, name: l.info.Name,
		prefix:     l.prefix,
		partitions: make([]byte, (l.view.Partitions()+7)/8)}
	for _, p := range partitions {
		q.partitions[p/8] |= 1 << (p % 8)
	}
	return &keysRequest{id, partitions, q}
}

// take takes keys of a node, or has others asked in its place. It returns how many requests these
// are.
func (l *listing) take(ctx context.Context, from chan<- keys, k keys) (requests int, err error) {
	for list := k.list; len(list) > 0; {
		n := int(list[0])<<8 | int(list[1])
		key := list[2 : 2+n]
		list = list[2+n:]
		if !l.count(k.of.node, key) {
			return 0, errEnough
		}
	}
	if !k.ended {
		return 0, nil
	}
	got := 1
	switch {
	case k.err == nil:
	case errors.Is(k.err, buckets.ErrUnknown):
		return 0, k.err
	case call.CodeOf(k.err) == call.UnknownBucket:
		if _, err := l.r.localBucket(l.info.ID, l.info.Name); err != nil {
			return 0, err
		} // else it has nothing of the bucket yet, or no longer
	default:
		l.behind = l.behind || call.CodeOf(k.err) == call.OtherRing
		l.failed[k.of.node] = k.err
		got = 0
	}
	for _, p := range k.of.partitions {
		part := &l.parts[p]
		part.waiting--
		if part.got += got; got > 0 {
			continue
		}
		again := l.r.readers(l.view, l.info.ID, p)
		for _, id := range again.owners() { // one may be back by now
			if !slices.Contains(part.ids, id) {
				part.ids = append(part.ids, id)
			}
		}
	}
	return l.ask(ctx, from, k.of.partitions)
}

// count takes a key of a copy, and gives it to fn if it is the last of as many as a read needs. It
// reports whether fn wants more. A key that only a hint has counts for no copy: it is asked for in
// the end.
func (l *listing) count(from ring.ID, key []byte) bool {
	id := metric.Series(l.info.ID, key)
	if _, ok := l.given[id]; ok || !bytes.HasPrefix(key, l.prefix) {
		return true
	}
	f := l.some[id]
	part := &l.parts[l.view.Partition(id)]
	if hint := slices.Contains(part.ids[:part.holders], from); hint || part.copies > 1 {
		if f == nil {
			f = &rareKey{key: bytes.Clone(key)}
			l.some[id] = f
		}
		if !hint {
			f.copies++
		}
		if f.copies < part.copies {
			return true
		}
		delete(l.some, id)
	}
	l.given[id] = struct{}{}
	return l.fn(key)
}

// await gives the keys of a node to the listing, some at a time.
func (l *listing) await(ctx context.Context, of *keysRequest, from chan<- keys) {
	var list []byte
	give := func(k keys) error {
		select {
		case from <- k:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	add := func(key []byte) error {
		list = append(append(list, byte(len(key)>>8), byte(len(key))), key...)
		if len(list) < partSize {
			return nil
		}
		full := list
		list = nil
		return give(keys{of: of, list: full})
	}
	var err error
	if of.node == l.r.o.Self {
		if err = l.r.serves(of.q.version); err == nil {
			err = l.r.listHere(ctx, &of.q, add)
		}
	} else {
		err = l.r.o.Ask(ctx, of.node, of.q.append(nil), (&decoder{q: &of.q, key: add}).part)
	}
	_ = give(keys{of: of, list: list, ended: true, err: err}) // else nobody waits
}

// tooFewError is the error of a partition of which not enough copies answer.
func (l *listing) tooFewError(p int) error {
	g := gather{r: l.r, view: l.view, info: l.info, failed: l.failed, behind: l.behind}
	t, part := target{partition: p}, &l.parts[p]
	for _, id := range part.ids[:part.asked] {
		if l.failed[id] == nil && part.got > len(t.answers) {
			t.answers = append(t.answers, &answer{node: id})
		}
	}
	return fmt.Errorf("listing metrics: %w", g.tooFewError(&t))
}
