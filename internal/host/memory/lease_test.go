package memory

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// testClock is a clock that several goroutines may look at.
type testClock struct{ ns atomic.Int64 }

func (c *testClock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *testClock) advance(d time.Duration) { c.ns.Add(int64(d)) }

func inputPool(limit int64) (*testClock, *Budget, *Leases) {
	c := &testClock{}
	c.advance(time.Hour)
	b := New(1<<30, c.now, nil)
	return c, b, b.NewLeases(LeaseOptions{Name: "input", Limit: limit, Small: limit,
		Stall: 30 * time.Second})
}

// client is somebody who holds a lease and stops when he is cut off.
type client struct {
	*Lease
	why atomic.Pointer[CutReason]
}

func newClient(p *Leases, bytes int64, t *testing.T) *client {
	t.Helper()
	c := &client{Lease: p.Lease()}
	if err := c.Grow(bytes); err != nil {
		t.Fatal(err)
	}
	c.await()
	return c
}

func (c *client) await() { c.Await(func(why CutReason) { c.why.Store(&why) }) }

func (c *client) cutFor() CutReason {
	if why := c.why.Load(); why != nil {
		return *why
	}
	return ""
}

func TestStalledClientsAreCutOff(t *testing.T) {
	clock, b, p := inputPool(1000)
	x, y := newClient(p, 10, t), newClient(p, 10, t)
	clock.advance(29 * time.Second)
	y.NoteProgress()
	clock.advance(time.Second)
	b.Sweep()
	if x.cutFor() != CutStalled || y.cutFor() != "" {
		t.Errorf("after 30 s: %q, and %q who moved", x.cutFor(), y.cutFor())
	}
	x.Release()
	y.Resume()
	clock.advance(time.Hour)
	b.Sweep()
	if y.cutFor() != "" {
		t.Error("one is cut off whom nobody waits for")
	}
	if got := p.Counts(); got.CutStalled != 1 || got.CutPressure != 0 {
		t.Errorf("%+v", got)
	}
}

// Who waits gets what the idlest held, after its grace and not before.
func TestTheIdlestMakesRoom(t *testing.T) {
	clock, b, p := inputPool(1000)
	idle, active := newClient(p, 500, t), newClient(p, 500, t)
	got := make(chan error, 1)
	w := p.Lease()
	go func() { got <- w.GrowWhenFree(t.Context(), 400) }()
	for p.Counts().Waiting == 0 {
	}
	clock.advance(grace - 1)
	active.NoteProgress()
	b.Sweep()
	if idle.cutFor() != "" {
		t.Error("cut off within its grace")
	}
	clock.advance(1)
	b.Sweep()
	b.Sweep()
	if idle.cutFor() != CutPressure || active.cutFor() != "" {
		t.Errorf("idle: %q, active: %q", idle.cutFor(), active.cutFor())
	}
	idle.Release()
	if err := <-got; err != nil || w.Bytes() != 400 || p.used.Load() != 900 {
		t.Errorf("%v, %d lent, %d in use", err, w.Bytes(), p.used.Load())
	}
}

