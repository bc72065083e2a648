package store

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/intake"
)

// turnedOver returns a store in which columns have changed hands before and
// after the last flush, and series have come back.
func turnedOver(t fataler, seed uint64) *churn {
	c := newChurn(t, rand.New(rand.NewPCG(seed, 2)), seed%3 == 2, 0)
	c.born(200)
	c.born(56)
	c.round()
	c.batches[0].live = false
	for range 3 {
		c.pass(3 * time.Minute)
		c.flush()
		c.born(60)
		c.round()
		c.turn(false)
		c.turn(true)
		c.round()
	}
	return c
}

// A crash after every step of a flush that brings new owners of columns to the
// catalogue, and of the next one, loses nothing and mixes nothing up.
func TestChurnCrashAfterEveryFlushStep(t *testing.T) {
	t.Parallel()
	for step := flush.StepCaptured; step <= flush.StepLogTrimmed; step++ {
		for seed := range uint64(6) {
			c := turnedOver(t, seed)
			if c.s.Stats().Inactive.Deactivations == 0 {
				t.Fatal("no series has lost its column")
			}
			if err := c.s.disk.Log.Sync(); err != nil {
				t.Fatal(err)
			}
			c.acked = len(c.sent)
			var clone *vfs.MemFS
			atSteps(c.s, func(n int) {
				if n == step && clone == nil {
					clone = c.fs.CrashClone(vfs.CrashCloneCfg{})
				}
			})
			c.flush()
			c.s.Crash()
			c.fs = clone
			c.open()
			c.check()
			c.round()
			c.crash(100)
			c.s.Crash()
		}
	}
}

// The segments and the log give every series its column again.
func TestChurnWithoutTheCatalogue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		c := turnedOver(t, seed)
		if seed%2 == 0 {
			if _, err := c.s.Merge(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.s.disk.Log.Sync(); err != nil {
			t.Fatal(err)
		}
		c.s.Crash()
		if err := c.fs.RemoveAll("/data/catalogue"); err != nil {
			t.Fatal(err)
		}
		c.acked = len(c.sent)
		c.open()
		info, _ := c.s.BucketByName("b")
		if got := c.s.Account().Total(info.ID); int(got.ReceivedPoints()) != len(c.sent) {
			t.Fatalf("%d of %d points are in the account", got.ReceivedPoints(), len(c.sent))
		}
		if names, _ := c.s.Damage(); len(names) != 1 { // the catalogue, and nothing else
			t.Fatalf("damage: %v", names)
		}
		c.s.damage = damage.Notes{Logger: c.s.o.Logger}
		c.check()
		c.s.Crash()
	}
}

// With the MANIFEST the replay positions are lost, and the log is replayed from where it
// begins: points of the former owners of columns are met again. None of them
// becomes another series'.
func TestChurnWithoutTheManifest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		c := turnedOver(t, seed)
		if err := c.s.disk.Log.Sync(); err != nil {
			t.Fatal(err)
		}
		c.s.Crash()
		names := []string{"/data/MANIFEST"}
		if seed%2 == 1 {
			names = append(names, "/data/catalogue")
		}
		for _, name := range names {
			if err := c.fs.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
		}
		c.open()
		sent := make(map[churnPoint]bool)
		for _, p := range c.sent {
			sent[p] = true
		}
		from := int64(epoch - 1000)
		for i := range c.batches[len(c.batches)-1].past {
			for k, w := range readAll(t, c.s, "b", i, from, int(c.clock.Now().Unix()-from)+1) {
				if p := (churnPoint{i, from + int64(k), w}); w != 0 && !sent[p] {
					t.Fatalf("seed %d: series %d has %x in slot epoch%+d, which was never sent", seed, i, w,
						p.slot-epoch)
				}
			}
		}
		c.s.Crash()
	}
}

