package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/write/intake"
	"dalmatiner/test/torture/oracle"
)

// cuts is a store whose series are deleted and sent again beside flushes and merges,
// until the power is cut before some operation on a file, again and again, also in
// starts. The oracle of test/torture knows what was acknowledged.
type cuts struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	fs    *vfs.MemFS
	f     *faults
	o     Options
	s     *Store
	b     *oracle.Bucket
	pos   int // slots that rows have reached
	trail []string

	mu  sync.RWMutex // held shared by who is acknowledged something
	off bool         // the power is
}

func newCuts(t *testing.T, seed uint64) *cuts {
	c := &cuts{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11))}
	pick := func(of ...int64) int64 { return of[c.rng.IntN(len(of))] }
	c.o = DefaultOptions("/data")
	c.o.MinFree = 0
	c.o.WALSync = []wal.SyncMode{wal.Always, wal.Interval}[c.rng.IntN(2)]
	c.o.WALInterval = time.Duration(pick(1, 5)) * time.Millisecond
	c.o.WALMaxSize, c.o.FlushBytes, c.o.LateMemory = pick(64<<10, 16<<20), pick(4<<10, 1<<20),
		pick(16<<10, 1<<20)
	c.o.FlushInterval = time.Duration(pick(20, 720_000)) * time.Millisecond
	c.o.BackgroundMerge = c.rng.IntN(2) == 0
	c.turnOn(vfs.NewCrashableMem())
	c.open()
	if _, err := c.s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 1000}); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix() - 48*3600
	c.b = new(oracle.Book).Add(oracle.Bucket{Name: "b", Resolution: 1000, First: now - now%7200,
		Slots: 720})
	for i := range 2 + c.rng.IntN(7) {
		c.b.NewSeries(key(i))
	}
	c.b.SetState(oracle.Present)
	return c
}

func (c *cuts) turnOn(fs *vfs.MemFS) {
	c.fs, c.f, c.off = fs, newFaults(fs), false
	c.o.FS = c.f.FS
}

func (c *cuts) open() {
	c.t.Helper()
	s, err := Open(c.o)
	if err != nil {
		c.t.Fatalf("seed %d, %v: %v", c.seed, c.trail, err)
	}
	c.s = s
}

// cutAt cuts the power before the n-th change of a file from now on, and sends what
// that leaves: what was synced, and of the rest so many percent.
func (c *cuts) cutAt(n int, percent ...int) <-chan *vfs.MemFS {
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: percent[c.rng.IntN(len(percent))],
		RNG: rand.New(rand.NewPCG(c.rng.Uint64(), 1))}
	left := make(chan *vfs.MemFS, 1)
	c.f.Set(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if n--; n == 0 {
			c.off = true
			left <- c.fs.CrashClone(cfg)
		}
		return nil
	})
	return left
}

// told runs note if the power is on: whoever is told something by then may rely on it.
func (c *cuts) told(note func()) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.off {
		note()
	}
}

// lot sends rows, and runs of earlier slots, and waits until they are durable.
func (c *cuts) lot(x *intake.Session) error {
	c.b.Lane.Lock()
	if c.pos >= c.b.Slots {
		c.pos = c.rng.IntN(c.b.Slots)
	}
	send := func(m *oracle.Series, from, past int) {
		var points []byte
		for i := from; i < past && !m.Deleting; i++ {
			points = m.AppendWrite(points, c.b.First+int64(i))
		}
		x.Points(m.Key, uint64(c.b.First)+uint64(from), points)
	}
	for end := min(c.pos+1+c.rng.IntN(60), c.b.Slots); c.pos < end; c.pos++ {
		for _, m := range c.b.Series {
			if slot := c.b.First + int64(c.pos); c.rng.IntN(20) > 0 && !m.Deleting {
				x.Point(m.Key, uint64(slot), binary.BigEndian.Uint64(m.AppendWrite(nil, slot)))
			}
		}
	}
	for range c.rng.IntN(5) {
		at := c.rng.IntN(c.pos)
		send(c.b.Series[c.rng.IntN(len(c.b.Series))], at, min(at+1+c.rng.IntN(60), c.pos))
	}
	last := c.b.Lane.Sent()
	c.b.Lane.Unlock()
	lsn, err := x.Commit()
	if err == nil {
		err = c.s.intake.WaitDurable(context.Background(), lsn)
	}
	if err == nil {
		c.told(func() { c.b.Lane.Ack(last, x.Totals().Refused) })
	}
	return err
}

