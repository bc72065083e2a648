// Package gossip lets the nodes of a cluster agree on one ring, see which of them are up, and
// hold small values in common. It is the one package that imports grafana/dskit, and shows
// nothing of it.
package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/grafana/dskit/kv/memberlist"
	"github.com/grafana/dskit/services"
	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/cluster/ring"
)

// Options say which node this is, and how it finds the others.
type Options struct {
	Node      ring.Candidate // as this node describes itself; Free is not looked at
	Copies    int            // n of a cluster that this node founds
	Listen    string         // IP address and port for gossip; port 0 takes a free one
	Join      []string       // where others listen for gossip
	Cookie    string         // distributed_cookie, the same on all nodes
	FS        vfs.FS
	Dir       string // exists; the last ring is kept here
	Logger    *slog.Logger
	Heartbeat time.Duration // how often a node says that it is up
	Timeout   time.Duration // without a heartbeat it is down after this
	Values    []Value
}

// Node is this node among the others. Its methods may be called concurrently.
type Node struct {
	o      Options
	kv     *memberlist.KV
	codec  *sealedCodec
	values map[string]*sealedCodec
	stop   context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{}

	mu      sync.Mutex
	changed chan struct{}
	now     atomic.Pointer[snapshot]
	hasData atomic.Bool
	search  search

	// Of the loop.
	seen  map[ring.ID]heartbeat
	kept  *register
	rng   *rand.Rand
	tried string

	unkept string // why the last ring is not on disk
}

// snapshot is what callers are told. It never changes.
type snapshot struct {
	view    *ring.View
	up      map[ring.ID]bool
	refused []error
	nodes   map[ring.ID]*presence
}

// Open starts to gossip. A directory without a ring founds a cluster of one. That cluster gives way
// to one with data, or to the cluster of another empty node.
func Open(o Options) (*Node, error) {
	secrets, err := newSecrets(o.Cookie)
	if err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	n := &Node{o: o, wake: make(chan struct{}, 1), changed: make(chan struct{}),
		seen:   make(map[ring.ID]heartbeat),
		values: make(map[string]*sealedCodec), rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		search: search{missing: make(map[string]searchFailure)}}
	n.hasData.Store(o.Node.HasData)
	parser := &parser{}
	n.codec = &sealedCodec{id: "members", aead: secrets.aead,
		encode: func(v any) ([]byte, error) { return appendState(nil, v.(*state)), nil },
		decode: func(b []byte) (memberlist.Mergeable, error) {
			s, err := parser.state(b)
			if err != nil {
				return nil, err
			}
			return s, nil
		}}
	first, err := n.load()
	if err != nil {
		return nil, err
	}
	config, err := n.config(secrets.label)
	if err != nil {
		return nil, err
	}
	for i := range o.Values {
		c := secrets.valueCodec(&o.Values[i])
		n.values[o.Values[i].Name] = c
		config.Codecs = append(config.Codecs, c)
	}
	n.kv = memberlist.NewKV(config, newLogger(o.Logger), noDNS{}, prometheus.NewRegistry())
	// The ring is there before the first message of another node is.
	ctx, stop := context.WithCancel(context.Background())
	if err := n.kv.CAS(ctx, n.codec.id, n.codec, func(any) (any, bool, error) {
		return first, true, nil
	}); err != nil {
		stop()
		return nil, err
	}
	n.stop = stop
	if err := services.StartAndAwaitRunning(ctx, n.kv); err != nil {
		stop()
		return nil, fmt.Errorf("gossip on %s: %w", o.Listen, err)
	}
	for _, peer := range first.nodes { // those from before the stop
		n.o.Join = append(slices.Clip(n.o.Join), peer.gossip)
	}
	n.observe(first)
	n.done.Go(func() { n.run(ctx) })
	n.done.Go(func() { n.join(ctx) })
	n.done.Go(func() { n.pull(ctx) })
	n.done.Go(func() { n.watch(ctx, n.codec) })
	for _, c := range n.values {
		n.done.Go(func() { n.watch(ctx, c) })
	}
	return n, nil
}

// check refuses what others could not decode.
func (o *Options) check() error {
	c := &o.Node
	tooLong := func(s string) bool { return len(s) > maxText }
	switch {
	case c.ID == ring.ID{} || c.Name == "":
		return errors.New("gossip needs the id and the name of the node")
	case tooLong(c.Name) || tooLong(c.Zone) || slices.ContainsFunc(c.Addresses, tooLong):
		return fmt.Errorf("a name, zone or address of %s has more than %d bytes", c.Name, maxText)
	case len(c.Addresses) > maxAddresses:
		return fmt.Errorf("%s has %d addresses, at most %d are possible", c.Name, len(c.Addresses),
			maxAddresses)
	case o.Heartbeat <= 0 || o.Timeout <= o.Heartbeat:
		return fmt.Errorf("a heartbeat every %s does not go with a timeout of %s", o.Heartbeat, o.Timeout)
	}
	return nil
}

// pushPull is how often a node exchanges everything with another one.
const pushPull = 10 * time.Second

