package remote

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/source"
)

// nodes is the source over all nodes.
type nodes struct{ r *Remote }

// Source returns what queries read.
func (r *Remote) Source() source.Source { return nodes{r} }

// Offers says what copies can do. Lookups by tags are those of package tagging, laid over this
// source.
func (n nodes) Offers() source.Offers {
	return source.Offers{Aggregates: true, Older: true, Together: n.r, AtOnce: maxKeys}
}

// BucketNames returns those of this node: buckets are the same everywhere.
func (n nodes) BucketNames() []string { return n.r.o.Local.BucketNames() }

func (n nodes) Bucket(name string) (source.Bucket, error) {
	local, err := n.r.o.Local.Bucket(name)
	if err != nil && n.r.o.Member != nil {
		err = cmp.Or(n.r.o.Member(), err)
	}
	if err != nil {
		return nil, err
	}
	info, err := n.r.o.Store.BucketByName(name)
	if err != nil || info.ID != local.Info().ID {
		return nil, buckets.UnknownError(name) // it was deleted just now
	}
	return &bucket{
		r:       n.r,
		local:   local,
		info:    info,
		private: n.r.o.Private != nil && n.r.o.Private(name),
	}, nil
}

// bucket is a handle of a bucket for one query. It keeps no history: nothing tells of changes of
// other nodes.
type bucket struct {
	source.NoHistory
	r       *Remote
	local   source.Bucket
	info    buckets.Info
	private bool // of this node alone
}

func (b *bucket) Info() source.Info { return b.local.Info() }

func (b *bucket) Metrics(ctx context.Context, prefix []byte, fn func(key []byte) bool) error {
	if b.private {
		return b.local.Metrics(ctx, prefix, fn)
	}
	return b.r.Metrics(ctx, b.info, prefix, fn)
}

func (b *bucket) Series(key []byte) source.Series {
	return &series{of: b, local: b.local.Series(key), key: bytes.Clone(key)}
}

// series is a handle of a series.
type series struct {
	of    *bucket
	local source.Series
	key   []byte
	stale bool // reads show stale markers
}

// isLocal reports whether this node alone answers for the series.
func (s *series) isLocal() bool {
	return s.of.private || s.of.r.answersAlone(s.of.info.ID, s.key)
}

// answersAlone reports whether this node alone answers for a series.
func (r *Remote) answersAlone(bucket uint64, key []byte) bool {
	v := r.o.View()
	if r.o.R(v, bucket) > 1 || !r.o.Ready() {
		return false
	}
	of := r.readers(v, bucket, v.Partition(metric.Series(bucket, key)))
	return of.need == 1 && len(of.ids) == 1 && of.ids[0] == r.o.Self
}

func (s *series) Exists(ctx context.Context) (bool, error) {
	if s.isLocal() {
		return s.local.Exists(ctx)
	}
	answers, err := s.of.r.askSeries(ctx, s.of.info, request{kind: askExists}, s.key)
	if err != nil {
		return false, err
	}
	return exists(answers), nil
}

// exists reports whether a copy has a series that none knows as deleted since.
func exists(answers []*answer) bool {
	return slices.ContainsFunc(latestAnswers(answers), func(a *answer) bool { return a.exists })
}

func (s *series) Read(ctx context.Context, from int64, dst []uint64) (source.Cost, error) {
	if s.isLocal() {
		return s.local.Read(ctx, from, dst)
	}
	return s.read(ctx, from, dst, false)
}

func (s *series) ReadOlder(ctx context.Context, from int64, dst []uint64) (source.Cost, error) {
	if s.isLocal() {
		return s.local.ReadOlder(ctx, from, dst)
	}
	return s.read(ctx, from, dst, true)
}

func (s *series) read(ctx context.Context, from int64, dst []uint64,
	older bool) (source.Cost, error) {
	return s.of.r.words(ctx, s.of.info, s.key, dst, nil, request{
		from:  from,
		older: older,
		stale: s.stale,
	})
}

func (s *series) WithStale() source.Series {
	return &series{of: s.of, local: s.local.WithStale(), key: s.key, stale: true}
}

func (s *series) Aggregate(ctx context.Context, from, step int64,
	dst []chunk.Header) (cost source.Cost, err error) {
	err = s.of.r.AggregateEach(ctx, []source.Series{s}, from, step, dst,
		func(_ int, c source.Cost, err error) error {
			cost = c
			return err
		})
	return cost, err
}

// askSeries asks about one series.
func (r *Remote) askSeries(ctx context.Context, info buckets.Info, q request,
	key []byte) ([]*answer, error) {
	targets, err := r.gather(ctx, info, q, [][]byte{key})
	if err != nil {
		return nil, err
	}
	return targets[0].answers, nil
}

