package store

import (
	"context"
	"errors"
	"fmt"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
)

// Member is what a cluster asks of the store of one of its members beside points. Its methods may
// be called concurrently.
type Member struct{ s *Store }

// AdoptBucket creates a bucket that another node has created: its id follows from deleted, the
// clock of the last deletion of its name that was known there, 0 for none. That deletion is done as
// DeleteBucketAt does it, and an older bucket of the name goes with it. Where the bucket is here
// already it is returned as it is. It is durable when the call returns that has created it. The
// error wraps buckets.ErrExists where another bucket has the name, buckets.ErrUnknown where the
// name was deleted behind it, and else is as that of Store.CreateBucket.
func (m Member) AdoptBucket(info buckets.Info, deleted uint64) (buckets.Info, error) {
	if err := info.Validate(); err != nil {
		return buckets.Info{}, err
	}
	if err := m.DeleteBucketAt(info.Name, deleted); err != nil {
		return buckets.Info{}, err
	}
	created := false
	info, err := m.s.buckets.Adopt(info, deleted, func(info buckets.Info) error {
		created = true
		return m.addBucket(info)
	})
	if err != nil {
		return buckets.Info{}, fmt.Errorf("adopting a bucket: %w", err)
	}
	if created {
		err = m.s.disk.Log.Sync()
	}
	return info, err
}

// addBucket brings a bucket into the log and into the registry.
func (m Member) addBucket(info buckets.Info) error {
	giveBack, err := m.s.columns.TakeBucket(info.Name)
	if err != nil {
		return err
	}
	err = m.s.ledger.Change(logrecord.AppendBucket(nil, &info), func() {
		m.s.buckets.Add(m.s.newBucket(info))
	})
	if err != nil {
		giveBack()
	}
	return err
}

// DeleteBucketAt deletes a bucket as Store.DeleteBucket does, at the clock that another node gave
// the deletion. It does nothing where a deletion of the name at that clock or a higher one is
// known, and is remembered where there is no such bucket.
func (m Member) DeleteBucketAt(name string, clock uint64) error {
	s := m.s
	if len(name) == 0 || len(name) > metric.MaxBucket {
		return fmt.Errorf("%w: the name has %d bytes, want 1 to %d", buckets.ErrInvalid, len(name),
			metric.MaxBucket)
	}
	if s.buckets.LastDeletion(name) >= clock {
		return nil
	}
	if err := s.replay.All(context.Background()); err != nil {
		return err
	}
	var gone *columns.Bucket
	remove := func(b *columns.Bucket, d buckets.Deletion) error {
		if gone = b; b == nil {
			return m.logDeletion(d, func() { s.columns.NoteDeleted(d) })
		}
		return s.columns.DeleteBucket(b, func() buckets.Deletion { return d }, m.logDeletion)
	}
	err := s.buckets.DeleteAt(name, clock, remove)
	if errors.Is(err, buckets.ErrUnknown) { // Store.DeleteBucket was faster, with another clock
		err = s.buckets.DeleteAt(name, clock, remove)
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", metric.Quote(name), err)
	}
	if gone != nil {
		s.dropGroups(gone)
	}
	return s.disk.Log.Sync()
}

// logDeletion brings the deletion of a bucket into the log, and then applies it.
func (m Member) logDeletion(d buckets.Deletion, apply func()) error {
	return m.s.ledger.ChangeTwice(logrecord.AppendBucketDeleted(nil, &d), apply)
}

// BucketDeletions returns the last deletion of each name, sorted by name. One of a name that no
// bucket here had then has an id that no bucket has.
func (m Member) BucketDeletions() []buckets.Deletion { return m.s.buckets.Deletions() }

// DeleteSeriesAt does deletions of series again that another node has made, as
// deletion.Deleter.DeleteAt. The token stands for all of it.
func (m Member) DeleteSeriesAt(ctx context.Context, bucket uint64,
	list []deletion.At) (write.Token, error) {
	last, err := m.s.deletions.DeleteAt(ctx, bucket, list)
	return write.Token{Position: uint64(last)}, err
}

// DropSeries gives series up that other nodes have from now on, as deletion.Deleter.Drop.
func (m Member) DropSeries(bucket uint64, ids []metric.SeriesID) error {
	return m.s.deletions.Drop(context.Background(), bucket, ids)
}

// Expect says that a chunk of a series is about to be adopted: until it was, the series stays, with
// points or not. It reports false, and nothing is expected, if there is no such series.
func (m Member) Expect(id metric.SeriesID) bool { return m.s.deletions.Expect(id) }

// Adopt takes chunks in that were expected, as flush.Flusher.Adopt. After an error they still are.
func (m Member) Adopt(ctx context.Context, list []flush.Adopted) error {
	if err := m.s.replay.All(ctx); err != nil {
		return err
	}
	if err := m.s.flusher.Adopt(ctx, list); err != nil {
		return err
	}
	for i := range list {
		m.s.deletions.Came(list[i].ID)
	}
	return nil
}

// Incarnation returns the incarnation of a series, 0 for one that was never deleted.
func (m Member) Incarnation(bucket uint64, id metric.SeriesID) uint64 {
	b := m.s.buckets.ID(bucket)
	if b == nil {
		return 0
	}
	return b.Incarnations.Get(b.ValueID(id))
}

// Incarnations calls fn for every series with an incarnation that is not 0, whether or not it is
// here, until fn returns false.
func (m Member) Incarnations(fn func(bucket uint64, id metric.SeriesID, incarnation uint64) bool) {
	for _, b := range m.s.buckets.All() {
		for id, n := range b.Incarnations.All() {
			if !fn(b.ID, id, n) {
				return
			}
		}
	}
}

// Replayed returns when all that the log had at the start is in memory: until then streams that
// never wait refuse points of new series. The error is that of ctx, or of the log.
func (m Member) Replayed(ctx context.Context) error { return m.s.replay.All(ctx) }

// EachSeries calls fn for every series, with the id of its values and its key, until fn returns
// false: bucket by bucket, in no particular order. fn must not keep or change the key. The error
// is that of ctx.
func (m Member) EachSeries(ctx context.Context,
	fn func(info buckets.Info, id metric.SeriesID, key []byte) bool) error {
	for _, b := range m.s.buckets.All() {
		info := b.Info()
		if !eachSeries(ctx, b, func(id metric.SeriesID, key []byte) bool { return fn(info, id, key) }) {
			break
		}
	}
	return ctx.Err()
}

func eachSeries(ctx context.Context, b *columns.Bucket,
	fn func(id metric.SeriesID, key []byte) bool) bool {
	all, names := b.Names()
	for _, cols := range all {
		if ctx.Err() != nil {
			return false
		}
		for col := 0; col < cols.Len(); col += b.Width() {
			if cols.HasName(col) && !fn(cols.ID(col), cols.Key(col)) {
				return false
			}
		}
	}
	return names.Each(func(key []byte) bool { return ctx.Err() == nil && fn(b.SeriesID(key), key) })
}

// Copies returns the ledger of copies: the account of the points that this node stores for a
// cluster, those of streams with write.Options.Copies.
func (m Member) Copies() *account.Account { return m.s.ledger.Copies() }

// CountPoints counts points of a bucket that this node took from senders and gave to other nodes to
// store: what became of them goes into the log and the account. The token stands for it. The error
// wraps write.ErrDiskFull where the log has no room for points that were stored.
func (m Member) CountPoints(bucket uint64, c *account.Counts) (write.Token, error) {
	lsn, err := m.s.ledger.CountPoints(bucket, c)
	return write.Token{Position: uint64(lsn)}, err
}
