package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// intruder returns a connection to a node, made by whoever wants to.
func (n *network) intruder(t *testing.T, to int) net.Conn {
	t.Helper()
	conn, err := n.dial(context.Background(), nodeID(to).String())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// member returns a connection to a node behind a handshake that succeeded, for bytes that no node
// sends.
func (n *network) member(t *testing.T, as, to int) net.Conn {
	t.Helper()
	p := start(t, settings(as))
	defer p.Close()
	conn, _, err := p.greet(context.Background(), n.intruder(t, to), nodeID(to))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestStrangersAreRefused names why.
func TestStrangersAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   Refusal
	}{
		{"cookie", func(o *Options) { o.Cookie = []byte("another cookie of bytes") }, WrongProof},
		{"cluster", func(o *Options) { o.Cluster = "other" }, OtherCluster},
		{"version", func(o *Options) { o.Protocol = ring.Protocol{Min: 2, Max: 3} }, OtherVersion},
		{"id", func(o *Options) { o.Self = nodeID(1) }, Itself},
		{"dialled id", func(o *Options) {
			o.Address = func(ring.ID) []string { return []string{"nobody", nodeID(1).String()} }
		}, OtherNode},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				a := serveOn(t, n, settings(1))
				o := settings(2)
				o.Dial = n.dial
				to := 1
				if c.name == "dialled id" {
					to = 3
				}
				c.change(&o)
				b := start(t, o)
				if c.name == "id" {
					// Connect refuses this before anything is dialled.
					_, _, err := b.greet(context.Background(), n.intruder(t, 1), nodeID(1))
					if !errors.Is(err, Itself) || !errors.Is(err, errByPeer) {
						t.Errorf("refused with %v", err)
					}
				} else {
					connect(t, b, to)
					synctest.Wait()
					if s := statsOf(b, to); s.Connected || s.Connections != 0 ||
						!strings.Contains(s.LastError, errByPeer.Error()) ||
						!strings.HasSuffix(s.LastError, c.want.Error()) {
						t.Errorf("%+v", s)
					}
				}
				synctest.Wait()
				if total := a.Totals(); total.Refused[c.want.Error()] != 1 || total.HalfOpen != 0 ||
					len(a.Stats()) != 0 {
					t.Errorf("%+v", total)
				}
				a.Close()
				b.Close()
			})
		})
	}
}

// TestTheDiallerChecksToo answers a dialler as a node does that has another id or cookie.
func TestTheDiallerChecksToo(t *testing.T) {
	for want, change := range map[Refusal]func(*hello, *Options){
		OtherNode:    func(h *hello, _ *Options) { h.id = nodeID(3) },
		OtherCluster: func(h *hello, _ *Options) { h.cluster = "other" },
		OtherVersion: func(h *hello, _ *Options) { h.protocol = ring.Protocol{Min: 7, Max: 7} },
		Itself:       func(h *hello, _ *Options) { h.id = nodeID(1) },
		WrongProof:   func(_ *hello, o *Options) { o.Cookie = []byte("another cookie of bytes") },
		Foreign:      func(h *hello, _ *Options) { h.id = ring.ID{} },
	} {
		a, impostor := start(t, settings(1)), settings(2)
		there, here := net.Pipe()
		go func() {
			defer there.Close()
			_ = readMagic(there)
			first, _ := readMessage(there, sayHello)
			b := &Peers{options: impostor}
			h := b.hello(nodeID(1))
			change(&h, &b.options)
			second := h.append(nil)
			_, _ = there.Write(appendMessage([]byte(magic), sayHello, second))
			if _, err := readMessage(there, sayProof); err != nil {
				return
			}
			_, _ = there.Write(appendMessage(nil, sayProof,
				b.proof(acceptor, transcriptOf(first, second, nil))))
			_, _ = io.Copy(io.Discard, there)
		}()
		_, _, err := a.greet(context.Background(), here, nodeID(2))
		if !errors.Is(err, want) || errors.Is(err, errByPeer) {
			t.Errorf("not %v but %v", want, err)
		}
		here.Close()
		a.Close()
	}
}

// tap records what is written to a connection.
type tap struct {
	net.Conn
	written bytes.Buffer
}

func (c *tap) Write(b []byte) (int, error) {
	c.written.Write(b)
	return c.Conn.Write(b)
}

// TestAReplayedHandshakeIsRefused says once more what a dialler said.
func TestAReplayedHandshakeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b := serveOn(t, n, settings(1)), start(t, settings(2))
		recorded := &tap{Conn: n.intruder(t, 1)}
		if _, _, err := b.greet(context.Background(), recorded, nodeID(1)); err != nil {
			t.Fatal(err)
		}
		recorded.Close()
		again := n.intruder(t, 1)
		go func() { _, _ = io.Copy(io.Discard, again) }()
		if _, err := again.Write(recorded.written.Bytes()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if a.Totals().Refused[WrongProof.Error()] != 1 || a.Totals().Accepted != 0 {
			t.Errorf("%+v", a.Totals())
		}
		again.Close()
		a.Close()
		b.Close()
	})
}