// A client that sends a byte now and then does not hold others up for ever: after a while
// the client whose message takes longest is cut off.
func TestTheSlowestMakesRoomInTheEnd(t *testing.T) {
	clock, b, p := inputPool(1000)
	first := newClient(p, 500, t)
	clock.advance(time.Millisecond)
	second := newClient(p, 500, t)
	got := make(chan error, 1)
	go func() { got <- p.Lease().GrowWhenFree(t.Context(), 400) }()
	for p.Counts().Waiting == 0 {
	}
	for range 6 {
		first.NoteProgress()
		second.NoteProgress()
		b.Sweep()
		clock.advance(time.Second)
	}
	first.NoteProgress()
	second.NoteProgress()
	b.Sweep()
	if first.cutFor() != CutPressure || second.cutFor() != "" {
		t.Errorf("first: %q, second: %q", first.cutFor(), second.cutFor())
	}
	first.Release()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// When all leases are held by those who wait for more, the last one is refused at once, and nobody
// else until its memory is back.
func TestWhoAllWaitDoNotWaitForEver(t *testing.T) {
	_, b, p := inputPool(1000)
	x, y, z := p.Lease(), p.Lease(), p.Lease()
	for _, l := range []*Lease{x, y, z} {
		if err := l.Grow(300); err != nil {
			t.Fatal(err)
		}
	}
	gotX, gotY := make(chan error, 1), make(chan error, 1)
	go func() { gotX <- x.GrowWhenFree(t.Context(), 700) }()
	for p.Counts().Waiting < 1 {
	}
	go func() { gotY <- y.GrowWhenFree(t.Context(), 500) }()
	for p.Counts().Waiting < 2 {
	}
	var refusal *Refusal
	if err := z.GrowWhenFree(t.Context(), 200); !errors.As(err, &refusal) || refusal.TooLarge {
		t.Errorf("the last one: %v", err)
	}
	b.Sweep()
	if got := p.Counts(); got.Waiting != 2 || got.Refused != 1 {
		t.Errorf("before the memory of the last one is back: %+v", got)
	}
	z.Release()
	if err := <-gotY; !errors.As(err, &refusal) || refusal.TooLarge {
		t.Errorf("the second one: %v", err)
	}
	y.Release()
	if err := <-gotX; err != nil {
		t.Error(err)
	}
	if err := x.GrowWhenFree(t.Context(), 1000); !errors.As(err, &refusal) || !refusal.TooLarge {
		t.Errorf("more than the pool: %v", err)
	}
}

// TestWhoFitsIsServedWhereAllWait: one who came last and needs little does not wait behind others
// that cannot go on before it ends.
func TestWhoFitsIsServedWhereAllWait(t *testing.T) {
	_, _, p := inputPool(1000)
	x, y := p.Lease(), p.Lease()
	for _, l := range []*Lease{x, y} {
		if err := l.Grow(300); err != nil {
			t.Fatal(err)
		}
	}
	gotX := make(chan error, 1)
	go func() { gotX <- x.GrowWhenFree(t.Context(), 500) }()
	for p.Counts().Waiting < 1 {
	}
	if err := y.GrowWhenFree(t.Context(), 100); err != nil {
		t.Error(err)
	}
	y.Release()
	if err := <-gotX; err != nil || p.Counts().Refused != 0 {
		t.Errorf("%v, %+v", err, p.Counts())
	}
}

// TestWhoLeavesHoldsUpNobody: those behind one who waited are served when its wait ends with its
// connection.
func TestWhoLeavesHoldsUpNobody(t *testing.T) {
	_, _, p := inputPool(1000)
	held := p.Lease()
	if err := held.Grow(500); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	gone, got := make(chan error, 1), make(chan error, 1)
	go func() { gone <- p.Lease().GrowWhenFree(ctx, 600) }()
	for p.Counts().Waiting < 1 {
	}
	go func() { got <- p.Lease().GrowWhenFree(t.Context(), 100) }()
	for p.Counts().Waiting < 2 {
	}
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	_, _, p := inputPool(100)
	if err := p.Lease().Grow(100); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := p.Lease()
	if err := l.GrowWhenFree(ctx, 1); !errors.Is(err, context.Canceled) || p.Counts().Waiting != 0 ||
		l.Bytes() != 0 {
		t.Errorf("%v, %+v", err, p.Counts())
	}
}

// Many clients that grow, stop, move and end at random: never more is lent than there
// is, nobody waits for ever, and in the end everything is given back.
func TestLeasesUnderLoad(t *testing.T) {
	clock, b, p := inputPool(1 << 20)
	stop := make(chan struct{})
	var lent atomic.Int64 // raised after it was lent, lowered before it is given back
	var sweeper, all sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				clock.advance(100 * time.Millisecond)
				b.Sweep()
			}
		}
	})
	for seed := range uint64(16) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 3))
			for range 300 {
				c := &client{Lease: p.Lease()}
				for c.cutFor() == "" && r.IntN(6) > 0 {
					c.Resume()
					n := int64(r.IntN(1 << 18))
					if c.GrowWhenFree(context.Background(), n) != nil {
						break
					}
					if sum := lent.Add(n); sum > 1<<20 {
						t.Errorf("%d bytes are lent", sum)
					}
					c.await()
					if r.IntN(2) == 0 {
						c.NoteProgress()
					}
					if r.IntN(4) == 0 {
						half := c.Bytes() / 2
						lent.Add(-half)
						c.Shrink(half)
					}
				}
				lent.Add(-c.Bytes())
				c.Release()
			}
		})
	}
	all.Wait()
	close(stop)
	sweeper.Wait()
	if used, c := p.used.Load(), p.Counts(); used != 0 || c.Waiting != 0 || len(p.awaited) != 0 {
		t.Errorf("%d bytes stay lent: %+v", used, c)
	}
}

