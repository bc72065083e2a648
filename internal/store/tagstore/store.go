package tagstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/ledger"
	"dalmatiner/internal/write/logrecord"
)

// MaxChange is the longest change in bytes, encoded.
const MaxChange = 256 << 10

// Options are what the tags of a store work with. All is required but Shared.
type Options struct {
	FS     vfs.FS
	Dir    string // the data directory
	Logger *slog.Logger
	Now    func() time.Time
	Shared bool // several nodes have the tags in common, see Share

	Of        func() origin.Directory // the id of Dir; from Load on
	Ledger    *ledger.Ledger
	Pressure  *backpressure.Control
	Memory    *memory.Budget
	Damage    *damage.Notes
	Deletions *incarnation.Clock // of series
	// Incarnation returns that of a series, and whether its bucket exists.
	Incarnation func(bucket uint64, key []byte) (incarnation uint64, ok bool)
	Deleted     func(bucket uint64) bool // there was one of that id

	Gate       func() *version.Gate      // of flushes
	Commit     func(manifest.Edit) error // as flush.Flusher.Commit
	TakeNumber func() uint64             // of a file
	Sync       func() error              // makes all of the log durable

	FlushBytes int64 // senders wait while twice as many are not flushed
	// MergeFrom is how many bytes of changes are merged into a base at least; 0 is the default.
	MergeFrom int64
}

// Store is the tags of a data directory. Its methods may be called concurrently.
type Store struct {
	o     Options
	index *tags.Index

	loaded  chan struct{} // closed when the files are in the index
	loadErr error         // why they are not
	// buckets of which there are tags in them, and which are not known; until Settle
	unnamed map[uint64]bool
	from    uint64 // records of the log below are in the files that were loaded

	// order makes the order of the log that of the index. It comes before the locks of buckets
	// and the commit lock.
	order sync.Mutex
	clock uint64 // the highest of a change that was made here or seen; under order
	enc   []byte // for a change, under order
	rec   []byte // for a record, under order

	// mu comes behind the commit lock.
	mu      sync.Mutex
	pending records         // not taken by a flush yet
	taken   records         // by the flush under way,
	end     uint64          // which has all below this position
	written *manifest.File  // by it
	files   []manifest.File // committed, in the order in which they are read
	past    uint64          // records of the log below are in them
	spoilt  bool            // a file has lost something: a base is to be written in place of all
	unread  bool            // the device may give later what is missing: no file may go
	torn    bool            // a copy is still to be written again from the other one

	lacking  lacking
	merging  sync.Mutex
	want     chan struct{}
	counters counters
	sharing
}

// lacking is what the files that were loaded do not have.
type lacking struct {
	any    bool                // the log may have some of it
	losses []manifest.LostFile // of those that are there; under mu
}

type counters struct {
	changes, unchanged, lost, merges, rewritten, unflushed, invalid, noMemory atomic.Int64
}

// New returns tags that are empty until Load.
func New(o Options) *Store {
	if o.MergeFrom == 0 {
		o.MergeFrom = mergeFrom
	}
	return &Store{o: o, index: tags.New(), loaded: make(chan struct{}), want: make(chan struct{}, 1)}
}

// Index returns the index, which is to be read only.
func (s *Store) Index() *tags.Index { return s.index }

// records are records as the log has them, in its order.
type records struct {
	list  []record
	bytes int64
}

type record struct {
	bytes   []byte
	entries int // changes or series in it
}

// recordCost is what a record takes beside its bytes.
const recordCost = 32

func (r *records) add(rec record) {
	r.list = append(r.list, rec)
	r.bytes += int64(cap(rec.bytes)) + recordCost
}

// Applied says what became of changes.
type Applied struct {
	// Token is the position of the last one in the log: they outlive a crash when the ledger's
	// WaitDurable has returned for it. 0 where none said anything new.
	Token   wal.LSN
	Changed int // said something new
	Refused []Refusal
}

// Refusal is a change that was not taken.
type Refusal struct {
	At  int // in the list
	Err error
}