// words reads slots of a series, timestamps too unless times is nil. q says from where on, and how.
func (r *Remote) words(ctx context.Context, info buckets.Info, key []byte, dst, times []uint64,
	q request) (source.Cost, error) {
	from := q.from
	clear(dst)
	clear(times)
	switch {
	case len(dst) > source.MaxSlots:
		return source.Cost{}, fmt.Errorf("a read of %d slots, the limit is %d", len(dst), source.MaxSlots)
	case from < 0 || from > buckets.MaxSlot || len(dst) == 0:
		return source.Cost{}, ctx.Err()
	}
	q.kind, q.count, q.times = askSlots, len(dst), times != nil
	answers, err := r.askSeries(ctx, info, q, key)
	if err != nil {
		return source.Cost{}, err
	}
	cost := merge(answers, from, dst, times)
	if !q.stale {
		point.HideStale(dst) // of hints
	}
	r.tell(info, key, answers, from, len(dst))
	return cost, nil
}

// tell tells of chunks in which copies differ, but for those that points are coming in for.
func (r *Remote) tell(info buckets.Info, key []byte, answers []*answer, from int64, count int) {
	live := r.live(info) * chunk.Slots
	answers = slices.DeleteFunc(slices.Clone(answers), func(a *answer) bool { return a.hints })
	if len(answers) < 2 || from >= live {
		return
	}
	first, past := int64(0), int64(0)
	eachDiffering(answers, from, int(min(int64(count), live-from)), func(lo, hi int64) {
		if first >= past {
			first = lo
		}
		past = hi
	})
	if first < past {
		id := metric.Series(info.ID, key)
		if info.HPTS {
			id = id.Value()
		}
		r.o.Differs(info.ID, id, first, past)
	}
}

// live returns the first chunk that points are probably coming in for.
func (r *Remote) live(info buckets.Info) int64 {
	return (r.o.Now().UnixMilli() - r.o.Delay.Milliseconds()) / info.Resolution / chunk.Slots
}

// Extent is store.Store.Extent over all copies that a read needs.
func (r *Remote) Extent(ctx context.Context, info buckets.Info, key []byte, from, n int64) (first,
	past int64, err error) {
	n = min(n, buckets.MaxSlot+1-from)
	if n <= 0 {
		return from, from, ctx.Err()
	}
	if r.answersAlone(info.ID, key) {
		return r.o.Store.Extent(ctx, info, key, from, n)
	}
	answers, err := r.askSeries(ctx, info, request{
		kind:  askExtent,
		from:  from,
		count: int(min(n, buckets.MaxSlot)),
	}, key)
	if err != nil {
		return from, from, err
	}
	first, past = extent(answers)
	if first >= past {
		return from, from, nil
	}
	return first, past, nil
}

// extent returns what encloses the extents of copies.
func extent(answers []*answer) (first, past int64) {
	for _, a := range latestAnswers(answers) {
		switch {
		case a.first >= a.past:
		case first >= past:
			first, past = a.first, a.past
		default:
			first, past = min(first, a.first), max(past, a.past)
		}
	}
	return first, past
}

// Read is store.Store.Read over all copies that a read needs.
func (r *Remote) Read(ctx context.Context, info buckets.Info, key []byte, from int64,
	dst []uint64) error {
	if r.answersAlone(info.ID, key) {
		return r.o.Store.Read(ctx, info, key, from, dst)
	}
	_, err := r.words(ctx, info, key, dst, nil, request{from: from})
	return err
}

// ReadWithStale is store.Store.ReadWithStale over all copies that a read needs.
func (r *Remote) ReadWithStale(ctx context.Context, info buckets.Info, key []byte, from int64,
	values, timestamps []uint64) error {
	if r.answersAlone(info.ID, key) {
		return r.o.Store.ReadWithStale(ctx, info, key, from, values, timestamps)
	}
	return r.pairs(ctx, info, key, values, timestamps, request{from: from, stale: true})
}

// ReadTimestamped is store.Store.ReadTimestamped over all copies that a read needs.
func (r *Remote) ReadTimestamped(ctx context.Context, info buckets.Info, key []byte, from int64,
	values, timestamps []uint64) error {
	if r.answersAlone(info.ID, key) {
		return r.o.Store.ReadTimestamped(ctx, info, key, from, values, timestamps)
	}
	return r.pairs(ctx, info, key, values, timestamps, request{from: from})
}

// pairs is words with the timestamps of the points, unless timestamps is nil.
func (r *Remote) pairs(ctx context.Context, info buckets.Info, key []byte, values,
	timestamps []uint64, q request) error {
	times := timestamps
	if !info.HPTS {
		times = nil
	}
	_, err := r.words(ctx, info, key, values, times, q)
	for i := range timestamps {
		word := uint64(0)
		if info.HPTS {
			word = timestamps[i]
		}
		timestamps[i] = 0
		if values[i] != point.Unset {
			timestamps[i] = info.Timestamp(uint64(q.from)+uint64(i), word)
		}
	}
	return err
}
