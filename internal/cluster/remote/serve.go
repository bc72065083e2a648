package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/local"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/reader"
)

// Serve answers a request of another node. It is call.Options.Serve.
func (r *Remote) Serve(ctx context.Context, _ ring.ID, request []byte,
	reply func(part []byte) error) error {
	q, err := parseRequest(request)
	if err != nil {
		return err
	}
	if err := r.serves(q.version); err != nil {
		return err
	}
	w := &writer{reply: reply}
	if q.kind == askMetrics {
		err = r.listHere(ctx, &q, w.key)
	} else {
		err = r.answerHere(ctx, &q, func(_ int, a *answer) error { return w.answer(a) })
	}
	if err == nil {
		err = w.flush()
	}
	return withCode(err)
}

// serves returns an error if this node does not answer who has a version of the ring.
func (r *Remote) serves(v ring.Version) error {
	switch here := r.o.View().Version(); {
	case here != v:
		return &call.Error{
			Peer: r.o.Self,
			Code: call.OtherRing,
			Text: fmt.Sprintf("it knows the ring as %s and was asked for %s", here, v),
		}
	case !r.o.Ready():
		return &call.Error{
			Peer: r.o.Self,
			Code: call.OtherRing,
			Text: "it has not learnt yet which series were deleted",
		}
	}
	return nil
}

// withCode gives an error the code that other nodes know.
func withCode(err error) error {
	switch refusal := (*memory.Refusal)(nil); {
	case errors.Is(err, buckets.ErrUnknown):
		return &call.Error{Code: call.UnknownBucket, Text: err.Error()}
	case errors.As(err, &refusal):
		return &call.Error{Code: call.Memory, Text: err.Error()}
	}
	return err
}

// localBucket returns the bucket that is asked for, as this node has it.
func (r *Remote) localBucket(id uint64, name string) (buckets.Info, error) {
	info, err := r.o.Store.BucketByName(name)
	if err == nil && info.ID != id {
		err = buckets.UnknownError(name) // another one has its name by now
	}
	return info, err
}

// listHere calls fn with the keys of the partitions that are asked for.
func (r *Remote) listHere(ctx context.Context, q *request, fn func(key []byte) error) error {
	info, err := r.localBucket(q.bucket, q.name)
	if err != nil {
		return err
	}
	asked := func(key []byte) bool {
		p := r.o.View().Partition(metric.Series(q.bucket, key))
		return p/8 < len(q.partitions) && q.partitions[p/8]>>(p%8)&1 != 0
	}
	listErr := r.o.Store.Metrics(ctx, info, q.prefix, func(key []byte) bool {
		if asked(key) && r.owns(q.bucket, key) {
			err = fn(key)
		}
		return err == nil
	})
	for _, key := range r.o.HintKeys(q.bucket) {
		if err == nil && bytes.HasPrefix(key, q.prefix) && asked(key) && !r.owns(q.bucket, key) {
			err = fn(key)
		}
	}
	return errors.Join(err, listErr)
}

// copyOf is a series of this node.
type copyOf struct {
	store.Series
	id     metric.SeriesID
	bucket uint64
	owner  bool // else hints are all that counts here: what else there is may be old
}

