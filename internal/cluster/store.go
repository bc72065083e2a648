package cluster

import (
	"context"
	"fmt"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/deletion"
)

// Store is the store of this node, but for what concerns the whole cluster: buckets, reads, and the
// deletion of series.
type Store struct {
	*store.Store
	c *Cluster
}

// CreateBucket creates a bucket on all nodes, on those that are down when they are back. More than
// half of the members have it when it returns: where fewer answer the error wraps
// buckets.ErrNoMajority.
func (s *Store) CreateBucket(info buckets.Info) (buckets.Info, error) {
	if isPrivate(info.Name) {
		return s.Store.CreateBucket(info)
	}
	if err := s.c.JoinError(); err != nil {
		return buckets.Info{}, err
	}
	return s.c.createBucket(info)
}

// Buckets returns all buckets, with the n of those that have one of their own.
func (s *Store) Buckets() []buckets.Info {
	list := s.Store.Buckets()
	for i := range list {
		list[i].Copies = s.c.buckets.copies(list[i].ID)
	}
	return list
}

// BucketByName returns a bucket, or an error that wraps buckets.ErrUnknown.
func (s *Store) BucketByName(name string) (buckets.Info, error) {
	info, err := s.Store.BucketByName(name)
	info.Copies = s.c.buckets.copies(info.ID)
	return info, err
}

// DeleteBucket deletes a bucket with all it holds, on all nodes. More than half of the members know
// it when it returns: where fewer answer the error wraps buckets.ErrNoMajority.
func (s *Store) DeleteBucket(name string) error {
	if isPrivate(name) {
		return s.Store.DeleteBucket(name)
	}
	if _, err := s.Store.BucketByName(name); err != nil {
		return err
	}
	return s.c.changeBucket(name, func() error { return s.c.buckets.delete(name) })
}

// SetTTL sets the TTL of a bucket in points, on all nodes; 0 keeps points for ever.
func (s *Store) SetTTL(name string, points int64) error {
	if isPrivate(name) {
		return s.Store.SetTTL(name, points)
	}
	return s.c.buckets.setTTL(name, points)
}

// EnsureBucket returns a bucket, and creates one that is missing where nodes do so.
func (s *Store) EnsureBucket(name string) (buckets.Info, error) {
	return points{s.c}.EnsureBucket(name, buckets.Form{})
}

// reads are those of a bucket: of this node alone, or over all.
type reads interface {
	Metrics(ctx context.Context, bucket buckets.Info, prefix []byte, fn func(key []byte) bool) error
	Extent(ctx context.Context, bucket buckets.Info, key []byte, from, n int64) (first, past int64,
		err error)
	Read(ctx context.Context, bucket buckets.Info, key []byte, from int64, dst []uint64) error
	ReadTimestamped(ctx context.Context, bucket buckets.Info, key []byte, from int64, values,
		timestamps []uint64) error
	ReadWithStale(ctx context.Context, bucket buckets.Info, key []byte, from int64, values,
		timestamps []uint64) error
}

func (s *Store) reads(bucket buckets.Info) reads {
	if isPrivate(bucket.Name) {
		return s.Store
	}
	return s.c.remote
}

// Metrics lists the metrics of all nodes: see remote.Remote.
func (s *Store) Metrics(ctx context.Context, bucket buckets.Info, prefix []byte,
	fn func(key []byte) bool) error {
	return s.reads(bucket).Metrics(ctx, bucket, prefix, fn)
}

// Extent is store.Store.Extent over the copies that a read needs.
func (s *Store) Extent(ctx context.Context, bucket buckets.Info, key []byte, from, n int64) (first,
	past int64, err error) {
	return s.reads(bucket).Extent(ctx, bucket, key, from, n)
}

// Read is store.Store.Read over the copies that a read needs.
func (s *Store) Read(ctx context.Context, bucket buckets.Info, key []byte, from int64,
	dst []uint64) error {
	return s.reads(bucket).Read(ctx, bucket, key, from, dst)
}

// ReadTimestamped is store.Store.ReadTimestamped over the copies that a read needs.
func (s *Store) ReadTimestamped(ctx context.Context, bucket buckets.Info, key []byte, from int64,
	values, timestamps []uint64) error {
	return s.reads(bucket).ReadTimestamped(ctx, bucket, key, from, values, timestamps)
}

// ReadWithStale is store.Store.ReadWithStale over the copies that a read needs.
func (s *Store) ReadWithStale(ctx context.Context, bucket buckets.Info, key []byte, from int64,
	values, timestamps []uint64) error {
	return s.reads(bucket).ReadWithStale(ctx, bucket, key, from, values, timestamps)
}

// deletedTogether is how many series one batch deletes.
const deletedTogether = 4096

// DeleteSeries deletes series with all their points, wherever the copies are. Nodes that are down
// learn of it before they serve. Result counts series; segments are a matter of each node. After an
// error each series is whole or gone.
func (s *Store) DeleteSeries(ctx context.Context, bucket string, choice deletion.Choice,
	dryRun bool) (deletion.Result, error) {
	if isPrivate(bucket) {
		return s.Store.DeleteSeries(ctx, bucket, choice, dryRun)
	}
	info, err := s.BucketByName(bucket)
	if err != nil {
		return deletion.Result{}, err
	}
	var all []metric.SeriesID
	err = s.Metrics(ctx, info, choice.Key, func(key []byte) bool {
		if !choice.Takes(key) {
			return true
		}
		id := metric.ValuesOf(info.ID, key, info.HPTS)
		s.c.names.Note(id, info.ID, key)
		all = append(all, id)
		return true
	})
	if err != nil {
		return deletion.Result{}, err
	}
	if len(all) == 0 && !choice.Prefix {
		return deletion.Result{}, fmt.Errorf("%w %s in bucket %s", deletion.ErrUnknownSeries,
			metric.Text(choice.Key), metric.Quote(bucket))
	}
	result := deletion.Result{Series: int64(len(all))}
	for done := 0; done < len(all) && !dryRun; {
		slice := all[done:min(len(all), done+deletedTogether)]
		if err := s.c.deleteSeries(ctx, info.ID, slice); err != nil {
			result.Series = int64(done)
			return result, err
		}
		done += len(slice)
	}
	return result, nil
}

// deleteSeries deletes series on the nodes that have them, and waits for as many as a write needs.
func (c *Cluster) deleteSeries(ctx context.Context, bucket uint64, ids []metric.SeriesID) error {
	if err := c.commits.open(); err != nil {
		return err
	}
	number, answer := c.commits.ask()
	c.submit(number, replication.Batch{Bucket: bucket, Deletions: ids})
	select {
	case r := <-answer:
		if _, w := c.quorumOf(c.View(), bucket); !r.Done {
			return fmt.Errorf("deleting %d series: fewer than w = %d copies have confirmed it within %s; "+
				"delete them again when more nodes are up",
				len(ids), w, c.o.Pace.Timeout)
		}
		return nil
	case <-c.commits.ended:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}
