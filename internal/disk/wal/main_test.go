package wal

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"dalmatiner/internal/testkit/filetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dir = "wal"

// entry is a record of the model.
type entry struct {
	lsn LSN
	rec string
}

// open opens the log in dir with small files; it is closed with the test.
func open(t testing.TB, fs vfs.FS, change ...func(*Options)) *Log {
	t.Helper()
	o := Options{FS: fs, Dir: dir, FileSize: 512, MaxRecord: 1 << 10, BufferSize: 2 << 10,
		After: stoppedTimer}
	for _, f := range change {
		f(&o)
	}
	l, err := Open(o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// stoppedTimer is a clock that does not go on: what is written when is up to the test.
func stoppedTimer(time.Duration) <-chan time.Time { return nil }

func mode(m SyncMode) func(*Options) { return func(o *Options) { o.Sync = m } }

func add(t testing.TB, l *Log, recs ...string) (added []entry) {
	t.Helper()
	for _, rec := range recs {
		lsn, err := l.Append([]byte(rec))
		if err != nil {
			t.Fatalf("append: %v", err)
		}
		added = append(added, entry{lsn, rec})
	}
	return added
}

func closeLog(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func replayAll(t testing.TB, l *Log, from LSN) ([]entry, Report) {
	t.Helper()
	var got []entry
	report, err := l.Replay(from, func(lsn LSN, rec []byte) error {
		got = append(got, entry{lsn, string(rec)})
		return nil
	})
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	readAgain(t, l, from, got)
	return got, report
}

// readAgain checks that a second reading and one record by record give what the
// replay gave.
func readAgain(t testing.TB, l *Log, from LSN, want []entry) {
	t.Helper()
	var got []entry
	err := l.ReplayAgain(from, func(lsn LSN, rec []byte) error {
		got = append(got, entry{lsn, string(rec)})
		return nil
	})
	if err != nil {
		t.Fatalf("a second reading: %v", err)
	}
	wantEntries(t, got, want)
	r := l.NewReader()
	defer r.Close()
	for _, e := range want {
		if rec, err := r.Record(e.lsn); err != nil || string(rec) != e.rec {
			t.Fatalf("the record at %d alone: %q, %v, want %q", e.lsn, rec, err, e.rec)
		}
		if _, err := r.Record(e.lsn + 1); !errors.Is(err, ErrNoRecord) {
			t.Fatalf("a record at %d, which is in the middle of one: %v", e.lsn+1, err)
		}
	}
	if _, err := r.Record(l.opened); !errors.Is(err, ErrNoRecord) {
		t.Fatalf("a record behind the end: %v", err)
	}
}

func wantEntries(t testing.TB, got, want []entry) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("replayed %d records, want %d\n got %v\nwant %v", len(got), len(want), got, want)
	}
}

// numberedRecords returns n records of size bytes, all different.
func numberedRecords(n, size int) (recs []string) {
	for i := range n {
		recs = append(recs, fmt.Sprintf("%0*d", size, i+1))
	}
	return recs
}

// walFiles returns the names of the log's files in LSN order, without lastFile.
func walFiles(t testing.TB, fs vfs.FS) []string {
	t.Helper()
	names := allFiles(t, fs)
	return slices.DeleteFunc(names, func(name string) bool {
		return name == lastFile || name == lastTemp
	})
}

func allFiles(t testing.TB, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func readFile(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	return filetest.Read(t, fs, fs.PathJoin(dir, name))
}

func writeFile(t testing.TB, fs vfs.FS, name string, data []byte) {
	t.Helper()
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, fs, fs.PathJoin(dir, name), data)
}

// manual is a clock whose timers fire when the test says so. The ones the
// writer sets to gather a larger piece fire at once.
type manual struct {
	mu    sync.Mutex
	ticks []chan time.Time
	waits []chan time.Time // of those who wait for an fsync
	rests []chan time.Time
}

func (m *manual) newTimer(d time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	if d == lingerTime {
		c <- time.Time{}
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if d == restTime {
		m.rests = append(m.rests, c)
		return c
	}
	if d == awaitedTime {
		m.waits = append(m.waits, c)
		return c
	}
	m.ticks = append(m.ticks, c)
	return c
}

// armedCounts returns how many ticks wait, and how many timers of those who wait for an fsync.
func (m *manual) armedCounts() (ticks, waits int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.ticks), len(m.waits)
}

func (m *manual) fire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.ticks {
		c <- time.Time{}
	}
	m.ticks = nil
}

// fireWaits fires the timers of those who wait for an fsync.
func (m *manual) fireWaits() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.waits {
		c <- time.Time{}
	}
	m.waits = nil
}

// stoppedClock is a clock that stands until it goes: then what is appended is written at
// once.
type stoppedClock struct{ goes atomic.Bool }

func (s *stoppedClock) newTimer(d time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	if d == lingerTime && s.goes.Load() {
		c <- time.Time{}
	}
	return c
}

// rest lets the log rest.
func (m *manual) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.rests {
		c <- time.Time{}
	}
	m.rests = nil
}

// waitFor waits for a condition that another goroutine brings about.
func waitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	poll := time.NewTicker(100 * time.Microsecond)
	defer poll.Stop()
	for !cond() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		}
	}
}