// Apply takes changes, which stay the caller's: each is in the index when it returns, or refused.
// Those without a clock get the present one and the id of this node, in list too. The reason of a
// refusal wraps tags.ErrLimit, buckets.ErrUnknown or *memory.Refusal: while memory is short, what
// adds a series or a tag is refused, and may be tried again. The error is that of ctx while senders
// are held back, or of the log, or wraps write.ErrDiskFull: then some of the changes may have been
// taken.
func (s *Store) Apply(ctx context.Context, list []tags.Change) (a Applied, err error) {
	return applyAll(ctx, s, list, s.take)
}

// applyAll applies the changes that take appends to its first argument, and refuses the others.
func applyAll(ctx context.Context, s *Store, list []tags.Change,
	take func([]byte, *tags.Change) ([]byte, error)) (a Applied, err error) {
	if err := s.wait(ctx); err != nil {
		return a, err
	}
	s.order.Lock()
	defer s.order.Unlock()
	enc, rec := s.enc, s.rec
	part := make([]tags.Change, 0, len(list)) // of rec
	defer func() { s.enc, s.rec = keep(enc), keep(rec) }()
	for i := range list {
		if i%fetched == 0 {
			tags.Fetch(s.index, list[i:min(i+fetched, len(list))])
		}
		c := &list[i]
		if enc, err = take(enc[:0], c); err != nil {
			s.counters.refused(err)
			a.Refused = append(a.Refused, Refusal{i, err})
			continue
		}
		if len(part) > 0 && (part[0].Bucket != c.Bucket || len(rec)+len(enc) > logrecord.MaxTags) {
			if err := s.write(rec, part, &a); err != nil {
				return a, err
			}
			part = part[:0]
		}
		if len(part) == 0 {
			rec = logrecord.AppendTags(rec[:0], c.Bucket)
		}
		rec, part = append(rec, enc...), append(part, *c)
	}
	if len(part) == 0 {
		return a, nil
	}
	err = s.write(rec, part, &a)
	return a, err
}

// fetched is how many changes are fetched ahead: what they are looked up in fits the cache.
const fetched = 256

// keep returns memory for the next changes, unless it is much.
func keep(buf []byte) []byte {
	if cap(buf) > MaxChange {
		return nil
	}
	return buf
}

// WaitDurable makes changes outlive a crash. It does not wait for the interval of the log, in
// which an import of many parts would wait for each.
func (s *Store) WaitDurable(_ context.Context, a Applied) error {
	if a.Token == 0 {
		return nil
	}
	return s.o.Sync()
}

// Walk calls fn with changes that make all tags, as tags.Index.Walk.
func (s *Store) Walk(fn func(*tags.Change) error) error { return s.index.Walk(fn) }

// take stamps a change that has no clock, and appends it to dst. Or it is refused.
func (s *Store) take(dst []byte, c *tags.Change) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	if _, ok := s.o.Incarnation(c.Bucket, c.Key); !ok {
		return dst, fmt.Errorf("%w with id %016x", buckets.ErrUnknown, c.Bucket)
	}
	if err := s.index.Fits(c); err != nil {
		return dst, err
	}
	if err := room(s, c); err != nil {
		return dst, err
	}
	if c.Clock == 0 {
		c.Clock, c.Node = s.next(), s.node
	}
	dst = tags.AppendChange(dst, c)
	if n := len(dst); n > MaxChange {
		return dst, fmt.Errorf("%w: it has %d bytes, the limit is %d", tags.ErrLimit, n, MaxChange)
	}
	s.clock = max(s.clock, c.Clock)
	return dst, nil
}

// room refuses what needs memory while it is short.
func room(s *Store, c *tags.Change) error {
	if m := s.o.Memory; m.Level() >= memory.NoSeries && adds(s, c) {
		return &memory.Refusal{
			Pool:       "tags",
			Used:       m.UsedBytes(),
			Limit:      m.Limit(),
			OfPressure: true,
			Stays:      true,
		}
	}
	return nil
}

// adds reports whether a change needs memory of its own: it names a series that its collection has
// not, or a tag that the series has not.
func adds(s *Store, c *tags.Change) bool {
	return !c.Leave && !tags.GivenTags{In: s.index}.Has(c)
}