// answerHere answers a request from the store and the hints of this node, key by key. The answers
// and what they hold are valid during the call.
func (r *Remote) answerHere(ctx context.Context, q *request,
	each func(i int, a *answer) error) error {
	info, err := r.localBucket(q.bucket, q.name)
	if err != nil {
		return err
	}
	list := make([]copyOf, len(q.keys))
	for i, key := range q.keys {
		id := metric.Series(q.bucket, key)
		if info.HPTS {
			id = id.Value()
		}
		list[i] = copyOf{r.o.Store.Series(info, key), id, q.bucket, r.owns(q.bucket, key)}
	}
	switch q.kind {
	case askAggregates:
		return r.aggregatesHere(ctx, q, list, each)
	case askPoints:
		return r.pointsHere(ctx, q, list, each)
	}
	var words, times []uint64
	for i := range list {
		a := &answer{node: r.o.Self}
		switch c := &list[i]; q.kind {
		case askExists:
			err = r.readSteady(c, a, func() (err error) { a.exists, err = c.Exists(); return err })
			a.exists = a.exists || r.anyHint(c, a, 0, buckets.MaxSlot+1)
		case askExtent:
			err = r.extentHere(ctx, q, c, a)
		default:
			if words == nil {
				words = make([]uint64, q.count)
			}
			if q.times && times == nil {
				times = make([]uint64, q.count)
			}
			if a.words, a.times = words, times; !list[i].owner {
				clear(words)
				clear(times)
			}
			err = r.slotsHere(ctx, q, &info, c, a)
		}
		if err == nil {
			err = each(i, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// owns reports whether this node is an owner of a series now.
func (r *Remote) owns(bucket uint64, key []byte) bool {
	var buf [ring.MaxCopies]ring.ID
	v := r.o.View()
	return slices.Contains(v.Owners(buf[:0], v.Partition(metric.Series(bucket, key)), ring.Current,
		r.o.Copies(bucket)), r.o.Self)
}

// readSteady reads with the incarnation that a series had before and behind the read.
func (r *Remote) readSteady(c *copyOf, a *answer, read func() error) error {
	for {
		a.incarnation = r.o.Incarnation(c.bucket, c.id)
		if !c.owner {
			return nil
		}
		if err := read(); err != nil || a.incarnation == r.o.Incarnation(c.bucket, c.id) {
			return err
		}
	}
}

// hints are the rows for others that count beside an answer of the slots [from, past).
func (r *Remote) hints(c *copyOf, a *answer, from, past int64) []replication.Row {
	if from >= past {
		return nil
	}
	rows := r.o.Hints(c.id, uint64(from), uint64(past))
	// Those of a lower incarnation were deleted. The slice is the keeper's.
	if slices.ContainsFunc(rows, func(row replication.Row) bool {
		return row.Incarnation < a.incarnation
	}) {
		rows = slices.DeleteFunc(slices.Clone(rows), func(row replication.Row) bool {
			return row.Incarnation < a.incarnation
		})
	}
	return rows
}

func (r *Remote) anyHint(c *copyOf, a *answer, from, past int64) bool {
	return len(r.hints(c, a, from, past)) > 0
}

// pointsHere says which series may have points in a range, in the store or in hints.
func (r *Remote) pointsHere(ctx context.Context, q *request, list []copyOf,
	each func(i int, a *answer) error) error {
	from, past := q.from, q.from+int64(q.count)
	b, err := r.o.Store.Bucket(q.name)
	if err != nil {
		return err
	}
	a, may := &answer{node: r.o.Self}, make([]bool, 1)
	for i := range list {
		c := &list[i]
		*a, may[0] = answer{node: r.o.Self}, false
		err := r.readSteady(c, a, func() error { return b.May(ctx, q.keys[i:i+1], from, past, may) })
		if a.exists = may[0] || r.anyHint(c, a, from, past); err == nil {
			err = each(i, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// extentHere widens what the store says by the hints.
func (r *Remote) extentHere(ctx context.Context, q *request, c *copyOf, a *answer) error {
	err := r.readSteady(c, a, func() (err error) {
		a.first, a.past, err = c.Extent(ctx, q.from, int64(q.count))
		return err
	})
	for _, row := range r.hints(c, a, q.from, q.from+int64(q.count)) {
		slot := int64(row.Slot)
		if a.first >= a.past {
			a.first, a.past = slot, slot+1
		}
		a.first, a.past = min(a.first, slot), max(a.past, slot+1)
	}
	return err
}

// slotsHere reads words, with the hints laid over them.
func (r *Remote) slotsHere(ctx context.Context, q *request, info *buckets.Info, c *copyOf,
	a *answer) error {
	s := c.Series
	if q.stale {
		s = s.WithStale()
	}
	err := r.readSteady(c, a, func() error {
		st, err := reader.Stats{}, error(nil)
		if q.older {
			st, err = s.ReadOlder(ctx, q.from, a.words)
		} else {
			st, err = s.ReadCounted(ctx, q.from, a.words)
		}
		a.cost = local.CostOf(&st)
		if err == nil && q.times {
			err = s.ReadTimestamped(ctx, q.from, a.words, a.times)
			for i, w := range a.words {
				if w == point.Stale {
					a.times[i] = point.Unset
				} else if w != point.Unset && info.HPTS {
					a.times[i], _ = info.TimestampWord(uint64(q.from)+uint64(i), a.times[i])
				}
			}
		}
		return err
	})
	for _, row := range r.hints(c, a, q.from, q.from+int64(q.count)) {
		i := int64(row.Slot) - q.from
		held := replication.Value{Word: a.words[i]}
		if q.times {
			held.Time = a.times[i]
		}
		held = replication.Larger(held, row.Value)
		a.words[i] = held.Word
		if q.times {
			a.times[i] = held.Time
		}
		if row.Value.Word != point.Stale { // which would not overwrite what is unknown
			a.cost.Unknown = exceptSlot(a.cost.Unknown, int64(row.Slot))
		}
	}
	return err
}

// exceptSlot takes a slot out of unknown ranges: a hint has it.
func exceptSlot(list []source.Unknown, slot int64) (rest []source.Unknown) {
	for _, u := range list {
		if slot < u.From || slot >= u.Past {
			rest = append(rest, u)
			continue
		}
		if u.From < slot {
			rest = append(rest, source.Unknown{From: u.From, Past: slot, Why: u.Why})
		}
		if slot+1 < u.Past {
			rest = append(rest, source.Unknown{From: slot + 1, Past: u.Past, Why: u.Why})
		}
	}
	return rest
}

// aggregatesHere makes the digests before the aggregates: what the digests of another copy are
// equal to is then in the aggregates.
func (r *Remote) aggregatesHere(ctx context.Context, q *request, list []copyOf,
	each func(i int, a *answer) error) error {
	answers, whole := make([]answer, len(list)), make([]store.Series, 0, len(list))
	var which []int
	for i := range list {
		c, a := &list[i], &answers[i]
		a.node, a.incarnation = r.o.Self, r.o.Incarnation(c.bucket, c.id)
		a.newer = r.anyHint(c, a, max(q.from, 0), q.from+q.step*int64(q.count))
		if q.digest && !a.newer && c.owner {
			if err := r.digestsHere(ctx, q, c, a); err != nil {
				return err
			}
		}
		if q.whole[i] && !a.newer && c.owner {
			which, whole = append(which, i), append(whole, c.Series)
		}
	}
	next := 0
	give := func(until int) error { // those of which only digests are wanted
		for ; next < until; next++ {
			if err := each(next, &answers[next]); err != nil {
				return err
			}
		}
		return nil
	}
	dst := make([]chunk.Header, q.count)
	err := r.o.Store.AggregateEach(ctx, whole, q.from, q.step, dst,
		func(k int, st reader.Stats, err error) error {
			if err == nil {
				err = give(which[k])
			}
			if err != nil {
				return err
			}
			a := &answers[next]
			a.headers, a.cost = dst, local.CostOf(&st)
			return give(next + 1)
		})
	if err != nil {
		return err
	}
	return give(len(list))
}

// digestsHere fills in the digests, and what is unknown of the chunks they stand for.
func (r *Remote) digestsHere(ctx context.Context, q *request, c *copyOf, a *answer) error {
	first, past := q.chunks()
	split := min(max(q.split, first), past)
	for i, part := range [2][2]int64{{first, split}, {split, past}} {
		if part[0] >= part[1] {
			continue
		}
		digest, st, err := c.DigestCounted(ctx, part[0], part[1])
		if err != nil {
			return err
		}
		cost := local.CostOf(&st)
		a.digests[i] = digest
		a.cost.Unknown = append(a.cost.Unknown, cost.Unknown...)
		a.cost.MoreUnknown += cost.MoreUnknown
	}
	return nil
}
