package peer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// recorder keeps frames as the handler got them.
type recorder struct {
	mu     sync.Mutex
	frames [][]byte
}

func (r *recorder) handle(_ ring.ID, _ uint16, frame []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = append(r.frames, bytes.Clone(frame))
}

func (r *recorder) receivedFrames() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.frames)
}

// TestFramesArriveWholeAndInOrder sends frames of all sizes both ways over TCP, and leaves no
// goroutine.
func TestFramesArriveWholeAndInOrder(t *testing.T) {
	for _, name := range []string{"plain", "tls"} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			var atA, atB recorder
			one, two := settings(1), settings(2)
			one.Handler, two.Handler = atA.handle, atB.handle
			if name == "tls" {
				config := certificate(t)
				one.ServerTLS, one.ClientTLS = config, toAny(config)
				two.ServerTLS, two.ClientTLS = config, toAny(config)
			}
			a, b := tcpPair(t, one, two)
			connect(t, a, 2)
			connect(t, b, 1)
			waitFor(t, "both connected", func() bool {
				return statsOf(a, 2).Connected &&
					statsOf(b, 1).Connected
			})

			rng := rand.New(rand.NewPCG(1, 2))
			var sent [][]byte
			for i := range 500 {
				frame := make([]byte, rng.IntN(1<<rng.IntN(18)))
				binary.BigEndian.PutUint64(append(frame, 0, 0, 0, 0, 0, 0, 0, 0)[:8], uint64(i))
				sent = append(sent, frame)
				waitFor(t, "room in the queues", func() bool {
					return statsOf(a, 2).Queued < 3<<20 && statsOf(b, 1).Queued < 3<<20
				})
				if !a.Send(nodeID(2), 1, frame) || !b.Send(nodeID(1), 1, frame) {
					t.Fatal("a queue with room takes no frame")
				}
			}
			waitFor(t, "everything arrived", func() bool {
				return len(atA.receivedFrames()) == len(sent) && len(atB.receivedFrames()) == len(sent)
			})
			for i, frame := range sent {
				if !bytes.Equal(atA.receivedFrames()[i], frame) ||
					!bytes.Equal(atB.receivedFrames()[i], frame) {
					t.Fatalf("frame %d of %d bytes is another one", i, len(frame))
				}
			}
			waitFor(t, "figures", func() bool {
				return statsOf(a, 2).Received == 500 &&
					statsOf(a, 2).Sent == 500
			})
			if s := statsOf(a, 2); s.SentBytes != s.ReceivedBytes || s.Dropped != (DropCounts{}) ||
				!s.Accepted ||
				s.Held == 0 {
				t.Errorf("figures: %+v", s)
			}
			a.Close()
			b.Close()
			waitFor(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// TestASlowPeerHoldsUpNobody blocks one peer: its queue fills, and another peer gets its frames.
func TestASlowPeerHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		release := make(chan struct{})
		slow, fast := settings(2), settings(3)
		slow.Handler = func(ring.ID, uint16, []byte) { <-release }
		var got recorder
		fast.Handler = got.handle
		sender := settings(1)
		sender.MaxFrame, sender.QueueBytes = 1000, 100_000
		a, b, c := serveOn(t, n, sender), serveOn(t, n, slow), serveOn(t, n, fast)
		connect(t, a, 2)
		connect(t, a, 3)
		synctest.Wait()
		frame := make([]byte, 1000)
		for range 1000 {
			a.Send(nodeID(2), 1, frame)
		}
		for range 50 {
			if !a.Send(nodeID(3), 1, frame) {
				t.Fatal("the fast peer's queue is full")
			}
		}
		synctest.Wait()
		s := statsOf(a, 2)
		if s.Dropped.Full == 0 || s.Queued > 100_000 || s.Held > 2*100_000+aliveBuffer {
			t.Errorf("of the slow peer: %+v", s)
		}
		if len(got.receivedFrames()) != 50 {
			t.Errorf("the fast peer got %d frames", len(got.receivedFrames()))
		}
		if a.Send(nodeID(3), 1, make([]byte, 1001)) || statsOf(a, 3).Dropped.TooLarge != 1 {
			t.Error("a frame beyond MaxFrame is sent")
		}
		close(release)
		pass(0)
		if s := statsOf(a, 2); s.Sent+s.Dropped.Full != 1000 || statsOf(b, 1).Received != s.Sent {
			t.Errorf("frames without a trace: %+v, received %d", s, statsOf(b, 1).Received)
		}
		a.Close()
		b.Close()
		c.Close()
	})
}

