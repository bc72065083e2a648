package diskfs

import (
	"syscall"
	"testing"
)

// file makes a file in the root directory.
func file(d *Disk, name string) *inode {
	n := d.make(false, name)
	n.links = 1
	d.enter(d.inodes[rootID], name, n.id)
	return n
}

func TestAPowerCutKeepsWhatWasSynced(t *testing.T) {
	for seed := range uint64(200) {
		d := New(seed, 1<<20)
		a, b := file(d, "a"), file(d, "b")
		_ = d.write(a, 0, []byte("durable"))
		d.sync(a)
		_ = d.write(a, 0, []byte("maybe!!"))
		_ = d.write(b, 0, []byte("unsynced"))
		d.syncDir(d.inodes[rootID])
		file(d, "c")
		d.CutPower()
		root := d.inodes[rootID]
		n := d.inodes[root.entries["a"]]
		if n == nil || root.entries["b"] == 0 {
			t.Fatalf("seed %d: a synced name is gone", seed)
		}
		if s := string(n.data); s != "durable" && s != "maybe!!" {
			t.Fatalf("seed %d: a is %q", seed, s)
		}
	}
}

func TestAPowerCutLosesWhatWasNot(t *testing.T) {
	names, bytes := map[bool]int{}, map[string]int{}
	for seed := range uint64(200) {
		d := New(seed, 1<<20)
		a := file(d, "a")
		d.syncDir(d.inodes[rootID])
		_ = d.write(a, 0, []byte("unsynced"))
		d.move(d.inodes[rootID], d.inodes[rootID], "a", "b")
		d.CutPower()
		root := d.inodes[rootID]
		if (root.entries["a"] == 0) == (root.entries["b"] == 0) {
			t.Fatalf("seed %d: a rename is no one step: %v", seed, root.entries)
		}
		names[root.entries["b"] != 0]++
		bytes[string(d.inodes[root.entries["a"]+root.entries["b"]].data)]++
	}
	if len(names) != 2 || len(bytes) != 2 {
		t.Errorf("renames kept: %v, bytes kept: %v; want both of each", names, bytes)
	}
}

func TestAFailedSyncLosesTheBytesForGood(t *testing.T) {
	d := New(1, 1<<20)
	a := file(d, "a")
	d.syncDir(d.inodes[rootID])
	_ = d.write(a, 0, []byte("gone"))
	d.failedSync(a)
	d.sync(a)
	d.CutPower()
	if n := d.inodes[d.inodes[rootID].entries["a"]]; len(n.data) != 0 {
		t.Errorf("a has %q", n.data)
	}
}

func TestAFullDisk(t *testing.T) {
	d := New(1, 10)
	a, b := file(d, "a"), file(d, "b")
	if e := d.write(a, 0, make([]byte, 8)); e != 0 {
		t.Fatal(e)
	}
	if e := d.write(b, 0, make([]byte, 3)); e != syscall.ENOSPC {
		t.Errorf("3 bytes where 2 are free: %v", e)
	}
	d.remove(d.inodes[rootID], "a")
	if e := d.write(b, 0, make([]byte, 10)); e != 0 {
		t.Errorf("10 bytes of 10 free ones: %v", e)
	}
	d.Fill(0)
	if e := d.allocate(b, 11, true); e != syscall.ENOSPC {
		t.Errorf("allocated a byte of none: %v", e)
	}
}
