package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dalmatiner/internal/cluster/ring"
)

func nodeID(n int) ring.ID { return ring.ID{15: byte(n + 1)} }

// pair is two nodes whose frames go over queues, as those of connections do.
type pair struct {
	nodes  [2]*Calls
	queues [2]chan []byte // to each node
	mu     sync.Mutex
	full   bool                       // no frame is taken
	lose   func(to int, f frame) bool // frames that were taken and are lost
	serve  func(ctx context.Context, from ring.ID, request []byte, reply func([]byte) error) error
	done   sync.WaitGroup
}

func newPair(t testing.TB, o Options) *pair {
	p := &pair{}
	for i := range p.nodes {
		p.queues[i] = make(chan []byte, 1000)
		o := o
		o.Boot = uint64(i) * 1000
		o.Send = func(to ring.ID, b []byte) bool { return p.send(int(to[15])-1, b) }
		o.Serve = func(ctx context.Context, from ring.ID, request []byte,
			reply func([]byte) error) error {
			return p.serve(ctx, from, request, reply)
		}
		if o.Running == 0 {
			o.Running, o.PerPeer, o.Waiting = 4, 4, 4
		}
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		p.nodes[i] = c
	}
	for i, c := range p.nodes {
		p.done.Go(func() {
			for b := range p.queues[i] {
				if err := c.Receive(nodeID(1-i), b); err != nil {
					t.Errorf("a frame of the other node: %v", err)
				}
				clear(b)
			}
		})
	}
	return p
}

func (p *pair) send(to int, b []byte) bool {
	f, err := parse(b)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full {
		return false
	}
	if p.lose == nil || !p.lose(to, f) {
		p.queues[to] <- bytes.Clone(b)
	}
	return true
}

func (p *pair) close() {
	for _, c := range p.nodes {
		c.Close()
	}
	p.mu.Lock()
	p.full = true // frames that are still handled may be answered
	p.mu.Unlock()
	for _, q := range p.queues {
		close(q)
	}
	p.done.Wait()
}

// ask returns what node 0 hears from node 1.
func (p *pair) ask(ctx context.Context, request string) (parts []string, err error) {
	err = p.nodes[0].Ask(ctx, nodeID(1), []byte(request), func(b []byte) error {
		parts = append(parts, string(b))
		return nil
	})
	return parts, err
}

// bubble runs a test with two nodes, and checks that nothing is left of them.
func bubble(t *testing.T, o Options, test func(t *testing.T, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, o)
		test(t, p)
		p.close()
		for i, c := range p.nodes {
			if len(c.asks)+len(c.serves.open)+len(c.serves.queue)+len(
				c.serves.busy)+c.serves.total+c.serves.bytes > 0 {
				t.Errorf("node %d keeps %+v, %v", i, c.serves, c.asks)
			}
		}
	})
}

// TestReplies: parts come in order, whatever their number and size, to many who ask at once.
func TestReplies(t *testing.T) {
	bubble(t, Options{Running: 3, PerPeer: 2, Waiting: 100}, func(t *testing.T, p *pair) {
		p.serve = func(_ context.Context, from ring.ID, request []byte, reply func([]byte) error) error {
			if from != nodeID(0) {
				t.Errorf("asked by %v", from)
			}
			for i := range int(request[0]) {
				if err := reply(bytes.Repeat([]byte{request[1], byte(i)}, i*i)); err != nil {
					return err
				}
			}
			return nil
		}
		var all sync.WaitGroup
		for n := range 60 {
			all.Go(func() {
				parts, err := p.ask(t.Context(), string([]byte{byte(n), byte(7 * n)}))
				if err != nil || len(parts) != n {
					t.Errorf("%d parts, want %d: %v", len(parts), n, err)
				}
				for i, part := range parts {
					if part != strings.Repeat(string([]byte{byte(7 * n), byte(i)}), i*i) {
						t.Errorf("request %d: part %d is %x", n, i, part)
					}
				}
			})
		}
		all.Wait()
	})
}

// TestASlowAsker makes the other side wait: it is never more than the window ahead.
func TestASlowAsker(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, p *pair) {
		var given, taken int
		p.serve = func(_ context.Context, _ ring.ID, _ []byte, reply func([]byte) error) error {
			for range 100 {
				if err := reply([]byte("part")); err != nil {
					return err
				}
				p.mu.Lock()
				given++
				p.mu.Unlock()
			}
			return nil
		}
		err := p.nodes[0].Ask(t.Context(), nodeID(1), nil, func([]byte) error {
			<-time.After(100 * time.Millisecond)
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			if taken++; given > taken+window {
				t.Errorf("%d parts were given, %d are taken", given, taken)
			}
			return nil
		})
		if err != nil || taken != 100 {
			t.Fatal(taken, err)
		}
	})
}

