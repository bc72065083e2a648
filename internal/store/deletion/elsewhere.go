package deletion

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
)

// At is the deletion of a series by another node, with the incarnation that it gave.
type At struct {
	ID          metric.SeriesID // of the values
	Incarnation uint64
}

// DeleteAt does deletions again that another node has made. A series that has the incarnation of
// its deletion, or a higher one, stays as it is; the deletion of one that is not here is
// remembered. The position is that of a record behind which all of it is in the log. The error
// wraps buckets.ErrUnknown or ErrTooMany; after any, each series is whole or gone.
func (x *Deleter) DeleteAt(ctx context.Context, bucket uint64, list []At) (wal.LSN, error) {
	b, err := x.bucket(ctx, bucket)
	if err != nil {
		return 0, err
	}
	news := make([]At, 0, len(list))
	for _, a := range list {
		if a.ID = b.ValueID(a.ID); a.Incarnation > b.Incarnations.Get(a.ID) {
			news = append(news, a) // so that what is sent again waits for no flush
		}
	}
	last, err := x.byIncarnation(news, func(incarnation uint64,
		ids []metric.SeriesID) (wal.LSN, error) {
		d := columns.Deletion{
			Bucket:      b,
			Why:         logrecord.Deleted,
			Incarnation: incarnation,
			Elsewhere:   true,
		}
		err := x.slice(ctx, &d, ids, func() { x.o.Columns.Deletions.Advance(incarnation) })
		x.counters.series.Add(int64(len(d.Series)))
		return d.LSN(), err
	})
	if end := x.o.Log.End(); err == nil && last == 0 && end > 0 {
		last = end - 1 // what was done before may not be durable yet
	}
	return last, err
}

// Drop takes series out of a bucket that other nodes have from now on. Their points go as those of
// deleted series do, and they keep their incarnations. It is durable when the call returns. The
// errors are those of DeleteAt.
func (x *Deleter) Drop(ctx context.Context, bucket uint64, ids []metric.SeriesID) error {
	b, err := x.bucket(ctx, bucket)
	if err != nil {
		return err
	}
	list := make([]At, len(ids))
	for i, id := range ids {
		list[i] = At{b.ValueID(id), b.Incarnations.Get(b.ValueID(id))}
	}
	_, err = x.byIncarnation(list, func(incarnation uint64, ids []metric.SeriesID) (wal.LSN, error) {
		d := columns.Deletion{Bucket: b, Why: logrecord.Dropped, Incarnation: incarnation}
		err := x.slice(ctx, &d, ids, func() {})
		return d.LSN(), err
	})
	if err != nil {
		return err
	}
	return x.o.Log.Sync()
}

// bucket returns a bucket by its id, when all of the log is in memory.
func (x *Deleter) bucket(ctx context.Context, id uint64) (*columns.Bucket, error) {
	if err := x.o.Replayed(ctx); err != nil {
		return nil, err
	}
	b := x.o.Buckets.ID(id)
	if b == nil {
		return nil, fmt.Errorf("%w with the id %016x", buckets.ErrUnknown, id)
	}
	return b, nil
}

// byIncarnation calls fn for the series of each incarnation, the lowest first, in slices, and
// returns the highest position.
func (x *Deleter) byIncarnation(list []At,
	fn func(incarnation uint64, ids []metric.SeriesID) (wal.LSN, error)) (last wal.LSN, err error) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b At) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	for len(list) > 0 {
		n := 1
		for n < len(list) && n < x.o.Slice() && list[n].Incarnation == list[0].Incarnation {
			n++
		}
		ids := make([]metric.SeriesID, n)
		for i := range ids {
			ids[i] = list[i].ID
		}
		at, err := fn(list[0].Incarnation, ids)
		if err != nil {
			return 0, err
		}
		last, list = max(last, at), list[n:]
	}
	return last, nil
}
