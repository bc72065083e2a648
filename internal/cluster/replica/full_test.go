package replica

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// Points of a deleted bucket that come first hand are refused, by an owner and by who keeps them
// for one: the coordinator would count them as accepted. Copies are left out, as all nodes leave
// theirs out.
func TestPointsOfADeletedBucket(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(o *Options) { o.Known = func(uint64) bool { return false } })
	defer n.stop(t)
	gone := n.bucket(t, "b", false)
	gone.ID++
	change := replication.Change{Rows: []replication.Row{row(n.series(gone, 1), today, 1)}}
	if counts, _, err := n.Write(key(1, 0), change); !errors.Is(err, replication.ErrStaleBucket) {
		t.Errorf("a write: %+v, %v", counts, err)
	}
	if _, _, ok := n.PriorResult(key(1, 0)); ok {
		t.Error("the write counts as done")
	}
	if _, err := n.KeepHint(key(2, 0), replication.Hint{Number: 1, Change: change}); !errors.Is(err,
		replication.ErrStaleBucket) {
		t.Errorf("a hint: %v", err)
	}
	if _, err := n.Merge(change); err != nil {
		t.Errorf("copies: %v", err)
	}
	if s := n.Stats(); s.Gone != 1 || s.Hints != 0 {
		t.Errorf("%+v", s)
	}
}

// mayBeFull is a file system without room while it says so: it makes no files then.
type mayBeFull struct {
	vfs.FS
	full *atomic.Bool
}

func (d mayBeFull) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.full.Load() {
		return vfs.DiskUsage{}, nil
	}
	return vfs.DiskUsage{AvailBytes: 1 << 40}, nil
}

func (d mayBeFull) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	return d.FS.Create(name, c)
}

// A start on a full disk takes nothing that the log would need room for, and keeps what it found.
// With room it goes on by itself, and the log says which start that was.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	n := newNode(t, func(o *Options) { o.FS, o.MinFree = mayBeFull{o.FS, &full}, 1 })
	defer func() { n.stop(t) }()
	id := n.series(n.bucket(t, "b", false), 1)
	change := replication.Change{Rows: []replication.Row{row(id, today, 1)}}
	keep := func(number uint64) (err error) {
		k := key(number, 0)
		k.For = ring.ID{3}
		_, err = n.KeepHint(k, replication.Hint{Number: number, For: k.For, Change: change})
		return err
	}
	if err := errors.Join(keep(1), keep(2)); err != nil {
		t.Fatal(err)
	}
	n.stop(t)
	full.Store(true)
	n.start(t)
	boot := n.Boot()
	if len(n.Hints()) != 2 {
		t.Fatalf("%+v", n.Hints())
	}
	if _, _, err := n.Write(key(3, 0), change); !errors.Is(err, replication.ErrFull) {
		t.Errorf("a write: %v", err)
	}
	if err := keep(3); !errors.Is(err, replication.ErrFull) {
		t.Errorf("a hint: %v", err)
	}
	n.DropHint(1)
	n.durable(t, 0)
	full.Store(false)
	if err := keep(4); err != nil {
		t.Fatal(err)
	}
	n.stop(t)
	n.now.Store(1) // the clock was set back
	n.start(t)
	if n.Boot() <= boot {
		t.Errorf("this start is %d, the one before was %d", n.Boot(), boot)
	}
	if list := n.Hints(); len(list) != 3 || list[0].Number != 1 || list[2].Number != 4 {
		t.Errorf("%+v", list)
	}
}