// TestErrors have the code of who served.
func TestErrors(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, p *pair) {
		p.serve = func(_ context.Context, _ ring.ID, request []byte, reply func([]byte) error) error {
			switch string(request) {
			case "plain":
				return errors.New("it does not work")
			case "long":
				return reply(make([]byte, MaxPart+1))
			}
			return fmt.Errorf("wrapped: %w", &Error{Code: OtherRing, Text: strings.Repeat("x", 2*maxText)})
		}
		for request, want := range map[string]Code{"plain": Failed, "long": Failed, "coded": OtherRing} {
			if _, err := p.ask(t.Context(), request); CodeOf(err) != want {
				t.Errorf("%s: %v", request, err)
			}
		}
		if _, err := p.ask(t.Context(), strings.Repeat("x", MaxRequest+1)); err == nil {
			t.Error("a request that is too long was sent")
		}
		stop := errors.New("enough")
		p.serve = func(ctx context.Context, _ ring.ID, _ []byte, reply func([]byte) error) error {
			for {
				if err := reply(nil); err != nil {
					return err
				}
			}
		}
		if err := p.nodes[0].Ask(t.Context(), nodeID(1), nil, func([]byte) error {
			return stop
		}); !errors.Is(err, stop) {
			t.Errorf("the taker's error is %v", err)
		}
	})
}

// TestTheEndOfAnAsker ends what is served for it: its context, its deadline, its connection.
func TestTheEndOfAnAsker(t *testing.T) {
	for name, end := range map[string]func(p *pair, cancel func()){
		"context":  func(_ *pair, cancel func()) { cancel() },
		"deadline": func(*pair, func()) { <-time.After(time.Hour) },
		"connection": func(p *pair, _ func()) {
			p.nodes[0].DropPeer(nodeID(1))
			p.nodes[1].DropPeer(nodeID(0))
		},
		"stop":       func(p *pair, _ func()) { p.nodes[0].Close() },
		"their stop": func(p *pair, _ func()) { p.nodes[1].Close() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{Running: 1, PerPeer: 1, Waiting: 1}, func(t *testing.T, p *pair) {
				serving, ended := make(chan bool, 2), make(chan bool, 2)
				p.serve = func(ctx context.Context, _ ring.ID, _ []byte, _ func([]byte) error) error {
					serving <- true
					<-ctx.Done()
					ended <- true
					return ctx.Err()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
				defer cancel()
				var all sync.WaitGroup
				all.Go(func() {
					if _, err := p.ask(ctx, ""); err == nil {
						t.Error("no error")
					}
				})
				<-serving
				all.Go(func() { // waits for its turn
					if _, err := p.ask(ctx, ""); err == nil {
						t.Error("no error")
					}
				})
				synctest.Wait()
				if _, err := p.ask(ctx, ""); CodeOf(err) != Busy {
					t.Errorf("a request too many: %v", err)
				}
				end(p, cancel)
				<-ended
				all.Wait()
			})
		})
	}
}

// TestLostFrames: a request never waits for what will not come, and no part is left out unseen.
func TestLostFrames(t *testing.T) {
	for seed := range uint64(200) {
		bubble(t, Options{}, func(t *testing.T, p *pair) {
			random := rand.New(rand.NewPCG(seed, 1))
			p.lose = func(to int, f frame) bool {
				return random.IntN(20) == 0 && (to == 0 || f.kind != kindAsk)
			}
			p.serve = func(_ context.Context, _ ring.ID, _ []byte, reply func([]byte) error) error {
				for i := range 30 {
					if err := reply([]byte{byte(i)}); err != nil {
						return err
					}
				}
				return nil
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			parts, err := p.ask(ctx, "")
			for i, part := range parts {
				if part != string([]byte{byte(i)}) {
					t.Fatalf("part %d is %q", i, part)
				}
			}
			if err == nil && len(parts) != 30 || err != nil && CodeOf(err) != Unreachable {
				t.Errorf("%d parts, %v", len(parts), err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestAFullQueue holds parts up, and loses none.
func TestAFullQueue(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, p *pair) {
		p.serve = func(_ context.Context, _ ring.ID, _ []byte, reply func([]byte) error) error {
			for range 20 {
				p.mu.Lock()
				p.full = true
				p.mu.Unlock()
				time.AfterFunc(3*time.Second, func() {
					p.mu.Lock()
					p.full = false
					p.mu.Unlock()
				})
				if err := reply([]byte("x")); err != nil {
					return err
				}
			}
			return nil
		}
		if parts, err := p.ask(t.Context(), ""); err != nil || len(parts) != 20 {
			t.Error(len(parts), err)
		}
		p.full = true
		if _, err := p.ask(t.Context(), ""); CodeOf(err) != Unreachable {
			t.Errorf("a request that could not be sent: %v", err)
		}
		p.full = false
	})
}

// FuzzReceive has a peer send anything.
func FuzzReceive(f *testing.F) {
	for _, of := range []frame{
		{kind: kindAsk, id: 7, left: time.Second, body: []byte("request")},
		{kind: kindAllow, id: 7, number: 9}, {kind: kindCancel, id: 7},
		{kind: kindPart, id: 7, body: []byte("part")}, {kind: kindEnd, id: 7},
		{kind: kindError, id: 7, code: Busy, body: []byte("why")},
	} {
		f.Add(of.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		of, err := parse(b)
		if err != nil {
			return
		}
		if again, err := parse(of.append(nil)); err != nil || again.kind != of.kind ||
			again.id != of.id || again.number != of.number ||
			again.left != of.left || again.code != of.code || !bytes.Equal(again.body, of.body) {
			t.Fatalf("%+v becomes %+v, %v", of, again, err)
		}
		c, err := New(Options{Running: 1, PerPeer: 1, Send: func(ring.ID, []byte) bool { return true },
			Serve: func(_ context.Context, _ ring.ID, request []byte, reply func([]byte) error) error {
				return reply(request)
			}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_ = c.Receive(nodeID(0), b)
		}
		c.Close()
	})
}