// TestASlowReaderIsNotCutOff takes longer for a batch than the silence that ends a connection.
func TestASlowReaderIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		slow := settings(2)
		slow.Handler = func(ring.ID, uint16, []byte) { <-time.After(3 * time.Second) }
		a, b := serveOn(t, n, settings(1)), serveOn(t, n, slow)
		connect(t, a, 2)
		synctest.Wait()
		for range 10 {
			a.Send(nodeID(2), 1, make([]byte, 64<<10))
		}
		pass(time.Minute)
		if s := statsOf(a, 2); statsOf(b, 1).Received != 10 || s.Connections != 1 || s.Sent != 10 {
			t.Errorf("it got %d frames: %+v", statsOf(b, 1).Received, s)
		}
		a.Close()
		b.Close()
	})
}

// TestAnIdleConnectionStays says nothing for an hour.
func TestAnIdleConnectionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b := serveOn(t, n, settings(1)), serveOn(t, n, settings(2))
		connect(t, a, 2)
		synctest.Wait()
		a.Send(nodeID(2), 1, make([]byte, 1<<20))
		synctest.Wait()
		large := statsOf(a, 2).Held
		pass(time.Hour)
		if s := statsOf(a, 2); s.Connections != 1 || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
		if held := statsOf(a, 2).Held + statsOf(b, 1).Held; large < 1<<20 || held > 4*keptBuffer {
			t.Errorf("an idle connection keeps %d bytes, a busy one %d", held, large)
		}
		a.Close()
		b.Close()
	})
}

// TestReconnect ends a peer and starts it again. The waits double up to their maximum.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var mu sync.Mutex
		var reached []bool
		one := settings(1)
		one.Reached = func(_ ring.ID, _ uint16, up bool) {
			mu.Lock()
			defer mu.Unlock()
			reached = append(reached, up)
		}
		a, b := serveOn(t, n, one), serveOn(t, n, settings(2))
		connect(t, a, 2)
		pass(2 * time.Second) // long enough to count as a success
		b.Close()
		synctest.Wait()
		if a.Send(nodeID(2), 1, nil) || statsOf(a, 2).Dropped.Down != 1 {
			t.Error("a frame is queued without a connection")
		}
		ms := time.Millisecond
		want := []time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2000 * ms}
		if waits := n.waits(7 * time.Second); !slices.Equal(waits, want) {
			t.Errorf("waited %v, not %v", waits, want)
		}
		b = serveOn(t, n, settings(2))
		pass(3 * time.Second)
		if s := statsOf(a, 2); !s.Connected || s.Connections != 2 || s.Failures < 6 ||
			!strings.Contains(s.LastError, "is down") {
			t.Errorf("%+v", s)
		}
		b.Close()
		synctest.Wait()
		if waits := n.waits(7 * time.Second); !slices.Equal(waits, want) {
			t.Errorf("after a success waited %v, not %v", waits, want)
		}
		a.Close()
		if want := []bool{true, false, true, false}; !slices.Equal(reached, want) {
			t.Errorf("told %v", reached)
		}
	})
}

// Connections that are renewed end on both sides, which are told so, and are made again.
func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var mu sync.Mutex
		var told []string
		tell := func(what string, up bool) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprint(what, " ", up))
		}
		one, two := settings(1), settings(2)
		one.Reached = func(_ ring.ID, _ uint16, up bool) { tell("made", up) }
		two.Accepted = func(_ ring.ID, up bool) { tell("accepted", up) }
		a, b := serveOn(t, n, one), serveOn(t, n, two)
		for renew := range 3 {
			connect(t, a, 2)
			pass(2 * time.Second)
			mu.Lock()
			slices.Sort(told)
			want := []string{"accepted true", "made true"}
			if renew > 0 {
				want = []string{"accepted false", "accepted true", "made false", "made true"}
			}
			if !slices.Equal(told, want) {
				t.Errorf("%d: told %q", renew, told)
			}
			told = nil
			mu.Unlock()
			if renew == 0 {
				a.Renew() // those that it made
			} else {
				b.Renew() // those that it accepted
			}
		}
		a.Close()
		b.Close()
	})
}

