// Package replica is the data of a node of a cluster as the protocol between nodes sees it: it
// implements replication.Store on the store of the node, and has a log of its own for what that
// does not keep: hints for other nodes, and the keys of batches. DESIGN.md says what is on disk and
// in which order it gets there.
package replica

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write"
)

// Local is what a replica needs of the store of its node. A *store.Store is one.
type Local interface {
	Buckets() []buckets.Info
	Series(info buckets.Info, key []byte) store.Series
	Replayed(ctx context.Context) error
	EachSeries(ctx context.Context,
		fn func(info buckets.Info, id metric.SeriesID, key []byte) bool) error
	DeleteSeriesAt(ctx context.Context, bucket uint64, list []deletion.At) (write.Token, error)
	DropSeries(bucket uint64, ids []metric.SeriesID) error
	Expect(id metric.SeriesID) bool
	Adopt(ctx context.Context, list []flush.Adopted) error
	Incarnations(fn func(bucket uint64, id metric.SeriesID, incarnation uint64) bool)
	CountPoints(bucket uint64, c *account.Counts) (write.Token, error)
	Damage() (names []string, count uint64)
}

// Points is the way of points into that store. Reports of a commit come inside of it, and the
// tokens of all streams, and those of Local, are of one order. The intake of a store is one.
type Points interface {
	Open(bucket buckets.Info, how write.Options) (write.Stream, error)
	WaitDurable(ctx context.Context, t write.Token) error
}

// Names says which bucket and metric a series is. A *names.Registry is one.
type Names interface {
	Lookup(id metric.SeriesID) (bucket uint64, key []byte, ok bool)
	Bucket(id metric.SeriesID) (bucket uint64, ok bool)
}

// Codec is how a change is written into the log, with the names of its series.
type Codec interface {
	Append(dst []byte, c replication.Change) ([]byte, error)
	// Read returns a change, and says the name of each of its series to the registry of names.
	Read(src []byte) (replication.Change, error)
}

// Options are those of a replica. Logger, OnFailure, Own, Known, Private, MaxDigests, MinFree and
// LogFile may be left out.
type Options struct {
	FS     vfs.FS
	Dir    string // the directory "cluster" of the data directory
	Local  Local
	Points Points
	Names  Names
	Codec  Codec

	Partition func(metric.SeriesID) int // of a series, for all time
	Copies    func() int                // n of the ring
	// Own returns the n of a bucket that has one of its own, else 0; nil: none has.
	Own func(bucket uint64) int
	// Known reports whether the cluster has a bucket. Points of one that it has and the store has not
	// are not taken; those of all others have gone with their bucket.
	Known func(bucket uint64) bool
	// Private are buckets that belong to this node alone: other nodes have no copies of them.
	Private func(name string) bool
	Now     func() time.Time
	Logger  *slog.Logger
	// OnFailure is called once when the log has failed: nothing more can be promised until a restart.
	OnFailure func(error)

	MaxHintBytes int64 // of hints that are kept; beyond them they are refused
	MaxDigests   int   // digests of single series that are kept in memory; 1 Mi
	MinFree      int64 // bytes that stay free on the disk
	LogFile      int64 // bytes of a file of the log; 8 MiB
}

// ErrUnnamed is wrapped by the error of a change with a series that nobody has given a name.
var ErrUnnamed = errors.New("a series without a name")

// Replica is the data of this node. What it has of replication.Store is called one at a time; the
// other methods may be called concurrently with it.
type Replica struct {
	journal
	index   index
	streams map[uint64]*stream // by bucket
	writing changeWriter
	copied  copyMemory

	adoptQueue
	prepared preparedGroups

	batch       uint64            // number of the last batch that this node coordinates
	coordinated map[uint64]uint64 // buckets of batches; those without points are not here
}

// journal is the log of the replica, and what it holds.
type journal struct {
	o          *Options
	log        *wal.Log
	boot       uint64
	bootLogged bool
	slack      int64 // bytes of the log beside what lives in it
	compacting sync.Mutex

	mu sync.Mutex // guards what follows
	positions
	keys  keys
	hints hints
	stats Stats
}

// Stats are what a replica holds, and what it has left out since it was opened.
type Stats struct {
	Hints     int
	HintBytes int64 // in memory, about as much as in the log
	Keys      int
	LogBytes  int64
	Expired   int64 // points below the lifetime of their bucket
	Gone      int64 // points of buckets that were deleted
	Refused   int64 // points that the store never takes
	Homeless  int64 // points that were not taken, because the store has not the bucket
	Unread    int64 // reads of what a slot held that failed
	Lost      int   // records of the log that damage took
}

// Stats returns the state.
func (j *journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Hints, s.HintBytes, s.Keys, s.LogBytes = len(j.hints.list), j.hints.bytes, j.keys.count,
		j.log.Size()
	return s
}

// Name returns the bucket and the key of a series that is here or in a hint; of one that was
// deleted only the bucket, and false. It is what a registry of names falls back to.
func (r *Replica) Name(id metric.SeriesID) (bucket uint64, key []byte, ok bool) {
	bucket, key, ok = r.index.name(id)
	if !ok {
		if of, k, named := r.hints.names.name(id); named || bucket == 0 {
			bucket, key, ok = of, k, named
		}
	}
	return bucket, key, ok
}

// Boot returns the number of this start. It is higher than those of all starts before.
func (j *journal) Boot() uint64 { return j.boot }

// Close makes everything durable and ends the replica. The store is closed behind it.
func (r *Replica) Close() error {
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	err := r.Durable(context.Background(), last)
	for _, s := range r.streams {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, r.log.Close())
}

var _ replication.Store = (*Replica)(nil)
