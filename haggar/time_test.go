package haggar

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// piped makes c's agents talk to s over pipes, so that a test can run in the
// time of a bubble, and returns when each connection was opened.
func piped(s *store, c *Config) *[]time.Time {
	var dialed []time.Time
	c.Dial = func(context.Context) (net.Conn, error) {
		here, there := net.Pipe()
		s.mu.Lock()
		dialed = append(dialed, time.Now())
		s.mu.Unlock()
		s.done.Go(func() { s.serve(there) })
		return here, nil
	}
	return &dialed
}

// slots returns how many points s has per slot.
func (s *store) slots() map[int64]int {
	out := map[int64]int{}
	for at := range s.points {
		out[at.slot]++
	}
	return out
}

func TestAgentsStartOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun := newStore(), time.Now()
		c := Config{
			Bucket: "b", Agents: 3, Metrics: 4, FlushInterval: 10 * time.Second,
			SpawnInterval: 10 * time.Second, Jitter: 2 * time.Second, Duration: 35 * time.Second,
		}
		dialed := piped(s, &c)
		sum, err := Run(context.Background(), c)
		s.done.Wait()
		if err != nil || sum.Errors != 0 {
			t.Fatalf("%+v, %v", sum, err)
		}
		// Starts at 1 ms, about 10 s and about 20 s, each followed by a flush
		// every 10 s: three, two (±2 s of jitter) and one.
		if got := (*dialed)[0].Sub(begun); got != 10*time.Second+firstSpawn {
			t.Errorf("the first flush comes after %v, want %v", got, 10*time.Second+firstSpawn)
		}
		if n := len(*dialed); n != 6 || sum.Flushes != 6 || sum.Points != 24 || sum.Agents != 3 {
			t.Errorf("%d connections, %+v, want 6 flushes of 4 points by 3 agents", n, sum)
		}
		for _, at := range *dialed {
			if s.slots()[at.Unix()] == 0 {
				t.Errorf("nothing was sent for the second of the connection at %v", at)
			}
		}
		if got := sum.Seconds; got < 35 || got > 36 {
			t.Errorf("the run took %v s, want 35", got)
		}
	})
}

// A flush that takes longer than the interval lets the next tick come late, into the second of the
// one behind it: each has a slot of its own all the same.
func TestNoSlotIsSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		c := Config{Bucket: "b", Agents: 1, Metrics: 4, FlushInterval: time.Second,
			Duration: 6500 * time.Millisecond}
		piped(s, &c)
		dial, dialed := c.Dial, 0
		c.Dial = func(ctx context.Context) (net.Conn, error) {
			if dialed++; dialed == 2 {
				<-time.After(1020 * time.Millisecond)
			}
			return dial(ctx)
		}
		<-time.After(990 * time.Millisecond) // the ticks come at the end of a second
		sum, err := Run(context.Background(), c)
		s.done.Wait()
		if err != nil || sum.Points != 24 || len(s.points) != 24 {
			t.Errorf("%d points were sent, %d of them once: %v", sum.Points, len(s.points), err)
		}
	})
}

func TestSignalStopsTheStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, toggle := newStore(), make(chan os.Signal)
		c := Config{
			Bucket: "b", Agents: 100, Metrics: 1, FlushInterval: time.Second,
			SpawnInterval: time.Second, Duration: 20 * time.Second, Toggle: toggle,
		}
		piped(s, &c)
		go func() {
			// After the starts at 0, 1 and 2 s, until after the one at 15 s.
			<-time.After(2500 * time.Millisecond)
			toggle <- syscall.SIGUSR1
			<-time.After(13 * time.Second)
			toggle <- syscall.SIGUSR1
		}()
		sum, err := Run(context.Background(), c)
		s.done.Wait()
		if err != nil || sum.Agents != 3+4 {
			t.Errorf("%d agents were started, %v, want 3 before the stop and 4 after it", sum.Agents, err)
		}
	})
}

func TestPresetGoesOnLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun := newStore(), time.Now().Unix()
		c := Config{Data: Data{Preset: Published}, Backfill: 20 * time.Minute,
			Duration: 10500 * time.Millisecond}
		piped(s, &c)
		sum, err := Run(context.Background(), c)
		s.done.Wait()
		if err != nil || sum.Errors != 0 {
			t.Fatalf("%+v, %v", sum, err)
		}
		slots := s.slots()
		for slot := begun - 1200; slot <= begun+10; slot++ {
			if slots[slot] != 8 {
				t.Errorf("slot %+d has %d points, want 8", slot-begun, slots[slot])
			}
		}
		if len(slots) != 1211 {
			t.Errorf("%d slots, want 1211", len(slots))
		}
	})
}

func TestTheEndOfARunIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{Bucket: "b", Agents: 1, Metrics: 1, Fast: true, Duration: 3 * time.Second}
		c.Dial = func(ctx context.Context) (net.Conn, error) {
			// As a real dialer, a moment before the context is done.
			if d, ok := ctx.Deadline(); ok {
				<-time.After(time.Until(d) - time.Millisecond)
				return nil, os.ErrDeadlineExceeded
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if sum, err := Run(context.Background(), c); err != nil || sum.Errors != 0 {
			t.Errorf("%+v, %v, want no errors", sum, err)
		}
	})
}

func TestProgressOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var progress bytes.Buffer
		s := newStore()
		c := Config{
			Bucket: "b", Agents: 1, Metrics: 4, FlushInterval: time.Second,
			Duration: 3500 * time.Millisecond, Progress: &progress,
		}
		piped(s, &c)
		if _, err := Run(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		s.done.Wait()
		want := "   1s  0 points  0 points/s  0 errors  1 agents\n" +
			"   2s  4 points  4 points/s  0 errors  1 agents\n" +
			"   3s  8 points  4 points/s  0 errors  1 agents\n"
		if got := progress.String(); got != want {
			t.Errorf("progress:\n%swant:\n%s", got, want)
		}
	})
}

func TestTinyWritesAreThreePerPoint(t *testing.T) {
	writes := func(tiny bool) (sizes []int) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			c := Config{
				Bucket: "haggar1", Agents: 1, Metrics: 5, Fast: true, Steps: 1, TinyWrites: tiny,
				Start: start, Addr: "pipe",
			}
			piped(s, &c)
			dial := c.Dial
			c.Dial = func(ctx context.Context) (net.Conn, error) {
				conn, err := dial(ctx)
				return countingConn{conn, &sizes}, err
			}
			if sum, err := Run(context.Background(), c); err != nil || sum.Points != 5 || sum.Errors != 0 {
				t.Errorf("%+v, %v", sum, err)
			}
			s.done.Wait()
		})
		return sizes
	}
	want := []int{14}
	for range 5 {
		want = append(want, 11, 28, 12)
	}
	want = append(want, 1)
	if got := writes(true); !slices.Equal(got, want) {
		t.Errorf("tiny writes of %v bytes, want %v", got, want)
	}
	// The opening frame and the flush; on TCP they are one system call.
	if got, want := writes(false), []int{14, 5*51 + 1}; !slices.Equal(got, want) {
		t.Errorf("writes of %v bytes, want %v", got, want)
	}
}

type countingConn struct {
	net.Conn
	sizes *[]int
}

func (c countingConn) Write(b []byte) (int, error) {
	*c.sizes = append(*c.sizes, len(b))
	return c.Conn.Write(b)
}

func TestFlags(t *testing.T) {
	f := func(args string, check func(Config) bool) {
		t.Helper()
		var out strings.Builder
		c, _, err := ParseFlags(strings.Fields(args), &out)
		if err != nil || !check(c) {
			t.Errorf("%s: %+v, %v, %s", args, c, err, out.String())
		}
	}
	f("", func(c Config) bool {
		return c.Agents == 100 && c.Metrics == 10_000 && c.FlushInterval == 10*time.Second &&
			c.SpawnInterval == 10*time.Second &&
			c.Jitter == 10*time.Second && c.Addr == "localhost:2003" && c.Bucket == "haggar" &&
			!c.CacheConnections
	})
	f("-agents=100 -metrics=2000 -flush-interval=1s -jitter=1s", func(c Config) bool {
		return c.Metrics == 2000 && c.Jitter == time.Second
	})
	f("-fast", func(c Config) bool { return c.CacheConnections })
	f("-fast -cache_connections=false", func(c Config) bool { return !c.CacheConnections })
	f("-preset published -backfill 1d -duration 0", func(c Config) bool {
		return c.Backfill == 24*time.Hour && c.NoLive
	})
	f("-start 1500000000 -step 10s", func(c Config) bool {
		return c.Start.Unix() == 1500000000 && c.Step == 10*time.Second
	})
	f("-start 2026-11-20T00:00:00Z", func(c Config) bool { return c.Start.Unix() == 1795132800 })
}

func TestWrongFlags(t *testing.T) {
	f := func(args, mention string) {
		t.Helper()
		var out strings.Builder
		_, _, err := ParseFlags(strings.Fields(args), &out)
		if err == nil || !strings.Contains(out.String(), mention) || !errors.Is(err, flag.ErrHelp) &&
			strings.Count(out.String(), "\n") != 3 {
			t.Errorf("%s: %v, %q, want an error that mentions %q", args, err, out.String(), mention)
		}
	}
	f("-jitter 11s", "jitter")
	f("-foo", "haggar: flag provided but not defined: -foo\nusage: haggar [-carbon host:port] "+
		"[flags]\nhelp:  haggar -h\n")
	f("-agents many", "-agents")
	f("-agents 0", "at least 1")
	f("-metrics -1", "10000000")
	f("-protocol graphite", "there is ddb")
	f("-preset other", "published")
	f("-preset published -prefix b", "tachyon")
	f("-backfill 1d", "needs -preset")
	f("-duration 0", "sends nothing")
	f("-step 1500ms -fast", "whole seconds")
	f("-start yesterday", "RFC 3339")
	f("-tiny-writes -batch", "tiny-writes")
	f("-nonsense", "nonsense")
	f("more", "no flag")
	f("-h", "-preset published -backfill 1d")
}