// TestTwoVersionsSideBySide upgrades one node before the other.
func TestTwoVersionsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		var versions []uint16
		both, old := settings(1), settings(2)
		both.Protocol = ring.Protocol{Min: 1, Max: 2}
		old.Handler = func(_ ring.ID, version uint16, _ []byte) { versions = append(versions, version) }
		third := settings(3)
		third.Protocol = ring.Protocol{Min: 2, Max: 2}
		a, b, c := serveOn(t, n, both), serveOn(t, n, old), serveOn(t, n, third)
		for _, p := range []struct {
			from *Peers
			to   int
		}{{a, 2}, {a, 3}, {b, 1}, {b, 3}} {
			connect(t, p.from, p.to)
		}
		synctest.Wait()
		for _, c := range []struct {
			from    *Peers
			to      int
			version uint16
		}{{a, 2, 1}, {a, 3, 2}, {b, 1, 1}, {b, 3, 0}} {
			if version, _ := c.from.Version(nodeID(c.to)); version != c.version {
				t.Errorf("to %d version %d, not %d", c.to, version, c.version)
			}
		}
		if !strings.Contains(statsOf(b, 3).LastError, OtherVersion.Error()) ||
			c.Totals().Refused[OtherVersion.Error()] == 0 {
			t.Errorf("refused with %q", statsOf(b, 3).LastError)
		}
		if a.Send(nodeID(2), 2, nil) || statsOf(a, 2).Dropped.Version != 1 || !a.Send(nodeID(2), 1, nil) {
			t.Error("a frame goes out in a version that the peer does not speak")
		}
		synctest.Wait()
		if !slices.Equal(versions, []uint16{1}) {
			t.Errorf("received versions %v", versions)
		}
		a.Close()
		b.Close()
		c.Close()
	})
}

// TestForgetAndTheLimitOfPeers lets a forgotten peer make room for another.
func TestForgetAndTheLimitOfPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		small := settings(1)
		small.MaxPeers = 1
		a, b, c := serveOn(t, n, small), serveOn(t, n, settings(2)), serveOn(t, n, settings(3))
		connect(t, a, 2)
		connect(t, a, 2) // a second time changes nothing
		connect(t, c, 1)
		synctest.Wait()
		if err := a.Connect(nodeID(3)); err != Crowded {
			t.Errorf("a second peer: %v", err)
		}
		if !strings.Contains(statsOf(c, 1).LastError, Crowded.Error()) || statsOf(a, 2).Connections != 1 {
			t.Errorf("%+v", statsOf(c, 1))
		}
		a.Forget(nodeID(2))
		a.Forget(nodeID(2))
		pass(10 * time.Second)
		if statsOf(b, 1).Accepted || !statsOf(c, 1).Connected || len(a.Stats()) != 1 ||
			len(b.Stats()) != 0 {
			t.Errorf("after Forget: %+v %+v", a.Stats(), b.Stats())
		}
		if err := a.Connect(nodeID(1)); err != Itself {
			t.Errorf("itself: %v", err)
		}
		a.Close()
		b.Close()
		c.Close()
		if err := a.Connect(nodeID(3)); err == nil {
			t.Error("connects after Close")
		}
	})
}

// TestBackoff checks the waits and that the jitter stays within them.
func TestBackoff(t *testing.T) {
	b := Backoff{First: time.Second, Max: 10 * time.Second}
	for failures, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 8, 5: 10, 1 << 40: 10} {
		if got := b.waitAfter(failures, 0); got != want*time.Second {
			t.Errorf("after %d failures %s", failures, got)
		}
		if got := b.waitAfter(failures, 0.999); got < want*time.Second/2 || got > want*time.Second {
			t.Errorf("after %d failures with jitter %s", failures, got)
		}
	}
}

// TestOptionsAreChecked breaks each of them.
func TestOptionsAreChecked(t *testing.T) {
	for i, breakIt := range []func(*Options){
		func(o *Options) { o.Self = ring.ID{} },
		func(o *Options) { o.Cluster = strings.Repeat("x", 256) },
		func(o *Options) { o.Protocol.Min = 2 },
		func(o *Options) { o.Cookie = o.Cookie[:15] },
		func(o *Options) { o.Handler = nil },
		func(o *Options) { o.QueueBytes = o.MaxFrame },
		func(o *Options) { o.HalfOpen = 0 },
		func(o *Options) { o.Silence = o.Alive },
		func(o *Options) { o.Backoff.Max = 0 },
	} {
		o := settings(1)
		breakIt(&o)
		if _, err := New(o); err == nil {
			t.Errorf("options %d are taken", i)
		}
	}
}