// TestLeasesBesideAreAwaitedToo: what is lent for a client in another pool is awaited with the
// client's lease, until either is released.
func TestLeasesBesideAreAwaitedToo(t *testing.T) {
	clock, b, p := inputPool(1000)
	reads := b.NewLeases(LeaseOptions{Name: "reads", Limit: 100, Small: 100})
	c := newClient(p, 10, t)
	c.Resume()
	held := reads.LeaseFor(c.WithContext(t.Context()))
	if err := held.Grow(100); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	press := func() (CutReason, LeaseCounts) { // somebody else needs what is held
		other := reads.Lease()
		defer other.Release()
		if err := other.GrowWhenFree(gone, 50); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return c.cutFor(), reads.Counts()
	}
	clock.advance(2 * grace)
	if why, _ := press(); why != "" {
		t.Error("it is cut off while nobody waits for the client")
	}
	c.await()
	clock.advance(2 * grace)
	c.NoteProgress()
	if why, _ := press(); why != "" {
		t.Error("it is cut off though its client moves")
	}
	c.Resume()
	clock.advance(2 * grace)
	if why, _ := press(); why != "" {
		t.Error("it is cut off after its client was awaited")
	}
	c.await()
	clock.advance(2 * grace)
	if why, counts := press(); why != CutPressure || counts.CutPressure != 1 {
		t.Errorf("one that stands still: %q, %+v", why, counts)
	}
	held.Release()
	if len(c.beside) != 0 || held.Bytes() != 0 {
		t.Error("a lease that was released is still awaited")
	}
	c.await()
	c.Release()
	if l := (*Lease)(nil); l.WithContext(t.Context()) != t.Context() ||
		(*Leases)(nil).LeaseFor(c.WithContext(t.Context())) != nil {
		t.Error("no pool lends something")
	}
}

// TestTheFirstOneAlwaysFinishes: clients that grow by turns, and together need more than there is,
// all get as large as they have to, one after the other, though nobody is cut off or refused.
func TestTheFirstOneAlwaysFinishes(t *testing.T) {
	const most, step = 400, 50
	for _, clients := range []int{2, 8, 32} {
		b := New(1<<30, func() time.Time { return time.Unix(1, 0) }, nil)
		p := b.NewLeases(LeaseOptions{Name: "input", Limit: 1000, Small: 1000, First: most})
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				l := p.Lease()
				defer l.Release()
				for l.Bytes() < most {
					if err := l.GrowWhenFree(t.Context(), step); err != nil {
						t.Error(err)
						return
					}
					runtime.Gosched()
				}
			})
		}
		all.Wait()
		if p.used.Load() != 0 || len(p.holding)+len(p.waiting) != 0 {
			t.Errorf("%d bytes stay lent, %d hold some, %d wait", p.used.Load(), len(p.holding),
				len(p.waiting))
		}
	}
}

// TestACutThatNobodyNoticesHoldsUpNobody: what is lent to one who was cut off and does not return
// is not waited for without end.
func TestACutThatNobodyNoticesHoldsUpNobody(t *testing.T) {
	clock, b, p := inputPool(1000)
	deaf := newClient(p, 1000, t)
	got := make(chan error, 1)
	go func() { got <- p.Lease().GrowWhenFree(t.Context(), 400) }()
	for p.Counts().Waiting == 0 {
	}
	clock.advance(grace)
	b.Sweep()
	if deaf.cutFor() != CutPressure {
		t.Fatalf("cut off for %q", deaf.cutFor())
	}
	clock.advance(patience - 1)
	b.Sweep()
	if p.Counts().Waiting == 0 {
		t.Error("what comes back is not waited for")
	}
	clock.advance(1)
	b.Sweep()
	if err := <-got; !errors.As(err, new(*Refusal)) {
		t.Errorf("the one who waits gets %v", err)
	}
}

// TestWhoWaitsForMemoryIsNotAwaited: a client whose message waits for memory is not cut off for it,
// and neither is one for the time that the node itself took.
func TestWhoWaitsForMemoryIsNotAwaited(t *testing.T) {
	clock, b, p := inputPool(1000)
	c := newClient(p, 600, t)
	other := p.Lease()
	if err := other.Grow(400); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { got <- c.GrowWhenFree(t.Context(), 100) }()
	for p.Counts().Waiting == 0 {
	}
	clock.advance(2 * grace)
	b.Sweep()
	other.Release()
	if err := <-got; err != nil || c.cutFor() != "" {
		t.Errorf("%v, cut off for %q", err, c.cutFor())
	}
	clock.advance(time.Hour)
	c.await()
	b.Sweep()
	if c.cutFor() != "" {
		t.Errorf("cut off for %q after the node took its time", c.cutFor())
	}
	clock.advance(29 * time.Second)
	c.Resume()
	clock.advance(time.Hour)
	c.await()
	clock.advance(time.Second)
	b.Sweep()
	if c.cutFor() != CutStalled {
		t.Errorf("cut off for %q after 30 s in two parts", c.cutFor())
	}
}
