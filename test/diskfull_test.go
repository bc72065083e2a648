package test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
)

const (
	diskSize   = 80 << 20
	diskSeries = 500
	diskBucket = "disk"
)

// ownMounts is set where a test runs in a mount namespace of its own.
const ownMounts = "DDB_OWN_MOUNTS"

// inOwnMounts runs the calling test again in a mount namespace of its own, where that is permitted:
// other tests watch the mounts of this machine. It reports whether this is that run.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownMounts) != "" {
		return true
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED with a real file system, mounting is not permitted here: %v: %s", err, out)
	}
	cmd := exec.Command("unshare", "--mount", os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v",
		"-test.timeout", "8m")
	cmd.Env = append(os.Environ(), ownMounts+"=1", "DDB_BIN="+binaries)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// smallDisk mounts a file system of diskSize bytes.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("ddb-test", dir, "tmpfs", 0,
		fmt.Sprintf("size=%d", diskSize)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

// diskSender sends batches of 60 slots of all series on an acknowledged stream.
type diskSender struct {
	s                 ackStream
	slot              int64 // of the next batch
	received, refused uint64
}

// batch returns how many of its points were refused.
func (d *diskSender) batch() uint64 {
	d.s.t.Helper()
	words := make([]uint64, 60)
	for id := range uint64(diskSeries) {
		for i := range words {
			words[i] = wide(id, d.slot+int64(i))
		}
		d.s.point(key(d.s.t, "d", fmt.Sprint(id)), d.slot, words...)
	}
	d.slot += int64(len(words))
	ack := d.s.flush()
	d.received, d.refused = d.received+ack.Received, d.refused+ack.Refused
	return ack.Refused
}

// checkAccount compares the ledger with what the node answered.
func (d *diskSender) checkAccount(t *testing.T, n *node) {
	t.Helper()
	row := n.account(diskBucket)
	if row.Received != d.received || row.Refused["disk_full"] != d.refused ||
		stored(row) != d.received-d.refused {
		t.Errorf("received %d, refused %d, the account says %+v", d.received, d.refused, row)
	}
}

// TestAFullDiskAndSpaceAgain: a node whose disk fills up refuses points by name,
// answers queries, and takes points again by itself when there is space. No
// point is missing or uncounted.
func TestAFullDiskAndSpaceAgain(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	disk := smallDisk(t)
	dir, ballast := filepath.Join(disk, "data"), filepath.Join(disk, "ballast")
	write(t, ballast, strings.Repeat("x", diskSize/2))
	args := []string{
		"--set", "storage.min_free=4MB", "--set", "wal.max_size=16MB", "--set", "flush.bytes=1MB",
		"--set", "flush.interval=1s", "--set", "self_monitor=off",
	}
	n := startNode(t, dir, args...)
	from := past(20 * time.Hour)
	d := &diskSender{s: openAcked(t, n, diskBucket), slot: from}
	whole := from // up to here nothing was refused
	for d.batch() == 0 {
		whole = d.slot
	}
	rest := filepath.Join(disk, "rest")
	fill(t, rest) // others take what is left
	for range 20 {
		d.batch()
	}
	// A merge that was being written gives up, and what it wrote becomes free:
	// the others take that as well.
	eventually(t, "flushes find no space", func() bool {
		fill(t, rest)
		return flushesFail(n, 3) && n.figure("disk_full") == 1
	})
	checkWide(t, n, from, whole)
	query(t, n, fmt.Sprintf("SELECT d.1 BUCKET %s AFTER %d FOR 60s", diskBucket, from*1000))
	if code, text := httpGet(t, n, "/ready"); code != http.StatusOK {
		t.Errorf("/ready: %d, %s", code, text)
	}
	remove(t, ballast, rest)
	again := d.slot
	eventually(t, "points are taken again", func() bool {
		again = d.slot
		return d.batch() == 0
	})
	eventually(t, "a flush is made by itself", func() bool {
		return n.figure("since_flush_seconds") < 3
	})
	d.checkAccount(t, n)
	if err := d.s.Close(); err != nil {
		t.Fatal(err)
	}
	n.stop()
	if r := run(t, "ddb", "admin", "check", "--data-dir", dir); r.code != 0 {
		t.Errorf("the check: %d\n%s%s", r.code, r.out, r.errOut)
	}
	n = startNode(t, dir, args...)
	checkWide(t, n, from, whole)
	checkWide(t, n, again, d.slot)
	d.checkAccount(t, n)
	n.stop()
	t.Logf("%d points received, %d refused", d.received, d.refused)
}

// flushesFail says whether as many flushes as asked for fail, one behind another.
func flushesFail(n *node, times int) bool {
	for range times {
		if _, err := n.admin().Flush(context.Background()); err == nil {
			return false
		}
	}
	return true
}

// fill makes a file longer until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	if cerr := f.Close(); !errors.Is(err, syscall.ENOSPC) || cerr != nil {
		t.Fatal(err, cerr)
	}
}

// wide is a point that takes all of its bytes.
func wide(series uint64, slot int64) uint64 {
	return point.FromFloat(float64(int64(value(series, slot)<<8)) * 1.000000007 * float64(slot&0xffff))
}

// checkWide reads every 50th series of what was taken whole.
func checkWide(t *testing.T, n *node, from, past int64) {
	t.Helper()
	c := n.dial()
	defer func() { _ = c.Close() }()
	for id := uint64(0); id < diskSeries; id += 50 {
		for i, word := range get(t, c, diskBucket, key(t, "d", fmt.Sprint(id)), from, int(past-from)) {
			if want := wide(id, from+int64(i)); word != want {
				t.Fatalf("series %d, slot %d: %016x, sent was %016x", id, from+int64(i), word, want)
			}
		}
	}
}
