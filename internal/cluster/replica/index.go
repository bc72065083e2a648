package replica

import (
	"bytes"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
)

// windowSlots is the slots of the chunks that one digest of a window covers.
const windowSlots = chunksPerWindow * chunk.Slots

const chunksPerWindow = replication.WindowChunks

// index is which series are here, by partition, and what is known of them. Everything that is
// written or deleted passes through, so it is exact. It is not for concurrent use, but for Name.
type index struct {
	o          *Options
	buckets    map[uint64]*bucket
	mu         sync.RWMutex // held while series, partitions and lives are changed, and by Name
	series     map[metric.SeriesID]*series
	partitions map[int]*partition
	shares     map[replication.Share]*share // of the partitions: of buckets with one n
	lives      int                          // in all partitions
	raised     uint64                       // grows when one becomes another one
	last       *series                      // that was found
	damage     uint64                       // count of damage when digests were last known to hold
	digests    int                          // of single series that are kept
	// when it was last looked which deletions the store has forgotten
	forgotten time.Time
}

// bucket is a bucket as it was when the index was brought up to date.
type bucket struct {
	id   uint64
	info buckets.Info
	gone bool
	n    int   // of its own; 0: that of the ring
	edge int64 // chunks below it are not compared: they expire, or will soon
}

// series is a series that is here.
type series struct {
	id     metric.SeriesID
	bucket *bucket
	share  *share
	key    []byte
	next   *series // that was found behind it, or nil
	gone   bool    // it is not in the index any more

	// Slots [from, past) may hold points, all others do not. known is false after a start.
	known      bool
	from, past int64
	dirty      int64 // window in whose list of changed series this one is, less 1
}

// partition is what was deleted in a partition.
type partition struct {
	lives     map[metric.SeriesID]life
	deletions []replication.Deletion // the same, sorted; nil: not made yet
}

// share is the series of a partition in buckets with one n.
type share struct {
	list     []*series // sorted unless unsorted
	unsorted bool
	digests  digests
}

// life is what is known of a series that was deleted.
type life struct{ bucket, incarnation uint64 }

func newIndex(o *Options) index {
	return index{
		o:          o,
		buckets:    make(map[uint64]*bucket),
		series:     make(map[metric.SeriesID]*series),
		partitions: make(map[int]*partition),
		shares:     make(map[replication.Share]*share),
	}
}

// load reads which series and deletions the store has, once it knows all of them: until then it
// would refuse points, and they would count for a full disk.
func (x *index) load(ctx context.Context) error {
	if err := x.o.Local.Replayed(ctx); err != nil {
		return err
	}
	x.refresh()
	err := x.o.Local.EachSeries(ctx, func(info buckets.Info, id metric.SeriesID, key []byte) bool {
		if b := x.bucket(info.ID); b != nil && !x.isPrivate(info.Name) {
			x.add(id, b, bytes.Clone(key))
		}
		return true
	})
	x.o.Local.Incarnations(func(bucket uint64, id metric.SeriesID, incarnation uint64) bool {
		if b := x.bucket(bucket); b != nil && !x.isPrivate(b.info.Name) {
			x.raise(id, bucket, incarnation)
		}
		return true
	})
	return err
}

func (x *index) isPrivate(name string) bool { return x.o.Private != nil && x.o.Private(name) }

func (x *index) partition(id metric.SeriesID) *partition { return x.partitionAt(x.o.Partition(id)) }

func (x *index) partitionAt(number int) *partition {
	p := x.partitions[number]
	if p == nil {
		p = &partition{lives: make(map[metric.SeriesID]life)}
		x.mu.Lock()
		x.partitions[number] = p
		x.mu.Unlock()
	}
	return p
}

// shareOf returns the share that a series of a bucket is in.
func (x *index) shareOf(id metric.SeriesID, b *bucket) *share {
	return x.share(replication.Share{Partition: x.o.Partition(id), Copies: b.n})
}

func (x *index) share(of replication.Share) *share {
	sh := x.shares[of]
	if sh == nil {
		sh = &share{}
		x.shares[of] = sh
	}
	return sh
}

// bucket returns a bucket that is there.
func (x *index) bucket(id uint64) *bucket {
	b := x.buckets[id]
	if b == nil {
		x.refresh() // it may be new
		b = x.buckets[id]
	}
	return b
}

// add adds a series that is not there. What it has is not known, until somebody says so.
func (x *index) add(id metric.SeriesID, b *bucket, key []byte) *series {
	s := &series{id: id, bucket: b, share: x.shareOf(id, b), key: key}
	x.mu.Lock()
	x.series[id] = s
	x.mu.Unlock()
	s.share.add(s)
	return s
}

// find returns a series, nil if it is not here. Changes have series in one order again and again,
// so what was found behind the last one is looked at first.
func (x *index) find(id metric.SeriesID) *series {
	if last := x.last; last != nil {
		if s := last.next; s != nil && s.id == id && !s.gone {
			x.last = s
			return s
		}
	}
	s := x.series[id]
	if s == nil {
		return nil
	}
	if x.last != nil {
		x.last.next = s
	}
	x.last = s
	return s
}

func (sh *share) add(s *series) {
	sh.unsorted = sh.unsorted || len(sh.list) > 0 && compareIDs(sh.list[len(sh.list)-1].id, s.id) > 0
	sh.list = append(sh.list, s)
}

func compareIDs(a, b metric.SeriesID) int { return bytes.Compare(a[:], b[:]) }

