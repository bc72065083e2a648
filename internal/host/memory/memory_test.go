package memory

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// clock is a clock that only moves when told.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

// newPressedBudget returns a budget of 1,000 bytes and the use of its one pool.
func newPressedBudget(c *clock) (*Budget, *atomic.Int64) {
	b := New(1000, c.now, nil)
	use := &atomic.Int64{}
	b.Add(Pool{Name: "cells", Use: use.Load, OffHeap: true})
	return b, use
}

func TestLevelsRiseAtOnceAndFallWithASlack(t *testing.T) {
	c := &clock{t: time.Unix(1, 0)}
	b, use := newPressedBudget(c)
	for _, step := range []struct {
		use   int64
		after time.Duration
		want  Level
	}{
		{699, 0, Calm}, {700, 0, Urgent}, {660, 0, Urgent}, {649, 0, Calm},
		{800, 0, NoQueries}, {750, 0, NoQueries}, {749, 0, Urgent}, {600, 0, Calm},
		{950, 0, Hold}, {900, 0, Hold}, {899, 0, NoSeries}, {850, 0, NoSeries},
		{700, time.Second, NoSeries}, {100, settle - 2*time.Second, NoSeries},
		{100, 2 * time.Second, Calm},
		{860, 0, NoSeries}, {820, settle, NoSeries}, {760, 0, NoQueries}, {0, 0, Calm},
		{960, 0, Hold}, {0, 0, NoSeries}, {0, settle, Calm},
	} {
		c.t = c.t.Add(step.after)
		use.Store(step.use)
		if got := b.Look(); got != step.want || b.Level() != got || b.UsedBytes() != step.use {
			t.Fatalf("a use of %d after %v leads to %v, want %v", step.use, step.after, got, step.want)
		}
	}
}

// A random use: the level never lies below what the use asks for, and once the
// use stays low it is Calm after settle.
func TestTheLevelFollowsTheUse(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := &clock{t: time.Unix(1, 0)}
		b, use := newPressedBudget(c)
		for range 200 {
			c.t = c.t.Add(time.Duration(r.IntN(1000)) * time.Millisecond)
			use.Store(int64(r.IntN(1200)))
			l := b.Look()
			for above := l + 1; above < levels; above++ {
				if use.Load() >= 10*rise[above] {
					t.Fatalf("seed %d: %d of 1000 in use, the level is %v", seed, use.Load(), l)
				}
			}
			if l < NoSeries && l > Calm && use.Load() < 10*(rise[l]-fallBack) {
				t.Fatalf("seed %d: %d of 1000 in use, the level stays %v", seed, use.Load(), l)
			}
		}
		use.Store(0)
		b.Look()
		c.t = c.t.Add(settle)
		if l := b.Look(); l != Calm {
			t.Fatalf("seed %d: nothing in use, the level is %v", seed, l)
		}
	}
}

func TestTheHeapGetsWhatIsLeft(t *testing.T) {
	c := &clock{}
	var told []int64
	b := New(6400, c.now, func(n int64) { told = append(told, n) })
	var cells, names int64
	b.Add(Pool{Name: "cells", Use: func() int64 { return cells }, OffHeap: true})
	b.Add(Pool{Name: "names", Use: func() int64 { return names }})
	b.Look()
	cells = 50 // less than a step
	b.Look()
	cells = 1000
	b.Look()
	names = 100 // less than the runtime says
	b.Look()
	b.SetHeap(800, 1)
	if b.Look(); b.UsedBytes() != 1800 {
		t.Errorf("%d bytes in use, want 1800", b.UsedBytes())
	}
	cells = 6000 // the heap cannot shrink below what lives on it
	b.Look()
	want := []int64{6400, 5400, 900}
	if len(told) != len(want) || told[0] != want[0] || told[1] != want[1] || told[2] != want[2] {
		t.Errorf("the heap was given %v, want %v", told, want)
	}
	if u := b.Pools(); len(u) != 2 || u[0] != (Usage{Name: "cells", Use: 6000}) ||
		u[1] != (Usage{Name: "names", Use: 100}) {
		t.Errorf("the pools are %+v", u)
	}
}

// What the pools grow by behind a collection comes to what it found. The larger one
// of both would hide it for as long as the runtime has more than the pools.
func TestGrowthComesToWhatWasCollected(t *testing.T) {
	c := &clock{}
	b := New(6400, c.now, nil)
	var names int64
	b.Add(Pool{Name: "names", Use: func() int64 { return names }})
	for i, step := range []struct {
		names, heap int64
		cycles      uint64
		want        int64
	}{
		{100, 0, 0, 100},
		{100, 300, 1, 300},
		{250, 300, 1, 450}, // behind the collection
		{250, 320, 1, 470}, // stacks
		{350, 500, 2, 600}, // it may have been before the last 100 came
		{350, 400, 3, 400},
		{50, 400, 3, 100}, // garbage
		{50, 300, 4, 300}, // it was none
		{90, 20, 5, 90},   // promised, and not yet used
		{500, 20, 5, 500},
	} {
		names = step.names
		if step.cycles > 0 {
			b.SetHeap(step.heap, step.cycles)
		}
		if b.Look(); b.UsedBytes() != step.want {
			t.Errorf("step %d: %d bytes in use, want %d", i, b.UsedBytes(), step.want)
		}
	}
}

