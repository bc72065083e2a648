package wal

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

// crash is a state the disk may be in after a power failure.
type crash struct {
	fs      *vfs.MemFS
	durable LSN // what the log claimed just before
	op      string
}

// crashes is a file system that records what a power failure before each of
// its operations would leave.
type crashes struct {
	mem *vfs.MemFS
	rng *rand.Rand // of the disk; used under mu
	gen *rand.Rand // of the records

	mu   sync.Mutex
	log  *Log // nil while it is opened
	past LSN  // durable in former runs
	all  []crash
}

func (c *crashes) hook(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	durable := c.past
	if c.log != nil {
		durable = c.log.durableLSN()
	}
	percent := []int{0, 20, 50, 80, 100}[c.rng.IntN(5)]
	c.all = append(c.all, crash{
		fs:      c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng}),
		durable: durable,
		op: fmt.Sprintf("operation %d of kind %d on %s, %d%% kept", len(c.all), op.Kind, op.Path,
			percent),
	})
	return nil
}

// run opens the log on mem, appends what rt draws, crashes before every
// operation and returns the crashes and the records appended.
func (c *crashes) run(t *testing.T, rt *rapid.T) []entry {
	div := rapid.SampledFrom([]int{1, 1000, 1_000_000}).Draw(rt, "clock")
	m := rapid.SampledFrom([]SyncMode{Always, Interval, Off}).Draw(rt, "mode")
	l := open(t, hook(c.mem, c.hook), mode(m), func(o *Options) {
		o.FileSize = int64(rapid.SampledFrom([]int{200, 5000, 20_000}).Draw(rt, "file size"))
		o.MaxRecord = 9000
		o.After = func(d time.Duration) <-chan time.Time { return time.After(d / time.Duration(div)) }
	})
	c.mu.Lock()
	c.log = l
	c.mu.Unlock()
	var added []entry
	for range rapid.IntRange(1, 12).Draw(rt, "records") {
		size := rapid.SampledFrom([]int{1, 50, 800, 4096, 9000}).Draw(rt, "size")
		rec := make([]byte, size)
		for i := range rec {
			rec[i] = byte(c.gen.Uint32()) // zeros, too
		}
		added = append(added, add(t, l, string(rec))...)
		switch rapid.IntRange(0, 5).Draw(rt, "then") {
		case 0:
			if err := l.Sync(); err != nil {
				rt.Fatal(err)
			}
		case 1:
			if m == Always {
				if err := l.WaitDurable(t.Context(), added[len(added)-1].lsn); err != nil {
					rt.Fatal(err)
				}
			}
		}
	}
	closeLog(t, l)
	return added
}

// prefix fails unless got is the beginning of want and reaches durable.
func prefix(rt *rapid.T, got, want []entry, durable LSN) {
	if len(got) > len(want) {
		rt.Fatalf("I2: replayed %d records of %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			rt.Fatalf("I2: record %d is at LSN %d with %d bytes, was appended at %d with %d bytes",
				i, got[i].lsn, len(got[i].rec), want[i].lsn, len(want[i].rec))
		}
	}
	if len(got) < len(want) && want[len(got)].lsn < durable {
		rt.Fatalf("I1: the record at LSN %d is gone, all below %d was durable", want[len(got)].lsn,
			durable)
	}
}

// TestCrash: two runs of the log, a power failure before every write operation
// of both. What was durable is replayed, in order, and nothing else but
// records that were appended; a tear is never taken for damage.
func TestCrash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		rng, gen := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
		one := &crashes{mem: vfs.NewCrashableMem(), rng: rng, gen: gen}
		first := one.run(t, rt)
		for _, c := range one.all {
			got := reopen(t, rt, c)
			prefix(rt, got, first, c.durable)
		}
		c := one.all[rng.IntN(len(one.all))]
		kept := reopen(t, rt, c)
		two := &crashes{mem: c.fs, rng: rng, gen: gen, past: c.durable}
		second := two.run(t, rt)
		if len(kept) > 0 && second[0].lsn <= kept[len(kept)-1].lsn {
			rt.Fatalf("LSN %d was given again", second[0].lsn)
		}
		for _, c := range two.all {
			got := reopen(t, rt, c)
			if len(got) < len(kept) {
				rt.Fatalf("I1: %d records, %d were replayed before the crash (%s)", len(got), len(kept), c.op)
			}
			prefix(rt, got[:len(kept)], kept, 0)
			prefix(rt, got[len(kept):], second, c.durable)
		}
	})
}

func reopen(t *testing.T, rt *rapid.T, c crash) []entry {
	l, err := Open(Options{FS: c.fs, Dir: dir, MaxRecord: 9000, BufferSize: 1})
	if err != nil {
		rt.Fatalf("I6: open after %s: %v", c.op, err)
	}
	got, report := replayAll(t, l, 0)
	if len(report.Damaged)+len(report.Missing) != 0 || len(report.Torn) > 2 {
		rt.Fatalf("%s: %+v", c.op, report)
	}
	closeLog(t, l)
	return got
}

// TestReplayedIsDurable: after kill -9 the end of the log is in the page cache
// only. What a restart replays survives a power failure right after.
func TestReplayedIsDurable(t *testing.T) {
	mem := vfs.NewCrashableMem()
	l := open(t, hook(mem, func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData && strings.HasSuffix(op.Path, suffix) {
			return errorfs.ErrInjected // as if killed before it
		}
		return nil
	}))
	want := add(t, l, numberedRecords(5, 60)...)
	if err := l.Close(); err == nil {
		t.Fatal("the fsync was to fail")
	}
	got, _ := replayAll(t, open(t, mem), 1)
	wantEntries(t, got, want)
	got, report := replayAll(t, open(t, mem.CrashClone(vfs.CrashCloneCfg{})), 1)
	wantEntries(t, got, want)
	if len(report.Torn) != 0 {
		t.Errorf("%+v", report)
	}
}
