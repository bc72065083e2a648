package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/head"
	"dalmatiner/internal/incarnation"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/series"
)

// Errors that callers branch on.
var (
	ErrUnknownBucket = errors.New("unknown bucket")
	ErrBucketExists  = errors.New("the bucket exists")
	ErrInvalidBucket = errors.New("invalid bucket")
	ErrClosed        = errors.New("the store is closed")
)

// BucketInfo is what defines a bucket. Resolution, PPF and HPTS never change.
type BucketInfo struct {
	ID         uint64 // metric.BucketID
	Name       string // any bytes, 1 to 255
	Resolution int64  // ms per slot
	PPF        int64  // points per file, reported to clients of the original
	TTL        int64  // points; 0 keeps them for ever
	Grace      int64  // ns, event reordering window
	HPTS       bool   // every point has a timestamp in nanoseconds
}

// Limits of a bucket's properties: a resolution of at most a year keeps every
// slot's time inside int64 milliseconds.
const (
	maxResolution = 366 * 24 * 3600 * 1000
	maxPoints     = 1 << 53
)

func (b *BucketInfo) validate() error {
	switch {
	case len(b.Name) == 0 || len(b.Name) > metric.MaxBucket:
		return fmt.Errorf("%w: the name has %d bytes, want 1 to %d", ErrInvalidBucket, len(b.Name), metric.MaxBucket)
	case b.Resolution < 1 || b.Resolution > maxResolution:
		return fmt.Errorf("%w: a resolution of %d ms, want 1 to %d", ErrInvalidBucket, b.Resolution, int64(maxResolution))
	case b.PPF < 1 || b.PPF > maxPoints:
		return fmt.Errorf("%w: %d points per file, want 1 to %d", ErrInvalidBucket, b.PPF, int64(maxPoints))
	case b.TTL < 0 || b.TTL > maxPoints:
		return fmt.Errorf("%w: a TTL of %d points, want 0 (none) to %d", ErrInvalidBucket, b.TTL, int64(maxPoints))
	case b.Grace < 0:
		return fmt.Errorf("%w: a grace of %d ns is negative", ErrInvalidBucket, b.Grace)
	}
	return nil
}

// bucket is a bucket in memory.
type bucket struct {
	info   BucketInfo   // all but TTL
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

func (b *bucket) Info() BucketInfo {
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

// registry is the set of buckets.
type registry struct {
	creating sync.Mutex // one creation at a time; taken before the commit lock

	mu      sync.RWMutex // innermost
	byName  map[string]*bucket
	byID    map[uint64]*bucket
	deleted deletedBuckets
	hash    func(name string, resolution int64, hpts bool, deleted uint64) uint64 // metric.BucketID, but for tests
}

func newRegistry() *registry {
	return &registry{
		byName: make(map[string]*bucket), byID: make(map[uint64]*bucket), hash: metric.BucketID,
		deleted: deletedBuckets{ids: make(map[uint64]struct{}), last: make(map[string]uint64)},
	}
}

func (r *registry) get(name string) *bucket {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[name]
}

func (r *registry) id(id uint64) *bucket {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

// named returns the bucket of a name, or an error that wraps ErrUnknownBucket.
func (r *registry) named(name string) (*bucket, error) {
	if b := r.get(name); b != nil {
		return b, nil
	}
	return nil, unknownBucket(name)
}

// of is named for a bucket that was known before: one of its name made since is
// another.
func (r *registry) of(info BucketInfo) (*bucket, error) {
	if b := r.id(info.ID); b != nil {
		return b, nil
	}
	return nil, unknownBucket(info.Name)
}

func unknownBucket(name string) error {
	return fmt.Errorf("%w %s", ErrUnknownBucket, metric.Quoted(name))
}

func (r *registry) all() []*bucket {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]*bucket, 0, len(r.byID))
	for _, b := range r.byID {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b *bucket) int { return strings.Compare(a.info.Name, b.info.Name) })
	return out
}

// add puts a bucket into the registry.
func (r *registry) add(b *bucket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byName[b.info.Name] = b
	r.byID[b.info.ID] = b
}

// remove takes a bucket out of the registry that is deleted.
func (r *registry) remove(b *bucket, d manifest.DeletedBucket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted.add(d)
	if r.byName[b.info.Name] == b {
		delete(r.byName, b.info.Name)
	}
	delete(r.byID, b.info.ID)
}

// Buckets returns all buckets, sorted by name.
func (s *Store) Buckets() []BucketInfo {
	all := s.buckets.all()
	out := make([]BucketInfo, len(all))
	for i, b := range all {
		out[i] = b.Info()
	}
	return out
}