// TestAProofIsNotSentBack reflects a dialler's own words.
func TestAProofIsNotSentBack(t *testing.T) {
	a := start(t, settings(1))
	defer a.Close()
	mine := a.hello(nodeID(2))
	transcript := transcriptOf(mine.append(nil), mine.append(nil), nil)
	if bytes.Equal(a.proof(dialler, transcript), a.proof(acceptor, transcript)) {
		t.Error("both roles have one proof")
	}
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(there, there) }()
	if _, _, err := a.greet(context.Background(), here, nodeID(2)); err == nil {
		t.Error("an echo is a peer")
	}
	here.Close()
	there.Close()
}

// TestARelayedProofIsRefused puts a relay that both sides trust, as to TLS, between two nodes.
func TestARelayedProofIsRefused(t *testing.T) {
	config := certificate(t)
	one, two := settings(1), settings(2)
	one.ServerTLS, two.ClientTLS = config, toAny(config)
	a, b := start(t, one), start(t, two)
	defer a.Close()
	defer b.Close()
	relay := &Peers{options: Options{Handshake: 5 * time.Second}}
	fromB, atRelay := net.Pipe()
	toA, atA := net.Pipe()
	refused := make(chan error, 1)
	go func() {
		_, err := a.welcome(context.Background(), atA, func(remoteNode) error { return nil })
		refused <- err
		atA.Close()
	}()
	go func() {
		back, _, err := relay.secure(context.Background(), atRelay, config(), tls.Server)
		if err != nil {
			return
		}
		on, _, err := relay.secure(context.Background(), toA, config(), tls.Client)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(on, back) }()
		_, _ = io.Copy(back, on)
	}()
	_, _, err := b.greet(context.Background(), fromB, nodeID(1))
	if !errors.Is(err, WrongProof) || !errors.Is(<-refused, WrongProof) {
		t.Errorf("relayed: %v", err)
	}
	for _, c := range []net.Conn{fromB, atRelay, toA, atA} {
		c.Close()
	}
}

// TestHandshakesAreBounded takes all places of handshakes. They come free at the time limit.
func TestHandshakesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b := serveOn(t, n, settings(1)), serveOn(t, n, settings(2))
		var silent []net.Conn
		for range 6 {
			silent = append(silent, n.intruder(t, 1))
		}
		_, _ = silent[0].Write([]byte(magic)) // a handshake in which bytes trickle is none
		synctest.Wait()
		if total := a.Totals(); total.HalfOpen != 4 || total.Refused[Crowded.Error()] != 2 {
			t.Errorf("%+v", total)
		}
		connect(t, b, 1)
		synctest.Wait()
		if statsOf(b, 1).Connected {
			t.Error("connected beyond the limit of handshakes")
		}
		pass(10 * time.Second)
		if total := a.Totals(); total.HalfOpen != 0 || total.Refused[Late.Error()] != 4 ||
			!statsOf(b, 1).Connected {
			t.Errorf("%+v", total)
		}
		for _, c := range silent {
			c.Close()
		}
		a.Close()
		b.Close()
	})
}

// TestGarbage sends what is no handshake, and no frame behind one. A frame is delivered whole or
// not.
func TestGarbage(t *testing.T) {
	good := append(appendHeader(nil, kindData, []byte("a frame")), "a frame"...)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	large := binary.BigEndian.AppendUint32(nil, 1<<20+1)
	for _, c := range []struct {
		name      string
		bytes     []byte
		delivered int
	}{
		{"oversized", append(large, kindData, 0, 0, 0, 0), 0},
		{"half a frame", good[:len(good)-1], 0},
		{"half a header", good[:5], 0},
		{"wrong checksum", flipped, 0},
		{"unknown kind", appendHeader(nil, 9, nil), 0},
		{"garbage behind a frame", append(bytes.Clone(good), bytes.Repeat([]byte{0xff}, 100)...), 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			var got recorder
			o := settings(1)
			o.Handler = got.handle
			a, b := serveOn(t, n, o), serveOn(t, n, settings(2))
			conn := n.member(t, 3, 1)
			_, _ = conn.Write(c.bytes) // the node may have ended the connection
			synctest.Wait()
			if held := statsOf(a, 3).Held; held > keptBuffer+4096 {
				t.Errorf("%s: %d bytes are held", c.name, held)
			}
			conn.Close()
			synctest.Wait()
			if len(got.receivedFrames()) != c.delivered || len(a.Stats()) != 0 {
				t.Errorf("%s: %d frames, %+v", c.name, len(got.receivedFrames()), a.Stats())
			}
			stranger := n.intruder(t, 1)
			_, _ = stranger.Write([]byte("GET / HTTP/1.1\r\n"))
			synctest.Wait()
			if a.Totals().Refused[Foreign.Error()] != 1 {
				t.Errorf("%s: %+v", c.name, a.Totals())
			}
			stranger.Close()
			connect(t, b, 1)
			synctest.Wait()
			if !statsOf(b, 1).Connected {
				t.Errorf("%s: a node cannot connect behind garbage", c.name)
			}
			a.Close()
			b.Close()
		})
	}
}