func (n *Node) config(label string) (c memberlist.KVConfig, err error) {
	host, text, err := net.SplitHostPort(n.o.Listen)
	if err != nil {
		return c, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return c, fmt.Errorf("the port of gossip, %s: %w", n.o.Listen, err)
	}
	c = memberlist.KVConfig{NodeName: n.o.Node.ID.String(), RandomizeNodeName: true,
		ClusterLabel:  label,
		StreamTimeout: 2 * time.Second, RetransmitMult: 4, PushPullInterval: pushPull, GossipNodes: 3,
		GossipInterval: min(200*time.Millisecond, n.o.Heartbeat), GossipToTheDeadTime: 30 * time.Second,
		LeaveTimeout: 2 * time.Second, BroadcastTimeoutForLocalUpdatesOnShutdown: time.Second,
		ReceivedMessagesQueueSize: 1024, ProcessedMessagesQueueSize: 1024, WatchPrefixBufferSize: 128}
	c.TCPTransport.BindAddrs = []string{host}
	c.TCPTransport.BindPort = int(port)
	c.TCPTransport.PacketDialTimeout, c.TCPTransport.PacketWriteTimeout = 2*time.Second, 5*time.Second
	// nodes that hang hold some
	c.TCPTransport.MaxConcurrentWrites, c.TCPTransport.AcquireWriterTimeout = 32, 250*time.Millisecond
	c.Codecs = append(c.Codecs, n.codec)
	return c, nil
}

// noDNS: addresses to join are given as they are.
type noDNS struct{}

func (noDNS) Resolve(context.Context, []string) error { return nil }
func (noDNS) Addresses() []string                     { return nil }

// Addr returns where this node listens for gossip.
func (n *Node) Addr() string {
	host, _, _ := net.SplitHostPort(n.o.Listen) // Open has split it
	return net.JoinHostPort(host, strconv.Itoa(n.kv.GetListeningPort()))
}

// View returns the ring as this node knows it.
func (n *Node) View() *ring.View { return n.now.Load().view }

// IsUp reports whether a heartbeat of a node came within the timeout. This node is up.
func (n *Node) IsUp(id ring.ID) bool { return n.now.Load().up[id] }

// Addresses returns where a node says that it is reached, which may be others than when it joined.
func (n *Node) Addresses(id ring.ID) []string {
	if p := n.now.Load().nodes[id]; p != nil {
		return slices.Clone(p.node.Addresses)
	}
	return nil
}

// JoinErrors says which nodes that want to join cannot, by name, and what to do about it.
func (n *Node) JoinErrors() []error { return n.now.Load().refused }

// Candidates returns the nodes that are up and have no share, in the order of their ids.
func (n *Node) Candidates() (out []ring.Candidate) {
	s := n.state()
	if s == nil {
		return nil
	}
	for id, p := range s.nodes {
		if m, is := s.ring.view.Member(id); n.IsUp(id) && (!is || m.State == ring.Pending) {
			out = append(out, p.node)
		}
	}
	slices.SortFunc(out, func(a, b ring.Candidate) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return out
}

// ChangeSignal returns a channel that is closed at the next change of View, IsUp, JoinErrors or a
// value. Who takes it before looking misses none.
func (n *Node) ChangeSignal() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *Node) announce() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

// Commit replaces the ring by what change makes of it, and tells the others. A change that was
// planned for another ring is refused with ring.ErrStale: View.Commit does that, so give
// func(v *ring.View) (*ring.View, error) { return v.Commit(plan) }, or (*ring.View).Finish.
// A commit on the other side of a network partition may still win afterwards: then the View
// that is announced has another Version.
func (n *Node) Commit(ctx context.Context, change func(*ring.View) (*ring.View, error)) error {
	return n.update(ctx, func(g *register) (*register, error) {
		next, err := change(g.view)
		if err != nil {
			return nil, err
		}
		if next.Version().Number != g.view.Version().Number+1 {
			return nil, fmt.Errorf("%w: %s does not follow %s", ring.ErrStale, next.Version(),
				g.view.Version())
		}
		return &register{g.origin, g.firm, next}, nil
	})
}

// HasData says that this node is about to hold data: call it before the first. From then on its
// cluster admits nobody by itself, and gives way to no other.
func (n *Node) HasData(ctx context.Context) error {
	n.hasData.Store(true)
	return n.update(ctx, func(g *register) (*register, error) {
		if g.firm {
			return nil, nil
		}
		return &register{g.origin, true, g.view}, nil
	})
}

// update changes the ring; nil leaves it as it is.
func (n *Node) update(ctx context.Context, change func(*register) (*register, error)) error {
	var (
		refused    error // dskit wraps no errors
		last, next *register
	)
	err := n.kv.CAS(ctx, n.codec.id, n.codec, func(in any) (any, bool, error) {
		// It is called again when heartbeats came meanwhile, a bounded number of times. Plans take longer
		// than heartbeats: the ring is as it was, so the first answer still holds.
		if g := in.(*state).ring; g != last {
			last = g
			next, refused = change(g)
		}
		if refused != nil || next == nil {
			return nil, false, nil
		}
		return &state{ring: next}, true, nil
	})
	if refused != nil {
		return refused
	}
	if err == nil {
		n.poke()
	}
	return err
}

func (n *Node) poke() {
	select {
	case n.wake <- struct{}{}:
	default: // it is awake
	}
}

// Close ends gossip. The node stays a member.
func (n *Node) Close() error {
	n.stop()
	err := services.StopAndAwaitTerminated(context.Background(), n.kv)
	n.done.Wait()
	return err
}
