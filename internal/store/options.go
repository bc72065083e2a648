package store

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/replay"
)

// Options configures a store. DefaultOptions has every default; only Dir is
// required.
type Options struct {
	FS     vfs.FS
	Dir    string
	Logger *slog.Logger
	Now    func() time.Time

	UnknownBuckets UnknownBuckets

	CachePoints int           // wanted height of a head block
	HeadGrace   time.Duration // a block closes after this long without writes …
	HeadMaxAge  time.Duration // … or this long after its first
	MaxFuture   time.Duration // slots further ahead are refused

	WALSync     wal.SyncMode
	WALInterval time.Duration
	WALMaxSize  int64 // beyond it the oldest blocks are closed and flushed

	FlushBytes    int64         // encoded bytes that cause a flush
	FlushInterval time.Duration // the longest time without a flush
	LateMemory    int64         // late points that cause a flush
	MinFree       int64         // with less free disk, points are refused
	MaxOpenFiles  int           // of segments; those read last stay open
	// bytes of verified blocks of segments that are kept for reads; 0 keeps none
	BlockCache int64

	// Memory is the budget of the process; nil counts and limits nothing. Flushes,
	// late points and the blocks of BlockCache stay below a share of it whatever
	// FlushBytes, LateMemory and BlockCache say.
	Memory *memory.Budget

	// SharedTags says that several nodes have the tags in common, see tagstore.Store.Share.
	SharedTags bool

	BackgroundMerge bool // merge after flushes; without it only Merge does

	// OnFatal is called once when the store can no longer keep its promises:
	// a failed write or fsync. The process should exit.
	OnFatal func(error)

	// FlushTook is called after every flush with its duration.
	FlushTook func(time.Duration)

	hooks
}

// UnknownBuckets says what becomes of points for a bucket that is not there.
type UnknownBuckets struct {
	Create     bool  // the first stream creates it, with
	Resolution int64 // ms per point,
	PPF        int64 // points per file,
	TTL        int64 // in points; 0 keeps for ever
}

// hooks are for tests.
type hooks struct {
	// flushStep is called after every numbered step of a flush, and after the commit of a
	// merge; tests crash there.
	flushStep func(step int)

	// holdReplay keeps points of the log out of the head, but for those that somebody
	// wants, until it is closed.
	holdReplay <-chan struct{}

	maxTombstones int64 // see deletion.DefaultMax; tests have less
	deleteSlice   int   // see deletion.DefaultSlice; tests have less

	maxMergedFile int64 // of an output of a merge, before it is cut; tests have less

	mergeTags int64 // see tagstore.Options.MergeFrom; tests have less

	// maxPositions is what a start takes at most for the positions of records of
	// the log that it has not yet brought into memory; tests have less.
	maxPositions int64
}

// DefaultOptions returns the defaults for a data directory.
func DefaultOptions(dir string) Options {
	return Options{
		FS:              vfs.Default,
		Dir:             dir,
		Logger:          slog.New(slog.DiscardHandler),
		Now:             time.Now,
		UnknownBuckets:  UnknownBuckets{Create: true, Resolution: 1000, PPF: 604800},
		CachePoints:     60,
		HeadGrace:       time.Minute,
		HeadMaxAge:      10 * time.Minute,
		MaxFuture:       10 * time.Minute,
		WALSync:         wal.Interval,
		WALInterval:     time.Second,
		WALMaxSize:      1 << 30,
		FlushBytes:      64 << 20,
		FlushInterval:   12 * time.Minute,
		LateMemory:      64 << 20,
		MinFree:         1 << 30,
		MaxOpenFiles:    1024,
		BlockCache:      64 << 20,
		BackgroundMerge: true,
		OnFatal:         func(error) {},
		FlushTook:       func(time.Duration) {},
		hooks: hooks{
			maxPositions:  replay.MaxPositions,
			maxMergedFile: compaction.DefaultMaxFile,
			maxTombstones: deletion.DefaultMax,
			deleteSlice:   deletion.DefaultSlice,
			flushStep:     func(int) {},
		},
	}
}

func (o *Options) validate() error {
	switch {
	case o.Dir == "":
		return fmt.Errorf("the data directory has no name")
	case o.CachePoints < 1 || o.CachePoints > chunk.Slots:
		return fmt.Errorf("cache_points %d: want 1 to %d", o.CachePoints, chunk.Slots)
	case o.FlushBytes < 1 || o.WALMaxSize < 1 || o.LateMemory < 1:
		return fmt.Errorf("flush.bytes, wal.max_size and late.memory must be positive")
	case o.BlockCache < 0:
		return fmt.Errorf("storage.block_cache %d: want 0 or more bytes", o.BlockCache)
	}
	return nil
}

// maxBlockSpan is the longest time a head block covers: it pins the log for
// that long.
const maxBlockSpan = time.Hour

// blockHeight returns the height of a bucket's head blocks: at least
// CachePoints and a minute, at most an hour, and a divisor of a chunk, so that
// no block reaches into two chunks.
func (o *Options) blockHeight(resolution int64) int {
	want := max(int64(o.CachePoints), (time.Minute.Milliseconds()+resolution-1)/resolution)
	height := 1
	for h := 1; h <= chunk.Slots; h++ {
		if chunk.Slots%h != 0 {
			continue
		}
		if int64(h)*resolution > maxBlockSpan.Milliseconds() {
			break
		}
		if height = h; int64(h) >= want {
			break
		}
	}
	return height
}