// serveDeaf is a node that takes a number of bytes behind the handshake, then nothing.
func serveDeaf(t *testing.T, l *pipeListener, takes int, speaks bool) {
	p := start(t, settings(2))
	defer p.Close()
	raw, err := l.Accept()
	if err != nil {
		return
	}
	defer raw.Close()
	conn, err := p.welcome(context.Background(), raw, func(remoteNode) error { return nil })
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.CopyN(io.Discard, conn, int64(takes))
	for speaks && writeAlive(conn, time.Second) == nil {
		<-time.After(time.Second)
	}
	<-l.closed
}

// TestAStuckReaderIsCutOff counts what was not wholly written, and what was.
func TestAStuckReaderIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		l := n.listen(nodeID(2).String())
		go serveDeaf(t, l, 2*(headerSize+1000)+500, true)
		o := settings(1)
		o.Dial = n.dial
		a := start(t, o)
		connect(t, a, 2)
		synctest.Wait()
		for range 10 {
			if !a.Send(nodeID(2), 1, make([]byte, 1000)) {
				t.Fatal("not sent")
			}
		}
		pass(6 * time.Second)
		s := statsOf(a, 2)
		if s.Connected || s.Sent != 2 || s.SentBytes != 2000 || s.Dropped.Lost != 8 || s.Queued != 0 ||
			s.Held != 0 {
			t.Errorf("%+v", s)
		}
		_ = l.Close()
		pass(10 * time.Second)
		a.Close()
	})
}

// TestADeadLinkIsFound ends connections on which nothing is heard, on both sides.
func TestADeadLinkIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		l := n.listen(nodeID(2).String())
		go serveDeaf(t, l, 1<<20, false)
		o := settings(1)
		o.Dial = n.dial
		a, b := start(t, o), serveOn(t, n, settings(3))
		connect(t, a, 2)
		mute := n.member(t, 4, 3)
		synctest.Wait()
		if !statsOf(a, 2).Connected || !statsOf(b, 4).Accepted {
			t.Error("not connected")
		}
		go func() { _, _ = io.Copy(io.Discard, mute) }()
		pass(6 * time.Second)
		if s := statsOf(a, 2); s.Connected || !strings.Contains(s.LastError, errSilent.Error()) {
			t.Errorf("%+v", s)
		}
		if len(b.Stats()) != 0 {
			t.Errorf("%+v", b.Stats())
		}
		_ = l.Close()
		mute.Close()
		a.Close()
		b.Close()
	})
}

// TestANewerConnectionReplacesTheOlder waits for the handler of the older one.
func TestANewerConnectionReplacesTheOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		release := make(chan struct{})
		running, most := 0, 0
		o := settings(1)
		o.Handler = func(ring.ID, uint16, []byte) {
			running++
			most = max(most, running)
			<-release
			running--
		}
		a := serveOn(t, n, o)
		var conns []net.Conn
		for range 3 {
			conn := n.member(t, 2, 1)
			conns = append(conns, conn)
			go func() { _, _ = conn.Write(append(appendHeader(nil, kindData, []byte("x")), 'x')) }()
			synctest.Wait()
		}
		if a.Totals().Accepted != 1 || running != 1 {
			t.Errorf("%+v, %d handlers", a.Totals(), running)
		}
		close(release)
		synctest.Wait()
		if s := statsOf(a, 2); s.Received != 2 || most != 1 {
			// The second was replaced before its frame was read.
			t.Errorf("%d frames, %d at once", s.Received, most)
		}
		for _, c := range conns {
			c.Close()
		}
		a.Close()
	})
}

// TestAHandshakeThatNobodyAnswers ends at its time limit, again and again: what closes its
// connection runs beside the end of the attempt.
func TestAHandshakeThatNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		o := settings(1)
		o.Handshake, o.Backoff = time.Second, Backoff{First: time.Millisecond, Max: time.Millisecond}
		o.Dial = func(context.Context, string) (net.Conn, error) {
			dials.Add(1)
			here, there := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			return here, nil
		}
		a := start(t, o)
		connect(t, a, 2)
		pass(500 * time.Second)
		if n := dials.Load(); n < 400 || statsOf(a, 2).Connected {
			t.Errorf("%d attempts: %+v", n, statsOf(a, 2))
		}
		a.Close()
	})
}
