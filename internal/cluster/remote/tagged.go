package remote

import (
	"context"
	"errors"
	"slices"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query/source"
)

// Tagged implements finder.Buckets.
func (r *Remote) Tagged(id uint64) (source.Bucket, error) {
	info, err := r.o.Store.BucketByID(id)
	if err != nil {
		return nil, err
	}
	return r.Bucket(info.Name)
}

// Bucket implements finder.Buckets.
func (r *Remote) Bucket(name string) (source.Bucket, error) { return nodes{r}.Bucket(name) }

// May implements finder.Buckets.
func (r *Remote) May(ctx context.Context, of source.Bucket, keys [][]byte, from, past int64,
	may []bool) error {
	clear(may)
	b := of.(*bucket)
	if from, past = max(from, 0), min(past, buckets.MaxSlot); from >= past {
		return ctx.Err()
	}
	if b.private || r.allAlone(b.info.ID, keys) {
		h, err := r.o.Store.Bucket(b.info.Name)
		if err == nil {
			err = h.May(ctx, keys, from, past, may)
		}
		return noneOfGone(err, may)
	}
	return noneOfGone(r.exist(ctx, b.info, request{
		kind:  askPoints,
		from:  from,
		count: int(past - from),
	}, keys, may), may)
}

// noneOfGone says that a bucket that was deleted just now has no series.
func noneOfGone(err error, may []bool) error {
	if errors.Is(err, buckets.ErrUnknown) {
		clear(may)
		return nil
	}
	return err
}

// allAlone reports whether this node alone answers for all series.
func (r *Remote) allAlone(bucket uint64, keys [][]byte) bool {
	return !slices.ContainsFunc(keys, func(key []byte) bool { return !r.answersAlone(bucket, key) })
}

// exist asks a question about many series that is answered with yes or no.
func (r *Remote) exist(ctx context.Context, info buckets.Info, q request, keys [][]byte,
	out []bool) error {
	targets, err := r.gather(ctx, info, q, keys)
	for i := 0; i < len(targets) && err == nil; i++ {
		out[i] = exists(targets[i].answers)
	}
	return err
}

// Exist reports which series of a bucket are there, with points or without.
func (r *Remote) Exist(ctx context.Context, bucket uint64, keys [][]byte) ([]bool, error) {
	out := make([]bool, len(keys))
	info, err := r.o.Store.BucketByID(bucket)
	if err != nil {
		return out, nil // it is deleted
	}
	return out, r.exist(ctx, info, request{kind: askExists}, keys, out)
}