// refused counts a change that was not taken.
func (c *counters) refused(err error) {
	switch {
	case errors.As(err, new(*memory.Refusal)):
		c.noMemory.Add(1)
	case errors.As(err, new(*DeletedError)), errors.Is(err, errForgotten):
		c.unchanged.Add(1)
	default:
		c.invalid.Add(1)
	}
}

// next returns the clock of a change: above those of all changes and deletions that are known.
// Later deletions get a higher one.
func (s *Store) next() uint64 {
	now := s.o.Now()
	n := incarnation.Next(max(s.clock, s.o.Deletions.Highest()), now)
	if n > uint64(max(now.UnixNano(), 0)) {
		s.o.Deletions.Advance(n)
	}
	return n
}

// write takes the changes of a record. The lock of the order is held.
func (s *Store) write(rec []byte, part []tags.Change, a *Applied) error {
	rec = slices.Clone(rec) // of its length, as it stays until a flush
	return s.o.Ledger.ChangeTwiceAt(rec, func(lsn wal.LSN) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range part {
			if s.apply(&part[i]) {
				a.Changed++
			}
		}
		a.Token = lsn
		s.add(rec, len(part))
	})
}

// add notes a record of so many changes or series for the next flush. The lock is held.
func (s *Store) add(rec []byte, entries int) {
	s.pending.add(record{rec, entries})
	s.counters.unflushed.Store(s.pending.bytes + s.taken.bytes)
}

// apply enters a change into the index, unless its bucket or its series was deleted since.
func (s *Store) apply(c *tags.Change) bool {
	n, ok := s.o.Incarnation(c.Bucket, c.Key)
	if !ok || c.Clock <= n || !s.index.Apply(c) {
		s.counters.unchanged.Add(1)
		return false
	}
	s.counters.changes.Add(1)
	return true
}

// wait holds back who changes tags while too many changes are not flushed.
func (s *Store) wait(ctx context.Context) error {
	if !s.full() {
		return ctx.Err()
	}
	if err := s.o.Pressure.Hold(ctx, s.full, true); err != nil &&
		!errors.Is(err, backpressure.ErrUrgent) {
		return err
	}
	return nil
}

// full reports whether too many changes are not flushed, and a flush would help.
func (s *Store) full() bool { return s.Unflushed() > 2*s.o.FlushBytes && !s.o.Pressure.DiskFull() }

// Deleting is called before series are deleted, or let go because they have expired, with the gate
// held; done takes them, and must be called. No tags of the series are changed in between.
func (s *Store) Deleting() (done func(bucket uint64, why logrecord.Reason, incarnation uint64,
	series []metric.SeriesID)) {
	s.order.Lock()
	return func(bucket uint64, why logrecord.Reason, incarnation uint64, series []metric.SeriesID) {
		defer s.order.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		had := s.drop(bucket, why, incarnation, slices.Values(series))
		s.gone(bucket, why, incarnation, had, series)
	}
}

// DropBucket forgets the tags of a bucket that was deleted: what files have of them does not
// count any more.
func (s *Store) DropBucket(bucket uint64) {
	<-s.loaded
	s.mu.Lock() // of changes that are under way none comes behind it
	defer s.mu.Unlock()
	s.index.DropBucket(bucket)
}

// Stats are of tags.
type Stats struct {
	Changes  int64 // that said something new, since the start
	Merges   int64
	Invalid  int64 // changes that were refused as beyond a limit, or of an unknown bucket
	NoMemory int64 // as memory was short
	// changes, and series with their tags, that both copies of a file lacked at the start
	Lost      int64
	Rewritten int64 // damaged copies that were written again
	Unflushed int64 // bytes
	Files     int64
	Bytes     int64 // of all copies
}

// Stats returns the present numbers.
func (s *Store) Stats() Stats {
	c := &s.counters
	st := Stats{Changes: c.changes.Load(), Merges: c.merges.Load(), Lost: c.lost.Load(),
		Rewritten: c.rewritten.Load(), Unflushed: c.unflushed.Load(),
		Invalid: c.invalid.Load(), NoMemory: c.noMemory.Load()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.files {
		st.Files++
		st.Bytes += 2 * s.files[i].Bytes
	}
	return st
}
