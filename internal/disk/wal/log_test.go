package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestSyncModeText(t *testing.T) {
	for _, m := range []SyncMode{Always, Interval, Off} {
		if got, err := ParseSyncMode(m.String()); err != nil || got != m {
			t.Errorf("ParseSyncMode(%q) = %v, %v", m, got, err)
		}
	}
	if _, err := ParseSyncMode("never"); err == nil || !strings.Contains(err.Error(), `"never"`) {
		t.Errorf("never: %v, want an error that names it", err)
	}
}

func TestAppendReplay(t *testing.T) {
	fs := vfs.NewMem()
	l := open(t, fs)
	if end := l.End(); end != 1 {
		t.Errorf("first LSN %d, want 1", end)
	}
	want := add(t, l, numberedRecords(40, 60)...)
	if want[0].lsn != 1+markSize || want[1].lsn != 1+markSize+frameSize+60 {
		t.Errorf("LSNs %d, %d: want those behind the mark and of the second frame", want[0].lsn,
			want[1].lsn)
	}
	lsn, err := l.Append([]byte("in "), nil, []byte("two parts"))
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, entry{lsn, "in two parts"})
	end := l.End()
	closeLog(t, l)
	if n := len(walFiles(t, fs)); n < 4 {
		t.Fatalf("%d files, want several of 512 bytes", n)
	}
	for _, name := range walFiles(t, fs) {
		// the padding has a file of its own
		if size := len(readFile(t, fs, name)); size > 512 && size < copyDistance {
			t.Errorf("%s has %d bytes, want at most the 512 of Options.FileSize", name, size)
		}
	}

	l = open(t, fs)
	got, report := replayAll(t, l, 0)
	wantEntries(t, got, want)
	if report.Records != 41 || report.Bytes != 40*60+12 ||
		len(report.Torn)+len(report.Damaged)+len(report.Missing) != 0 {
		t.Errorf("report %+v", report)
	}
	if l.End() < end || l.durableLSN() != l.End() {
		t.Errorf("after open: end %d (was %d), durable %d", l.End(), end, l.durableLSN())
	}
	for i, e := range want {
		got, report := replayAll(t, l, e.lsn)
		wantEntries(t, got, want[i:])
		if len(report.Missing) != 0 {
			t.Errorf("from %d: missing %v", e.lsn, report.Missing)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	l := open(t, vfs.NewMem())
	f := func(rec []byte, ok bool) {
		t.Helper()
		_, err := l.Append(rec)
		if ok != (err == nil) {
			t.Errorf("append of %d bytes: %v", len(rec), err)
		}
		if err != nil && !strings.Contains(err.Error(), "1024") {
			t.Errorf("error %q does not name the limit", err)
		}
	}
	f(nil, false)
	f(make([]byte, 1), true)
	f(make([]byte, 1024), true)
	f(make([]byte, 1025), false)
}

func TestRecordLargerThanFile(t *testing.T) {
	fs := vfs.NewMem()
	l := open(t, fs)
	want := add(t, l, "a", strings.Repeat("b", 1000), "c")
	closeLog(t, l)
	got, _ := replayAll(t, open(t, fs), 0)
	wantEntries(t, got, want)
}

func TestReplayAfterAppendIsRefused(t *testing.T) {
	l := open(t, vfs.NewMem())
	add(t, l, "a")
	if _, err := l.Replay(0, func(LSN, []byte) error { return nil }); err == nil {
		t.Error("no error")
	}
}

func TestReplayStopsAtError(t *testing.T) {
	fs := vfs.NewMem()
	l := open(t, fs)
	add(t, l, "a", "b")
	closeLog(t, l)
	stop := errors.New("stop")
	n := 0
	_, err := open(t, fs).Replay(0, func(LSN, []byte) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("%d records, error %v", n, err)
	}
}

func TestClosed(t *testing.T) {
	l := open(t, vfs.NewMem(), mode(Off))
	want := add(t, l, "a")
	closeLog(t, l)
	closeLog(t, l)
	if _, err := l.Append([]byte("b")); !errors.Is(err, ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if err := l.Sync(); err != nil {
		t.Errorf("sync of what Close has synced: %v", err)
	}
	if err := l.WaitDurable(context.Background(), want[0].lsn); err != nil {
		t.Errorf("wait for what Close has synced: %v", err)
	}
}

func TestMinLSN(t *testing.T) {
	fs := vfs.NewMem()
	l := open(t, fs, func(o *Options) { o.MinLSN = 1000 })
	want := add(t, l, "a")
	if want[0].lsn != 1000+markSize {
		t.Errorf("LSN %d, want 1000 and a mark", want[0].lsn)
	}
	closeLog(t, l)
	got, report := replayAll(t, open(t, fs), 1000)
	wantEntries(t, got, want)
	if len(report.Missing) != 0 {
		t.Errorf("missing %v", report.Missing)
	}
}

func TestRemoveBelow(t *testing.T) {
	fs := vfs.NewMem()
	l := open(t, fs)
	want := add(t, l, numberedRecords(60, 60)...)
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	size, files := l.Size(), l.Stats().Files
	if err := l.RemoveBelow(want[30].lsn); err != nil {
		t.Fatal(err)
	}
	if l.Size() >= size || l.Stats().Files >= files || l.Size() < int64(l.End()-want[30].lsn) {
		t.Errorf("size %d of %d, files %d of %d", l.Size(), size, l.Stats().Files, files)
	}
	closeLog(t, l)

	l = open(t, fs)
	got, report := replayAll(t, l, want[30].lsn)
	wantEntries(t, got, want[30:])
	if len(report.Missing)+len(report.Damaged) != 0 {
		t.Errorf("report %+v", report)
	}
	// Nothing is left to replay, but the positions go on.
	if err := l.RemoveBelow(l.End()); err != nil {
		t.Fatal(err)
	}
	end := l.End()
	closeLog(t, l)
	l = open(t, fs)
	if n := len(walFiles(t, fs)); n != 1 || l.End() < end {
		t.Errorf("%d files, end %d: want 1 file and at least %d", n, l.End(), end)
	}
	again := add(t, l, "again")
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := l.RemoveBelow(again[0].lsn); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	got, report = replayAll(t, open(t, fs), again[0].lsn)
	wantEntries(t, got, again)
	if len(report.Missing)+len(report.Damaged)+len(report.Torn) != 0 {
		t.Errorf("report %+v", report)
	}
}

// TestConcurrentAppends is for the race detector, too: the order of replay is
// that of the LSNs, and each goroutine's records keep their order.
func TestConcurrentAppends(t *testing.T) {
	const workers, each = 8, 300
	fs := vfs.NewMem()
	l := open(t, fs, mode(Always), func(o *Options) { o.FileSize = 8 << 10 })
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				lsn, err := l.Append(fmt.Appendf(nil, "%d", w), fmt.Appendf(nil, " %d", i))
				if err == nil && i%50 == 0 {
					err = l.WaitDurable(context.Background(), lsn)
				}
				if err != nil {
					t.Error(err)
					return
				}
				_, _, _ = l.Size(), l.Stats(), l.durableLSN()
			}
		})
	}
	wg.Wait()
	closeLog(t, l)
	next, total := make([]int, workers), 0
	_, err := open(t, fs).Replay(0, func(_ LSN, rec []byte) error {
		var w, i int
		if _, err := fmt.Fscan(bytes.NewReader(rec), &w, &i); err != nil || next[w] != i {
			return fmt.Errorf("record %q: want number %d (%v)", rec, next[w], err)
		}
		next[w]++
		total++
		return nil
	})
	if err != nil || total != workers*each {
		t.Errorf("%d records, want %d: %v", total, workers*each, err)
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	l := open(t, vfs.NewMem(), mode(Off), func(o *Options) {
		o.BufferSize, o.FileSize = 4<<20, 64<<20
	})
	a, b := make([]byte, 500), make([]byte, 500)
	n := testing.AllocsPerRun(1000, func() {
		if _, err := l.Append(a, b); err != nil {
			t.Fatal(err)
		}
	})
	if n >= 1 {
		t.Errorf("%v allocations per append", n)
	}
}
