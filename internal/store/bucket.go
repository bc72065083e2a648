package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/head"
	"dalmatiner/internal/incarnation"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/series"
	"dalmatiner/internal/version"
)

// ErrClosed is returned by calls after Close.
var ErrClosed = version.ErrClosed

// bucket is a bucket in memory.
type bucket struct {
	info   buckets.Info // all but TTL
	ttl    atomic.Int64 // points
	height int
	arena  *head.Arena

	incarnations incarnation.Set // of series that were deleted, whether or not they came back

	highest atomic.Int64 // slot that is flushed, noSlot for none

	mu       sync.Mutex // series creation; taken before a group's lock
	deleted  bool
	groups   []*head.Group
	partial  []*head.Group // not full, and no session fills them
	silent   []silentGroup // ascending by columns that can be given to others
	inactive series.Inactive
	series   int // known, with a column or not
}

func (b *bucket) Info() buckets.Info {
	info := b.info
	info.TTL = b.ttl.Load()
	return info
}

// snapshot returns the groups as they are now.
func (b *bucket) snapshot() []*head.Group {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.groups)
}

// Buckets returns all buckets, sorted by name.
func (s *Store) Buckets() []buckets.Info {
	all := s.buckets.All()
	out := make([]buckets.Info, len(all))
	for i, b := range all {
		out[i] = b.Info()
	}
	return out
}

// BucketByName returns a bucket, or an error that wraps buckets.ErrUnknown.
func (s *Store) BucketByName(name string) (buckets.Info, error) {
	b, err := s.buckets.Named(name)
	if err != nil {
		return buckets.Info{}, err
	}
	return b.Info(), nil
}

// CreateBucket creates a bucket and returns it with its id. It is durable when
// the call returns. The error wraps buckets.ErrExists or buckets.ErrInvalid.
func (s *Store) CreateBucket(info buckets.Info) (buckets.Info, error) {
	if err := info.Validate(); err != nil {
		return buckets.Info{}, err
	}
	info, err := s.buckets.Create(info, func(info buckets.Info) error {
		return s.logChange(logrecord.AppendBucket(nil, &info), func() { s.buckets.Add(s.newBucket(info)) })
	})
	if err != nil {
		return buckets.Info{}, err
	}
	return info, s.log.Sync()
}

func (s *Store) newBucket(info buckets.Info) *bucket {
	b := &bucket{info: info, height: s.o.blockHeight(info.Resolution)}
	b.ttl.Store(info.TTL)
	b.highest.Store(noSlot)
	b.arena = s.arenas.Of(b.height)
	return b
}

// EnsureBucket returns a bucket and creates it with the defaults where it does
// not exist and auto-creation is on.
func (s *Store) EnsureBucket(name string) (buckets.Info, error) {
	info, err := s.BucketByName(name)
	if err == nil {
		return info, nil
	}
	if !s.o.AutoCreate {
		return buckets.Info{}, fmt.Errorf("%w, and bucket.auto_create is off", err)
	}
	info, err = s.CreateBucket(buckets.Info{
		Name: name, Resolution: s.o.DefaultResolution, PPF: s.o.DefaultPPF, TTL: s.o.Lifetime,
	})
	if errors.Is(err, buckets.ErrExists) {
		return s.BucketByName(name) // somebody else was faster
	}
	return info, err
}

// SetTTL sets the TTL of a bucket in points; 0 keeps points for ever. Points
// that are older are hidden at once.
func (s *Store) SetTTL(name string, points int64) error {
	b, err := s.buckets.Named(name)
	if err != nil {
		return err
	}
	info := b.Info()
	info.TTL = points
	if err := info.Validate(); err != nil {
		return err
	}
	b.mu.Lock()
	err = buckets.ErrUnknown
	if !b.deleted {
		err = s.logChange(logrecord.AppendTTL(nil, b.info.ID, points), func() { b.ttl.Store(points) })
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("setting the TTL of %s: %w", metric.Quoted(name), err)
	}
	return s.log.Sync()
}

// DeleteBucket deletes a bucket with all it holds. When the call returns, the
// deletion is durable; its points stay in the account.
func (s *Store) DeleteBucket(name string) error {
	b, err := s.buckets.Named(name)
	if err != nil {
		return err
	}
	if err := s.awaitReplay(context.Background()); err != nil {
		return err
	}
	b.mu.Lock()
	err = buckets.ErrUnknown
	if !b.deleted {
		d := s.buckets.Deletion(b, s.o.Now())
		err = s.logDeletion(logrecord.AppendBucketDeleted(nil, &d), func() { s.forgetBucket(b, d) })
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("deleting %s: %w", metric.Quoted(name), err)
	}
	s.dropGroups(b)
	return s.log.Sync()
}

// forgetBucket takes a bucket out of the registry and of what the next flush
// names. The bucket's lock is held, so that no series is defined any more.
func (s *Store) forgetBucket(b *bucket, d buckets.Deletion) {
	b.deleted = true
	s.buckets.Remove(b, d)
	s.pendMu.Lock()
	defer s.pendMu.Unlock()
	before := namingNeed(s.pending...)
	s.pending = slices.DeleteFunc(s.pending, func(p catalogue.Change) bool { return p.Series.Bucket == b.info.ID })
	s.unnamed.Add(namingNeed(s.pending...) - before)
	s.droppedBuckets = append(s.droppedBuckets, d)
}

// noteDeleted notes the deletion of a bucket that was not there: its creation was
// lost, and its id must not be given again all the same.
func (s *Store) noteDeleted(d buckets.Deletion) {
	if s.buckets.WasDeleted(d.ID) {
		return
	}
	s.buckets.NoteDeleted(d)
	s.pendMu.Lock()
	defer s.pendMu.Unlock()
	s.droppedBuckets = append(s.droppedBuckets, d)
}

// dropGroups gives the memory of a forgotten bucket back. Its chunks in
// segments have no reader any more.
func (s *Store) dropGroups(b *bucket) {
	b.mu.Lock()
	groups, names := b.groups, b.inactive.View()
	b.groups, b.partial, b.silent, b.inactive, b.series = nil, nil, nil, series.Inactive{}, 0
	b.mu.Unlock()
	names.Each(func(key []byte) bool {
		s.index.Delete(b.seriesID(key))
		return true
	})
	for _, g := range groups {
		sealedBlocks, late := g.Kill()
		s.sealedBytes.Add(-sealedBlocks)
		s.lateBytes.Add(-late)
		cols := g.Columns()
		for col := range cols.Len() {
			if cols.Has(col) {
				s.index.Delete(cols.ID(col))
			}
		}
		s.groups.Remove(g.ID)
	}
	// Whoever found the bucket before it was forgotten has counted by now.
	s.commit.Lock()
	defer s.commit.Unlock()
	s.account.DeleteBucket(b.info.ID)
}