// A session that predicts what is no longer so writes under the names it was
// given: runs along a row and down a column, begun before and after the columns
// changed hands.
func TestStalePredictions(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		c := newChurn(t, rand.New(rand.NewPCG(4, 4)), false, 0)
		c.born(head.Width)
		old := c.xs[0]
		send := func(x *intake.Session, first, n int) {
			for i := first; i < first+n; i++ {
				if down {
					c.points(x, i, c.clock.Now().Unix(), 5)
					continue
				}
				p := churnPoint{i, c.clock.Now().Unix(), point.FromInt(int64(i))}
				x.Point(key(i), uint64(p.slot), p.word)
				c.add(p)
			}
		}
		commit := func(x *intake.Session) {
			if _, err := x.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		send(old, 0, head.Width)
		commit(old)
		c.pass(3 * time.Minute)
		c.flush()
		send(old, 0, 40) // a run under way
		c.born(150)
		send(c.xs[1], head.Width, 150) // takes the columns of all 256
		commit(c.xs[1])
		if st := c.s.Stats(); st.Groups != 1 || st.Inactive.Deactivations == 0 {
			t.Fatalf("%d groups, %d series without a column", st.Groups, st.Inactive.Series)
		}
		send(old, 40, head.Width-40)
		c.clock.Advance(10 * time.Second)
		send(old, 0, head.Width)
		send(c.xs[1], head.Width, 150)
		commit(old)
		commit(c.xs[1])
		c.clock.Advance(10 * time.Second)
		c.check()
		c.crash(100)
		c.s.Crash()
	}
}

// restart crashes the store, with a log that holds all that was sent, and opens it again.
func (c *churn) restart(t *testing.T) {
	t.Helper()
	if err := c.s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	c.s.Crash()
	c.open()
}

// Senders whose series come, go and come back write beside flushes that give
// their columns to others: every point is stored once, under its name.
func TestChurnBesideFlushes(t *testing.T) {
	// Not beside other tests: a series must lose its column while senders run.
	const senders, window, rounds, pace = 3, 200, 48, 4
	c := newChurn(t, rand.New(rand.NewPCG(1, 1)), false, 0)
	defer func() { c.s.Crash() }()
	word := func(series int, slot int64) uint64 {
		return point.FromInt(int64(series)<<20 + slot - epoch)
	}
	var flushes, done atomic.Int64
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// In a round a sender has a window of series, which goes forth and back.
	first := func(round int) int { return (rounds/2 - max(rounds/2-round, round-rounds/2)) * 20 }
	for sender, x := range c.xs {
		all.Go(func() {
			for round := range rounds {
				for i := range window {
					n := (first(round)+i)*senders + sender
					x.Point(key(n), uint64(epoch+round), word(n, int64(epoch+round)))
				}
				if _, err := x.Commit(); err != nil {
					t.Error(err)
				}
				done.Add(1)
				for int64(round) > pace*flushes.Load() && ctx.Err() == nil {
					runtime.Gosched()
				}
			}
		})
	}
	for done.Load() < senders*rounds && ctx.Err() == nil {
		if done.Load() < senders*pace*flushes.Load() {
			runtime.Gosched()
			continue
		}
		c.pass(130 * time.Second)
		c.flush()
		flushes.Add(1)
	}
	all.Wait()
	if st := c.s.Stats(); st.Inactive.Deactivations == 0 {
		t.Error("no series has lost its column")
	}
	want := make(map[[2]int64]bool)
	for round := range rounds {
		for n := first(round) * senders; n < (first(round)+window)*senders; n++ {
			want[[2]int64{int64(n), int64(round)}] = true
		}
	}
	info, _ := c.s.BucketByName("b")
	if got := c.s.Account().Total(info.ID); got.ReceivedPoints() != uint64(len(want)) ||
		got.Duplicate+got.Conflicting != 0 {
		t.Errorf("%d points were sent, the account has %+v", len(want), got)
	}
	for range 2 {
		for n := range (first(rounds/2) + window) * senders {
			for round, w := range readAll(t, c.s, "b", n, epoch, rounds) {
				sent := want[[2]int64{int64(n), int64(round)}]
				if !sent && w != 0 || sent && w != word(n, int64(epoch+round)) {
					t.Fatalf("series %d slot %d holds %x, sent %v", n, round, w, sent)
				}
			}
		}
		c.restart(t)
	}
}