// remove lets series go: nothing of them is here any more.
func (x *index) remove(sh *share, gone func(*series) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	sh.list = slices.DeleteFunc(sh.list, func(s *series) bool {
		if !gone(s) {
			return false
		}
		sh.digests.dropSeries(x, s)
		delete(x.series, s.id)
		s.gone, s.next = true, nil
		return true
	})
}

// renumber moves the series of a bucket to the shares of another n: of two creations on two sides
// of a split the first one counts, which may become known late.
func (x *index) renumber(b *bucket, n int) {
	if b.n == n {
		return
	}
	b.n = n
	for _, sh := range slices.Collect(maps.Values(x.shares)) {
		var moved []*series
		sh.list = slices.DeleteFunc(sh.list, func(s *series) bool {
			if s.bucket != b {
				return false
			}
			moved = append(moved, s)
			return true
		})
		for _, s := range moved {
			s.share, s.dirty = x.shareOf(s.id, b), 0
			s.share.add(s)
			sh.digests.forget()
			s.share.digests.forget()
		}
	}
}

// sorted returns the series of a share in ascending order.
func (sh *share) sorted() []*series {
	if sh.unsorted {
		slices.SortFunc(sh.list, func(a, b *series) int { return compareIDs(a.id, b.id) })
		sh.unsorted = false
	}
	return sh.list
}

// raise notes that a series was deleted.
func (x *index) raise(id metric.SeriesID, bucket, incarnation uint64) {
	p := x.partition(id)
	if incarnation <= p.lives[id].incarnation {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	before := len(p.lives)
	x.raised++
	p.lives[id], p.deletions = life{bucket, incarnation}, nil
	x.lives += len(p.lives) - before
}

// forgetEvery is how often it is looked which deletions are remembered no more.
const forgetEvery = time.Hour

// forget lets the deletions up to a clock go that the store has forgotten. One that was told again
// would delete what others have of the series since.
func (x *index) forget(upTo uint64) {
	remembered := make(map[metric.SeriesID]bool)
	x.o.Local.Incarnations(func(_ uint64, id metric.SeriesID, incarnation uint64) bool {
		if incarnation <= upTo {
			remembered[id] = true
		}
		return true
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.partitions {
		for id, l := range p.lives {
			if l.incarnation <= upTo && !remembered[id] {
				delete(p.lives, id)
				x.raised++
				p.deletions = nil
				x.lives--
			}
		}
	}
}

// name returns the bucket and the key of a series that is here; of one that was deleted the bucket
// and false. It may be called concurrently.
func (x *index) name(id metric.SeriesID) (bucket uint64, key []byte, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if s := x.series[id]; s != nil {
		return s.bucket.id, s.key, true
	}
	if p := x.partitions[x.o.Partition(id)]; p != nil {
		bucket = p.lives[id].bucket
	}
	return bucket, nil, false
}

// refresh brings the index up to date with the buckets of the store and the time.
func (x *index) refresh() {
	there := make(map[uint64]bool)
	now := x.o.Now()
	for _, info := range x.o.Local.Buckets() {
		there[info.ID] = true
		b := x.buckets[info.ID]
		if b == nil {
			b = &bucket{id: info.ID}
			x.buckets[info.ID] = b
		}
		b.info = info
		if x.o.Own != nil {
			x.renumber(b, x.o.Own(info.ID))
		}
		if edge := edgeOf(&info, now); edge != b.edge {
			x.moveEdge(b, edge)
		}
	}
	for id, b := range x.buckets {
		if !there[id] {
			b.gone = true
			delete(x.buckets, id)
			for _, sh := range x.shares {
				x.remove(sh, func(s *series) bool { return s.bucket == b })
			}
		}
	}
	if now.Sub(x.forgotten) >= forgetEvery {
		x.forgotten = now
		x.forget(incarnation.ExpiredUpTo(now))
	}
	if _, count := x.o.Local.Damage(); count != x.damage {
		x.damage = count
		for _, sh := range x.shares {
			sh.digests.forget()
		}
	}
}

// oldest returns the first slot of a bucket that lives.
func oldest(info *buckets.Info, now time.Time) int64 {
	if info.TTL == 0 {
		return 0
	}
	return max(now.UnixMilli()/info.Resolution-info.TTL, 0)
}

// edgeOf returns the first chunk of a bucket that is compared with other nodes: one that does not
// begin to expire before the next chunk is due. Nodes whose clocks differ by less agree on it
// but for a moment.
func edgeOf(info *buckets.Info, now time.Time) int64 {
	if first := oldest(info, now); first > 0 {
		return (first+chunk.Slots-1)/chunk.Slots + 1
	}
	return 0
}

// moveEdge lets go of the digests of windows in which chunks have expired, or live again.
func (x *index) moveEdge(b *bucket, edge int64) {
	first, last := min(b.edge, edge)/chunksPerWindow, max(b.edge, edge)/chunksPerWindow
	b.edge = edge
	for _, sh := range x.shares {
		if sh.digests.drop(x, first, last); !sh.digests.scanned {
			sh.digests.forget()
		}
	}
}

// bounds returns the slots outside of which a series has no points.
func (x *index) bounds(s *series) (from, past int64, err error) {
	if !s.known {
		from, past, err := x.o.Local.Series(s.bucket.info, s.key).Extent(context.Background(), 0,
			buckets.MaxSlot)
		if err != nil {
			return 0, math.MaxInt64, err
		}
		s.from, s.past, s.known = from, past, true
	}
	return s.from, s.past, nil
}

// noteWrite notes that slots of a series may hold points.
func (x *index) noteWrite(s *series, from, past int64) {
	if s.from >= s.past {
		s.from, s.past = from, past
	}
	s.from, s.past = min(s.from, from), max(s.past, past)
}
