package columns

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/history"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/series"
)

// bucketCost is what a bucket takes beside its name, its groups and its series: itself
// and its places in the registry, its account without the minutes, what a flush and the
// MANIFEST say of it, and most of all what the node's own metrics and /metrics take for
// it, for as long as they are written.
const bucketCost = 6 << 10

// bucketBytes is what a bucket takes with its name, which lies in all these places.
func bucketBytes(name string) int64 { return bucketCost + 4*int64(len(name)) }

// NoSlot is the highest flushed slot of a bucket that has flushed none.
const NoSlot = -1

// fixed is what never changes of a bucket.
type fixed = buckets.Info

// Bucket is a bucket in memory, and the owner of its series and their columns. Its
// properties but TTL are its fields. Its methods may be called concurrently.
type Bucket struct {
	fixed
	Height int // of its head blocks

	Incarnations incarnation.Set // of series that were deleted, whether or not they came back
	History      history.Journal // what changes of words and names but by segments
	Reach        Reach           // of the log

	ttl     atomic.Int64 // points
	highest atomic.Int64
	arena   *head.Arena

	mu       sync.Mutex // columns change hands under it; taken before a group's lock
	deleted  bool
	groups   []*head.Group
	partial  []*head.Group // not full, and no session fills them
	silent   []silentGroup // ascending by columns that can be given to others
	inactive series.InactiveNames
	series   int // known, with a column or not
}

// NewBucket returns a bucket without series, whose head blocks have that height and are
// made in arena.
func NewBucket(info buckets.Info, height int, arena *head.Arena) *Bucket {
	b := &Bucket{fixed: info, Height: height, arena: arena}
	b.ttl.Store(info.TTL)
	b.highest.Store(NoSlot)
	b.Reach.begin(info.Resolution)
	return b
}

// Info returns the properties of the bucket.
func (b *Bucket) Info() buckets.Info {
	info := b.fixed
	info.TTL = b.ttl.Load()
	return info
}

// TTL returns the lifetime of points, in points; 0 keeps them for ever.
func (b *Bucket) TTL() int64 { return b.ttl.Load() }

// SetTTL sets the lifetime.
func (b *Bucket) SetTTL(points int64) {
	b.History.Change(func() { b.ttl.Store(points) })
}

// Highest returns the highest slot that is flushed, NoSlot for none.
func (b *Bucket) Highest() int64 { return b.highest.Load() }

// RaiseHighest notes that a slot is flushed. One caller at a time does so.
func (b *Bucket) RaiseHighest(slot int64) {
	b.highest.Store(max(b.highest.Load(), slot))
	b.Reach.settle(slot)
}

// Change calls fn while the bucket is not deleted and none of its columns changes hands.
// The error is that of fn, or buckets.ErrUnknown for a deleted bucket.
func (b *Bucket) Change(fn func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return buckets.ErrUnknown
	}
	return fn()
}

// Width is how many columns a metric of the bucket has: the values, and the timestamps
// behind them where the bucket has those.
func (b *Bucket) Width() int {
	if b.HPTS {
		return 2
	}
	return 1
}

// SeriesID is the id under which the index has a metric.
func (b *Bucket) SeriesID(key []byte) metric.SeriesID {
	return metric.ValuesOf(b.ID, key, b.HPTS)
}

// bind gives a metric a free column, and the one behind it for its timestamps.
func (b *Bucket) bind(g *head.Group, col int, key []byte, id metric.SeriesID, lsn uint64,
	now int64) {
	if b.HPTS {
		g.Bind(col, key, lsn, now, id, id.Timestamp())
	} else {
		g.Bind(col, key, lsn, now, id)
	}
}

// silence is how long a series of the bucket sends nothing before others may get
// its column: the time of two blocks.
func (b *Bucket) silence() time.Duration {
	return 2 * time.Duration(b.Height) * time.Duration(b.Resolution) * time.Millisecond
}

// identityOf is the identity of a series without its name.
func (b *Bucket) identityOf(ref series.Ref, id metric.SeriesID) segment.Series {
	return segment.Series{
		Bucket: b.ID,
		Hash:   segment.Hash(id),
		Group:  ref.Group(),
		Column: uint16(ref.Column()),
	}
}

// Groups returns the groups as they are now. The slice is the caller's.
func (b *Bucket) Groups() []*head.Group {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.groups)
}

// Names returns views of all names at one moment, in which every series is once.
func (b *Bucket) Names() ([]*head.Columns, series.InactiveView) {
	b.mu.Lock()
	defer b.mu.Unlock()
	columns := make([]*head.Columns, len(b.groups))
	for i, g := range b.groups {
		columns[i] = g.Columns()
	}
	return columns, b.inactive.View()
}

// Counts are what a bucket has.
type Counts struct {
	Series        int64 // with a column or not
	Inactive      int64 // of them without one
	InactiveBytes int64 // memory of their names
	Groups        int64
	Incarnations  int64 // series with an incarnation that is not 0
}

// Counts counts what the bucket has.
func (b *Bucket) Counts() Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Counts{
		Series: int64(b.series), Groups: int64(len(b.groups)), Incarnations: b.Incarnations.Len(),
		Inactive: int64(b.inactive.Len()), InactiveBytes: b.inactive.Bytes(),
	}
}

// bytes returns the memory of what belongs to no group.
func (b *Bucket) bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bucketBytes(b.Name) + b.inactive.Bytes() + b.Incarnations.Bytes() + b.History.Bytes()
}
