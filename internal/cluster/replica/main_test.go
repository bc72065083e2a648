package replica

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"dalmatiner/internal/cluster/message"
	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
)

// An Open of pebble that fails leaves one goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction(
			"github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

// fataler is what *testing.T and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// The nodes of the tests have this time, and partitions of the top bit of a series.
const (
	today      = 1_500_000_480 // s, a multiple of the slots of a chunk
	partitions = 4
)

func partitionOf(id metric.SeriesID) int { return int(id[0] >> 6) }

// node is a store with its replica, on a disk that can crash.
type node struct {
	fs    *vfs.MemFS
	now   *atomic.Int64 // s
	names *names.Registry
	store *store.Store
	*Replica
	copies int
	change func(*Options)
}

// newNode starts a node on an empty disk.
func newNode(t fataler, change func(*Options)) *node {
	t.Helper()
	n := &node{fs: vfs.NewCrashableMem(), now: new(atomic.Int64), copies: 3, change: change}
	n.now.Store(today)
	n.start(t)
	return n
}

func (n *node) time() time.Time { return time.Unix(n.now.Load(), 0) }

// start starts the node on what its disk has.
func (n *node) start(t fataler) {
	t.Helper()
	o := store.DefaultOptions("/data")
	o.FS, o.MinFree, o.Now, o.WALSync, o.BackgroundMerge = n.fs, 0, n.time, wal.Always, false
	s, err := store.Open(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	n.store = s
	var r atomic.Pointer[Replica]
	began := time.Now()
	n.names = names.New(func(id metric.SeriesID) (uint64, []byte, bool) {
		if r := r.Load(); r != nil {
			return r.Name(id)
		}
		return 0, nil, false
	}, 1<<20, func() int64 { return int64(time.Since(began)) })
	options := Options{FS: n.fs, Dir: "/data/cluster", Local: s, Points: s.Intake(), Names: n.names,
		Codec:     message.NewChanges(n.names),
		Partition: partitionOf, Copies: func() int {
			return n.copies
		}, Now: n.time, MaxHintBytes: 1 << 20}
	if n.change != nil {
		n.change(&options)
	}
	if n.Replica, err = Open(options); err != nil {
		t.Fatalf("%v", err)
	}
	r.Store(n.Replica)
}

// stop closes the node.
func (n *node) stop(t fataler) {
	t.Helper()
	if err := n.Close(); err != nil {
		t.Fatalf("closing the replica: %v", err)
	}
	if err := n.store.Close(); err != nil {
		t.Fatalf("closing the store: %v", err)
	}
}

// crash makes the node one whose disk has lost a part of what was not synced, and starts it.
func (n *node) crash(t fataler, how vfs.CrashCloneCfg) {
	t.Helper()
	disk := n.fs.CrashClone(how)
	n.stop(t)
	n.fs = disk
	n.start(t)
}

// bucket creates a bucket.
func (n *node) bucket(t fataler, name string, timestamps bool) buckets.Info {
	t.Helper()
	info, err := n.store.CreateBucket(buckets.Info{Name: name, Resolution: 1000, PPF: 3600,
		HPTS: timestamps})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return info
}

// series returns the id of a series, and makes its name known.
func (n *node) series(info buckets.Info, i int) metric.SeriesID {
	key, err := metric.Key("series", fmt.Sprint(i))
	if err != nil {
		panic(err)
	}
	id := info.ValueID(metric.Series(info.ID, key))
	n.names.Note(id, info.ID, key)
	return id
}

// durable waits until everything is on disk.
func (n *node) durable(t fataler, at replication.Position) {
	t.Helper()
	if err := n.Durable(context.Background(), at); err != nil {
		t.Fatalf("%v", err)
	}
}

// row returns a point of a bucket without timestamps.
func row(id metric.SeriesID, slot uint64, value int64) replication.Row {
	return replication.Row{Series: id, Slot: slot,
		Value: replication.Value{Word: point.FromInt(value)}}
}

// key returns the key of a batch.
func key(number uint64, partition int) replication.Key {
	return replication.Key{
		Batch:     replication.BatchID{Coordinator: ring.ID{1}, Boot: 1, Number: number},
		Partition: partition, For: ring.ID{2}}
}

// waitFor waits for a condition, with a deadline.
func waitFor(is func() bool) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !is(); <-tick.C {
		if time.Now().After(deadline) {
			return errors.New("it does not happen")
		}
	}
	return nil
}
