package test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dalmatiner/internal/point"
)

const (
	diskSize   = 80 << 20
	diskSeries = 500
	diskBucket = "disk"
)

// smallDisk mounts a file system of diskSize bytes, where that is permitted.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("ddb-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)); err != nil {
		t.Skipf("NOT TESTED with a real file system, mounting is not permitted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

// TestAFullDiskAndSpaceAgain: a node whose disk fills up refuses points by name,
// answers queries, and takes points again by itself when there is space. No
// point is missing or uncounted.
func TestAFullDiskAndSpaceAgain(t *testing.T) {
	disk := smallDisk(t)
	dir, ballast := filepath.Join(disk, "data"), filepath.Join(disk, "ballast")
	write(t, ballast, strings.Repeat("x", diskSize/2))
	args := []string{
		"--set", "storage.min_free=4MB", "--set", "wal.max_size=16MB", "--set", "flush.bytes=1MB",
		"--set", "flush.interval=1s", "--set", "self_monitor=off",
	}
	n := startNode(t, dir, args...)
	from := past(20 * time.Hour)
	s := openAcked(t, n, diskBucket)
	slot, received, refused := from, uint64(0), uint64(0)
	batch := func() uint64 {
		words := make([]uint64, 60)
		for id := range uint64(diskSeries) {
			for i := range words {
				words[i] = wide(id, slot+int64(i))
			}
			s.point(key(t, "d", fmt.Sprint(id)), slot, words...)
		}
		slot += int64(len(words))
		ack := s.flush()
		received, refused = received+ack.Received, refused+ack.Refused
		return ack.Refused
	}
	whole := from // up to here nothing was refused
	for batch() == 0 {
		whole = slot
	}
	filled := slot
	// Others take what is left; senders go on trying.
	rest := filepath.Join(disk, "rest")
	f, err := os.Create(rest)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	_ = f.Close() // the disk is full
	for range 20 {
		batch()
	}
	for range 3 {
		if _, err := n.admin().Flush(context.Background()); err == nil {
			t.Error("a flush found space where there is none")
		}
	}
	checkWide(t, n, from, whole)
	if code, text := httpGet(t, n, "/ready"); code != http.StatusOK {
		t.Errorf("/ready: %d, %s", code, text)
	}
	query(t, n, fmt.Sprintf("SELECT d.1 BUCKET %s AFTER %d FOR 60s", diskBucket, from*1000))
	if n.figure("disk_full") != 1 {
		t.Error("the full disk shows in no figure")
	}
	remove(t, ballast, rest)
	again := slot
	eventually(t, "points are taken again", func() bool {
		again = slot
		return batch() == 0
	})
	eventually(t, "a flush is made by itself", func() bool { return n.figure("since_flush_seconds") < 3 })
	checkWide(t, n, from, whole)
	checkWide(t, n, again, slot)
	row := n.account(diskBucket)
	if row.Received != received || row.Refused["disk_full"] != refused || stored(row) != received-refused {
		t.Errorf("received %d, refused %d, the account says %+v", received, refused, row)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	n.stop()
	if r := run(t, "ddb", "admin", "check", "--data-dir", dir); r.code != 0 {
		t.Errorf("the check: %d\n%s%s", r.code, r.out, r.errOut)
	}
	n = startNode(t, dir, args...)
	checkWide(t, n, from, whole)
	checkWide(t, n, again, slot)
	if again := n.account(diskBucket); stored(again) != stored(row) || again.Received != row.Received {
		t.Errorf("after a restart the account is %+v, it was %+v", again, row)
	}
	n.stop()
	t.Logf("%d points received, %d refused, full after %d slots of %d series", received, refused, filled-from, diskSeries)
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