func TestWithoutALimitNothingIsRefused(t *testing.T) {
	b := New(0, (&clock{}).now, nil)
	b.Add(Pool{Name: "cells", Use: func() int64 { return 1 << 50 }, OffHeap: true})
	if l := b.Look(); l != Calm {
		t.Errorf("the level is %v", l)
	}
	if err := b.NewLeases(LeaseOptions{Name: "queries", Holds: "results", Limit: 10,
		Small: 1}).Lease().Grow(1 << 40); err != nil {
		t.Error(err)
	}
	if err := (*Lease)(nil).Grow(1); err != nil {
		t.Error(err)
	}
	(*Lease)(nil).Release()
	if b.Share(4, 77) != 77 || New(100, time.Now, nil).Share(4, 77) != 25 {
		t.Error("shares")
	}
}

func TestLeases(t *testing.T) {
	c := &clock{}
	b, use := newPressedBudget(c)
	p := b.NewLeases(LeaseOptions{Name: "queries", Holds: "results", Limit: 200, Small: 10})
	x, y := p.Lease(), p.Lease()
	refused := func(what string, err error, want Refusal) {
		t.Helper()
		var r *Refusal
		if !errors.As(err, &r) || *r != want {
			t.Errorf("%s: %+v, want %+v", what, err, want)
		}
		for _, text := range []string{"MiB", "memory.limit"} {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %s", what, err, text)
			}
		}
	}
	if err := x.Grow(150); err != nil {
		t.Fatal(err)
	}
	refused("beyond the pool", y.Grow(201),
		Refusal{Pool: "queries", Need: 201, Limit: 200, TooLarge: true})
	refused("others have it", y.Grow(51), Refusal{Pool: "queries", Need: 51, Used: 150, Limit: 200})
	if err := y.Grow(50); err != nil {
		t.Error(err)
	}
	if b.Look(); b.UsedBytes() != 200 {
		t.Errorf("%d bytes in use", b.UsedBytes())
	}
	x.Release()
	use.Store(800)
	b.Look()
	refused("under pressure", y.Grow(1), Refusal{Pool: "queries", Need: 51, Used: 850, Limit: 1000,
		OfPressure: true})
	if err := p.Lease().Grow(10); err != nil {
		t.Error("a small one", err)
	}
}

// Of many that ask at once only so many are lent to as there is room for.
func TestLeasesAtOnce(t *testing.T) {
	b, _ := newPressedBudget(&clock{})
	p := b.NewLeases(LeaseOptions{Name: "queries", Holds: "results", Limit: 200, Small: 10})
	for range 2000 {
		var lent atomic.Int64
		var all sync.WaitGroup
		start := make(chan struct{})
		leases := make([]*Lease, 4)
		for i := range leases {
			leases[i] = p.Lease()
			all.Go(func() {
				<-start
				if leases[i].Grow(110) == nil {
					lent.Add(110)
				}
			})
		}
		close(start)
		all.Wait()
		if lent.Load() > 200 || p.used.Load() != lent.Load() {
			t.Fatalf("%d of 200 bytes are lent, %d in use", lent.Load(), p.used.Load())
		}
		for _, l := range leases {
			l.Release()
		}
	}
}

func TestDefault(t *testing.T) {
	none := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	for what, c := range map[string]struct {
		machine, group memlimit.Provider
		want           int64
	}{
		"nothing is known": {none, none, 0},
		"the machine":      {memlimit.Limit(10 << 30), none, 10 << 30 / 100 * 60},
		"the group": {memlimit.Limit(10 << 30), memlimit.Limit(4 << 30),
			4 << 30 / 100 * 60},
		"the group only": {none, memlimit.Limit(4 << 30), 4 << 30 / 100 * 60},
		"no limit as a number": {memlimit.Limit(10 << 30), memlimit.Limit(math.MaxInt64 &^ 4095),
			10 << 30 / 100 * 60},
		"the largest number": {memlimit.Limit(10 << 30), memlimit.Limit(math.MaxUint64),
			10 << 30 / 100 * 60},
		"a group without a byte":    {memlimit.Limit(10 << 30), memlimit.Limit(0), 10 << 30 / 100 * 60},
		"a limit below the least":   {memlimit.Limit(10 << 30), memlimit.Limit(1 << 20), leastDefault},
		"a machine below the least": {memlimit.Limit(64 << 20), none, leastDefault},
	} {
		if got := defaultOf(c.machine, c.group); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

// This machine says what it has, whatever its control groups are.
func TestDefaultOfThisMachine(t *testing.T) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Skip(err)
	}
	var kib int64
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		t.Fatal(err)
	}
	if got := Default(); got < leastDefault || got > max(kib<<10/100*61, leastDefault) {
		t.Errorf("%d of %d bytes", got, kib<<10)
	}
}
