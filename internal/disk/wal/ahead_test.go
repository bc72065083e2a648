package wal

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Files of many blocks are read ahead; damage in one begins that anew, and an end
// in the middle leaves no goroutine.
func TestFilesOfManyBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	fs := vfs.NewMem()
	l := open(t, fs, func(o *Options) { o.FileSize, o.MaxRecord = 4*aheadBlock, aheadBlock/3 })
	var want []entry
	for size := 0; size < 13*aheadBlock; {
		n := 1 + r.IntN(aheadBlock/4)
		want = append(want, add(t, l, strings.Repeat(string(rune('a'+len(want)%26)), n))...)
		size += n
	}
	closeLog(t, l)
	again := open(t, fs)
	got, _ := replayAll(t, again, 0)
	wantEntries(t, got, want)
	stop, n := errors.New("stop"), 0
	err := again.ReplayAgain(0, func(LSN, []byte) error {
		if n++; n == len(want)/3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatalf("a reading that was stopped: %v", err)
	}
	closeLog(t, again)
	bad := len(want) / 8 // in the first file
	f, err := fs.OpenReadWrite(fs.PathJoin(dir, walFiles(t, fs)[0]), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{'!'}, headerSize+int64(want[bad].lsn-1)+frameSize); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again = open(t, fs)
	got, report := replayAll(t, again, 0)
	wantEntries(t, got, append(want[:bad:bad], want[bad+1:]...))
	if len(report.Damaged) != 1 {
		t.Errorf("damage: %v", report.Damaged)
	}
	closeLog(t, again)
}
