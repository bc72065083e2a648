package peer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// network is where nodes of a test reach each other by name, over net.Pipe.
type network struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener
	dials     []time.Time
}

func newNetwork() *network { return &network{listeners: map[string]*pipeListener{}} }

func (n *network) listen(name string) *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[name] = l
	return l
}

func (n *network) dial(ctx context.Context, name string) (net.Conn, error) {
	n.mu.Lock()
	n.dials = append(n.dials, time.Now())
	l := n.listeners[name]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("%s is down", name)
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, fmt.Errorf("%s is down", name)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// waits lets time pass and returns the times between the dials within it.
func (n *network) waits(d time.Duration) (waits []time.Duration) {
	n.mu.Lock()
	n.dials = nil
	n.mu.Unlock()
	pass(d)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := 1; i < len(n.dials); i++ {
		waits = append(waits, n.dials[i].Sub(n.dials[i-1]))
	}
	return waits
}

type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func nodeID(n int) ring.ID { return ring.ID{15: byte(n)} }

// settings are those of a node whose address is its id.
func settings(n int) Options {
	return Options{
		Self: nodeID(n), Name: fmt.Sprint("node", n), Cluster: "test",
		Protocol: ring.Protocol{Min: 1, Max: 1},
		Cookie:   []byte("a cookie of enough bytes"),
		Address:  func(id ring.ID) []string { return []string{id.String()} },
		Handler:  func(ring.ID, uint16, []byte) {},
		MaxFrame: 1 << 20, QueueBytes: 4 << 20, MaxPeers: 8, HalfOpen: 4,
		Handshake: 5 * time.Second, Alive: time.Second, Silence: 5 * time.Second,
		Backoff: Backoff{First: 100 * time.Millisecond, Max: 2 * time.Second},
		Random:  func() float64 { return 0 },
		Logger:  slog.New(slog.DiscardHandler),
	}
}

func start(t testing.TB, o Options) *Peers {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serveOn starts a node that the others of a network reach.
func serveOn(t testing.TB, n *network, o Options) *Peers {
	t.Helper()
	o.Dial = n.dial
	p := start(t, o)
	p.Serve(n.listen(o.Self.String()))
	return p
}

func connect(t testing.TB, p *Peers, n int) {
	t.Helper()
	if err := p.Connect(nodeID(n)); err != nil {
		t.Fatal(err)
	}
}

// statsOf returns what a node knows of a peer.
func statsOf(p *Peers, n int) Stats {
	for _, s := range p.Stats() {
		if s.ID == nodeID(n) {
			return s
		}
	}
	return Stats{}
}

// waitFor waits for a condition outside a bubble of synctest.
func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// pass lets the time of a bubble pass until everything that it causes is done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// certificate returns settings of TLS with which every node trusts every other.
func certificate(t testing.TB) func() *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"node"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return func() *tls.Config {
		return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "node", RootCAs: pool,
			ClientCAs:  pool,
			ClientAuth: tls.RequireAndVerifyClientCert, Certificates: []tls.Certificate{
				{Certificate: [][]byte{der}, PrivateKey: key}}}
	}
}

// toAny returns the same settings for every peer.
func toAny(config func() *tls.Config) func(ring.ID) *tls.Config {
	return func(ring.ID) *tls.Config { return config() }
}

// tcpPair returns two nodes that reach each other over loopback. Close ends them.
func tcpPair(t testing.TB, one, two Options) (a, b *Peers) {
	t.Helper()
	addresses := map[ring.ID]string{}
	var listeners []net.Listener
	for _, o := range []*Options{&one, &two} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		addresses[o.Self] = l.Addr().String()
		o.Address = func(id ring.ID) []string { return []string{addresses[id]} }
	}
	a, b = start(t, one), start(t, two)
	a.Serve(listeners[0])
	b.Serve(listeners[1])
	return a, b
}