// BucketByName returns a bucket, or an error that wraps ErrUnknownBucket.
func (s *Store) BucketByName(name string) (BucketInfo, error) {
	b, err := s.buckets.named(name)
	if err != nil {
		return BucketInfo{}, err
	}
	return b.Info(), nil
}

// CreateBucket creates a bucket and returns it with its id. It is durable when
// the call returns. The error wraps ErrBucketExists or ErrInvalidBucket.
func (s *Store) CreateBucket(info BucketInfo) (BucketInfo, error) {
	if err := info.validate(); err != nil {
		return BucketInfo{}, err
	}
	info, err := s.addBucket(info)
	if err != nil {
		return BucketInfo{}, err
	}
	return info, s.log.Sync()
}

// addBucket gives the bucket an id and enters it into the log and the registry.
func (s *Store) addBucket(info BucketInfo) (BucketInfo, error) {
	r := s.buckets
	r.creating.Lock()
	defer r.creating.Unlock()
	if r.get(info.Name) != nil {
		return BucketInfo{}, fmt.Errorf("%w: %s", ErrBucketExists, metric.Quoted(info.Name))
	}
	var err error
	if info.ID, err = r.newID(&info); err != nil {
		return BucketInfo{}, err
	}
	return info, s.logChange(appendBucketRecord(nil, &info), func() { r.add(s.newBucket(info)) })
}

func (s *Store) newBucket(info BucketInfo) *bucket {
	b := &bucket{info: info, height: s.o.blockHeight(info.Resolution)}
	b.ttl.Store(info.TTL)
	b.highest.Store(noSlot)
	b.arena = s.arena(b.height)
	return b
}

// EnsureBucket returns a bucket and creates it with the defaults where it does
// not exist and auto-creation is on.
func (s *Store) EnsureBucket(name string) (BucketInfo, error) {
	info, err := s.BucketByName(name)
	if err == nil {
		return info, nil
	}
	if !s.o.AutoCreate {
		return BucketInfo{}, fmt.Errorf("%w; create it with: ddb admin buckets create %s 1s 1w false", err, metric.Quoted(name))
	}
	info, err = s.CreateBucket(BucketInfo{
		Name: name, Resolution: s.o.DefaultResolution, PPF: s.o.DefaultPPF, TTL: s.o.Lifetime,
	})
	if errors.Is(err, ErrBucketExists) {
		return s.BucketByName(name) // somebody else was faster
	}
	return info, err
}

// SetTTL sets the TTL of a bucket in points; 0 keeps points for ever. Points
// that are older are hidden at once.
func (s *Store) SetTTL(name string, points int64) error {
	b, err := s.buckets.named(name)
	if err != nil {
		return err
	}
	info := b.Info()
	info.TTL = points
	if err := info.validate(); err != nil {
		return err
	}
	b.mu.Lock()
	err = ErrUnknownBucket
	if !b.deleted {
		err = s.logChange(appendTTLRecord(nil, b.info.ID, points), func() { b.ttl.Store(points) })
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
	b, err := s.buckets.named(name)
	if err != nil {
		return err
	}
	if err := s.awaitReplay(context.Background()); err != nil {
		return err
	}
	b.mu.Lock()
	err = ErrUnknownBucket
	if !b.deleted {
		d := s.buckets.deletion(b, s.o.Now())
		err = s.logDeletion(appendDeleteRecord(nil, &d), func() { s.forgetBucket(b, d) })
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
func (s *Store) forgetBucket(b *bucket, d manifest.DeletedBucket) {
	b.deleted = true
	s.buckets.remove(b, d)
	s.pendMu.Lock()
	defer s.pendMu.Unlock()
	before := namingNeed(s.pending...)
	s.pending = slices.DeleteFunc(s.pending, func(p catalogue.Change) bool { return p.Series.Bucket == b.info.ID })
	s.unnamed.Add(namingNeed(s.pending...) - before)
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

// manifestBucket is a bucket as the MANIFEST has it; a segment's description of
// it has the same fields.
func manifestBucket(b BucketInfo) manifest.Bucket {
	return manifest.Bucket{
		ID: b.ID, Name: []byte(b.Name), Resolution: b.Resolution, PPF: b.PPF, TTL: b.TTL, Grace: b.Grace, HPTS: b.HPTS,
	}
}

// bucketInfo undoes manifestBucket.
func bucketInfo(b manifest.Bucket) BucketInfo {
	return BucketInfo{
		ID: b.ID, Name: string(b.Name), Resolution: b.Resolution, PPF: b.PPF, TTL: b.TTL, Grace: b.Grace, HPTS: b.HPTS,
	}
}
