package wal

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const benchRecord = 2 << 10

func benchLog(b *testing.B, m SyncMode) *Log {
	b.Helper()
	l, err := Open(Options{FS: vfs.Default, Dir: b.TempDir(), Sync: m})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// split runs f b.N times in all, on n goroutines.
func split(b *testing.B, n int, f func() error) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for range (b.N + i) / n {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkAppend writes records of 2 KiB to a real directory. The files are
// removed as they fill, so that the disk does not. "memory" replaces the disk
// by nothing: what the log itself costs.
func BenchmarkAppend(b *testing.B) {
	for _, m := range []SyncMode{Off, Interval} {
		for _, n := range []int{1, 8} {
			b.Run(fmt.Sprintf("%v/goroutines=%d", m, n), func(b *testing.B) {
				l := benchLog(b, m)
				appendRecords(b, l, n)
			})
		}
	}
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprintf("memory/goroutines=%d", n), func(b *testing.B) {
			l, err := Open(Options{FS: sink{vfs.NewMem()}, Dir: dir, Sync: Off})
			if err != nil {
				b.Fatal(err)
			}
			appendRecords(b, l, n)
		})
	}
}

func appendRecords(b *testing.B, l *Log, goroutines int) {
	rec := make([]byte, benchRecord)
	b.SetBytes(benchRecord)
	b.ReportAllocs()
	b.ResetTimer()
	split(b, goroutines, func() error {
		lsn, err := l.Append(rec[:100], rec[100:])
		if err == nil && lsn%(128<<20) < benchRecord+frameSize {
			err = l.RemoveBelow(lsn)
		}
		return err
	})
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	s := l.Stats()
	b.ReportMetric(float64(s.Stalls)/float64(b.N), "stalls/op")
	b.ReportMetric(float64(s.Bytes)/float64(max(1, s.Writes))/1024, "KiB/write")
}

// BenchmarkWaitDurable is the time to an acknowledgement, alone and shared.
func BenchmarkWaitDurable(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			l := benchLog(b, Always)
			rec := make([]byte, benchRecord)
			b.ResetTimer()
			split(b, n, func() error {
				lsn, err := l.Append(rec)
				if err != nil {
					return err
				}
				return l.WaitDurable(context.Background(), lsn)
			})
			s := l.Stats()
			b.ReportMetric(float64(s.Syncs)/float64(b.N), "fsyncs/op")
			b.ReportMetric(float64(s.SyncTime.Microseconds())/float64(max(1, s.Syncs)), "µs/fsync")
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkReplay reads a log that stands in the page cache.
func BenchmarkReplay(b *testing.B) {
	const records = 100_000
	d := b.TempDir()
	l, err := Open(Options{FS: vfs.Default, Dir: d, Sync: Off})
	if err != nil {
		b.Fatal(err)
	}
	rec := make([]byte, benchRecord)
	for range records {
		if _, err := l.Append(rec); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(records * benchRecord)
	for b.Loop() {
		l, err := Open(Options{FS: vfs.Default, Dir: d})
		if err != nil {
			b.Fatal(err)
		}
		r, err := l.Replay(1, func(LSN, []byte) error { return nil })
		if err != nil || r.Records != records {
			b.Fatalf("%+v: %v", r, err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// sink is a file system whose .wal files take everything and keep nothing.
type sink struct{ vfs.FS }

func (s sink) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	return sinkFile{f}, err
}

type sinkFile struct{ vfs.File }

func (sinkFile) Write(p []byte) (int, error) { return len(p), nil }