// send sends lots and deletes a series now and then, until the power is off.
func (c *cuts) send(over <-chan struct{}) {
	for {
		x := mustSession(c.t, c.s, "b")
		for range 1 + c.rng.IntN(6) {
			if err := c.lot(x); err != nil {
				c.t.Errorf("seed %d: %v", c.seed, err)
				return
			}
		}
		_ = x.Close() // all of it was waited for
		select {
		case <-over:
			return
		default:
		}
		if m := c.b.Series[c.rng.IntN(len(c.b.Series))]; m.Written() && !m.Deleting {
			m.SetDeleting()
			if _, err := c.s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: m.Key},
				false); err == nil {
				c.told(m.Deleted)
			}
		}
	}
}

// load sends, flushes and merges until the power is cut.
func (c *cuts) load() {
	left, over := c.cutAt(1+c.rng.IntN(600), 0, 20, 50, 90, 100), make(chan struct{})
	r := rand.New(rand.NewPCG(c.rng.Uint64(), 1))
	var wg sync.WaitGroup
	wg.Go(func() { c.send(over) })
	wg.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if r.IntN(2) == 0 {
				_, _ = c.s.Flush(context.Background()) // what was acknowledged is compared
			} else {
				_, _ = c.s.Merge(context.Background())
			}
		}
	})
	fs := <-left
	close(over)
	wg.Wait()
	c.s.Crash()
	c.b.Lane.Break()
	c.trail = append(c.trail, "cut")
	c.turnOn(fs)
}

// start opens the store, with power cuts in some starts. They leave all that was not
// synced, or nothing. Pebble makes a MANIFEST of its own at each start, and does not
// open with a marker but without the file that it names.
func (c *cuts) start() {
	for c.rng.IntN(2) == 0 {
		left := c.cutAt(1+c.rng.IntN(60), 0, 100)
		c.open()
		c.s.Crash()
		select {
		case fs := <-left:
			c.turnOn(fs)
			c.trail = append(c.trail, "cut in the start")
		default:
			c.f.Clear()
		}
	}
	c.open()
}

// compare reads everything. Behind a start, what it shows settles what was in doubt.
func (c *cuts) compare(settle bool) {
	c.t.Helper()
	info, err := c.s.BucketByName("b")
	if err != nil {
		c.t.Fatal(err)
	}
	faults := 0
	found := func(f oracle.Finding) {
		if faults++; faults < 5 {
			c.t.Errorf("seed %d, %v: %v", c.seed, c.trail, f)
		}
	}
	c.b.Lane.Lock()
	defer c.b.Lane.Unlock()
	words := make([]uint64, c.b.Slots)
	for _, m := range c.b.Series {
		if err := c.s.Read(context.Background(), info, m.Key, c.b.First, words); err != nil {
			c.t.Fatal(err)
		}
		var raw []byte
		for _, w := range words {
			raw = binary.BigEndian.AppendUint64(raw, w)
		}
		m.Judge(raw, oracle.Clock{}, settle, found)
	}
	var names []string
	if err := c.s.Metrics(context.Background(), info, nil, func(k []byte) bool {
		names = append(names, string(k))
		return true
	}); err != nil {
		c.t.Fatal(err)
	}
	c.b.JudgeNames(names, oracle.Clock{}, func(*oracle.Series) bool { return false }, found)
	if settle {
		c.b.Settled()
	}
	if names, n := c.s.Damage(); n > 0 {
		found(oracle.Finding{Class: oracle.Other, Text: fmt.Sprintf("damage %v", names)})
	}
	if lost := c.s.Account().Losses(); len(lost) > 0 {
		found(oracle.Finding{Class: oracle.Other, Text: fmt.Sprintf("lost %v", lost)})
	}
}

// Whatever a power cut meets – deletions, flushes and merges under way, a first flush,
// a start – nothing that was acknowledged is missing, and nothing deleted comes back.
func TestPowerCutsAmongDeletions(t *testing.T) {
	t.Parallel()
	rounds := uint64(24)
	if testing.Short() {
		rounds = 4
	}
	for seed := range rounds {
		c := newCuts(t, seed)
		for range 3 {
			c.load()
			c.start()
			c.compare(true)
			if c.rng.IntN(2) == 0 && !t.Failed() {
				mustFlush(t, c.s)
				if _, err := c.s.Merge(context.Background()); err != nil {
					t.Fatal(err)
				}
				c.trail = append(c.trail, "flush and merge")
				c.compare(false)
			}
			if t.Failed() {
				break
			}
		}
		c.s.Crash()
		if t.Failed() {
			return
		}
	}
}
