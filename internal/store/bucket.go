package store

import (
	"context"
	"errors"
	"fmt"

	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
)

// ErrClosed is returned by calls after Close.
var ErrClosed = version.ErrClosed

// Buckets returns all buckets, sorted by name.
func (s *Store) Buckets() []buckets.Info { return s.buckets.Infos() }

// BucketByName returns a bucket, or an error that wraps buckets.ErrUnknown.
func (s *Store) BucketByName(name string) (buckets.Info, error) {
	b, err := s.buckets.ByName(name)
	if err != nil {
		return buckets.Info{}, err
	}
	return b.Info(), nil
}

// BucketByID returns the bucket of an id, or an error that wraps buckets.ErrUnknown.
func (s *Store) BucketByID(id uint64) (buckets.Info, error) {
	b := s.buckets.ID(id)
	if b == nil {
		return buckets.Info{}, fmt.Errorf("%w: id %016x", buckets.ErrUnknown, id)
	}
	return b.Info(), nil
}

// CreateBucket creates a bucket and returns it with its id. It is durable when
// the call returns. The error wraps buckets.ErrExists or buckets.ErrInvalid, or a
// *memory.Refusal while there is no memory for new series either.
func (s *Store) CreateBucket(info buckets.Info) (buckets.Info, error) {
	if err := info.Validate(); err != nil {
		return buckets.Info{}, err
	}
	if info.Copies != 0 {
		return buckets.Info{},
			fmt.Errorf("%w: n of %s is %d, but this node is on its own and has one copy: leave n out",
				buckets.ErrInvalid, metric.Quote(info.Name), info.Copies)
	}
	info, err := s.buckets.Create(info, s.addBucket)
	if err != nil {
		return buckets.Info{}, err
	}
	return info, s.disk.Log.Sync()
}

func (s *Store) newBucket(info buckets.Info) *columns.Bucket {
	height := s.o.blockHeight(info.Resolution)
	return columns.NewBucket(info, height, s.arenas.ArenaFor(height))
}

// EnsureBucket returns a bucket and creates it with the defaults where it does
// not exist and auto-creation is on.
func (s *Store) EnsureBucket(name string) (buckets.Info, error) {
	return s.ensureBucket(name, buckets.Form{})
}

func (s *Store) ensureBucket(name string, form buckets.Form) (buckets.Info, error) {
	info, err := s.BucketByName(name)
	if err == nil {
		return info, nil
	}
	if !s.o.UnknownBuckets.Create {
		return buckets.Info{}, fmt.Errorf("%w, and bucket.auto_create is off", err)
	}
	o := &s.o.UnknownBuckets
	info, err = s.CreateBucket(form.Info(name, buckets.Info{
		Resolution: o.Resolution,
		PPF:        o.PPF,
		TTL:        o.TTL,
	}))
	if errors.Is(err, buckets.ErrExists) {
		return s.BucketByName(name) // somebody else was faster
	}
	return info, err
}

// SetTTL sets the TTL of a bucket in points; 0 keeps points for ever. Points
// that are older are hidden at once.
func (s *Store) SetTTL(name string, points int64) error {
	b, err := s.buckets.ByName(name)
	if err != nil {
		return err
	}
	info := b.Info()
	info.TTL = points
	if err := info.Validate(); err != nil {
		return err
	}
	err = b.Change(func() error {
		return s.ledger.Change(logrecord.AppendTTL(nil, b.ID, points), func() { b.SetTTL(points) })
	})
	if err != nil {
		return fmt.Errorf("setting the TTL of %s: %w", metric.Quote(name), err)
	}
	return s.disk.Log.Sync()
}

// DeleteBucket deletes a bucket with all it holds. When the call returns, the
// deletion is durable; its points stay in the account.
func (s *Store) DeleteBucket(name string) error {
	b, err := s.buckets.ByName(name)
	if err != nil {
		return err
	}
	if err := s.replay.All(context.Background()); err != nil {
		return err
	}
	err = s.columns.DeleteBucket(b, func() buckets.Deletion {
		return s.buckets.Deletion(b, s.o.Now())
	}, s.logDeletion)
	if err != nil {
		return fmt.Errorf("deleting %s: %w", metric.Quote(name), err)
	}
	s.dropGroups(b)
	return s.disk.Log.Sync()
}

// dropGroups gives the memory of a forgotten bucket back. Its chunks in
// segments have no reader any more.
func (s *Store) dropGroups(b *columns.Bucket) {
	sealedBlocks, late := s.columns.DropGroups(b)
	s.pressure.AddSealed(-sealedBlocks)
	s.pressure.AddLate(-late)
	s.events.DeleteBucket(b.ID, b.Info().Name)
	s.tags.DropBucket(b.ID)
	s.ledger.DeleteBucket(b.ID)
}
