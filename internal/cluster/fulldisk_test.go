package cluster

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/buckets"
)

// fullDisk is a file system without room while it says so: no file is made or grows.
type fullDisk struct {
	vfs.FS
	full *atomic.Bool
}

func (d fullDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	return d.FS.Create(name, c)
}

func (d fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.full.Load() {
		return vfs.DiskUsage{}, nil
	}
	return vfs.DiskUsage{AvailBytes: 1 << 40}, nil
}

// A member whose disk is full starts: it answers reads, passes writes on to the others and keeps
// the connections. When there is room it gets what it missed, by itself.
func TestAMemberStartsOnAFullDisk(t *testing.T) {
	var full atomic.Bool
	nodes := startNodes(t, 3, func(o *Options) {
		o.MinFree, o.Pace.Timeout = 1<<20, 2*time.Second
		if o.Name == "n2" {
			o.FS = fullDisk{o.FS, &full}
		}
	})
	slot := base()
	nodes[0].write("b", 0, 30, slot, 1)
	awaitEverywhere(t, nodes, "b", 0, 30, slot, 1)
	if err := nodes[0].create("gone"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the bucket is everywhere", func() bool { return nodes[2].hasBucket("gone") })
	lost := nodes[2].c.Self()
	nodes[2].end()
	awaitDown(t, lost, nodes[:2]...)
	// what it keeps of the buckets changes
	if err := nodes[0].c.Store().DeleteBucket("gone"); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	nodes[2].start()
	agree(t, nodes...)
	nodes[2].awaitValue("b", 0, 30, slot, 1)
	if got := nodes[2].write("b", 0, 30, slot+1, 2); got.Accepted != 30 {
		t.Errorf("through the node with the full disk: %+v", got)
	}
	if _, ok := nodes[2].local("b", 0, slot+1); ok {
		t.Error("it has taken copies that its log cannot name")
	}
	full.Store(false)
	awaitEverywhere(t, nodes, "b", 0, 30, slot+1, 2)
	waitFor(t, "the bucket is deleted here, too", func() bool { return !nodes[2].hasBucket("gone") })
	nodes[2].kill()
	awaitDown(t, lost, nodes[:2]...)
	nodes[2].start()
	agree(t, nodes...)
	nodes[2].awaitValue("b", 0, 30, slot+1, 2)
}

// What the store has no room for is brought there later, though nothing new is heard.
func TestBucketsThatFoundNoRoom(t *testing.T) {
	nodes := startNodes(t, 1, nil)
	c := nodes[0].c.buckets
	local := &noRoom{localBuckets: c.local}
	local.full.Store(true)
	c.mu.Lock()
	c.local = local
	c.mu.Unlock()
	news := replication.NewBuckets()
	news.Create(replication.Bucket{Name: "b", Resolution: 1000, PPF: 1000}, 1)
	if err := c.learn(news); err == nil || nodes[0].hasBucket("b") {
		t.Fatalf("without room: %v", err)
	}
	local.full.Store(false)
	if err := c.learn(news); err != nil || !nodes[0].hasBucket("b") {
		t.Errorf("with room, and the same news: %v", err)
	}
}

// noRoom is a store without room for buckets.
type noRoom struct {
	localBuckets
	full atomic.Bool
}

func (n *noRoom) AdoptBucket(info buckets.Info, deleted uint64) (buckets.Info, error) {
	if n.full.Load() {
		return buckets.Info{}, syscall.ENOSPC
	}
	return n.localBuckets.AdoptBucket(info, deleted)
}
