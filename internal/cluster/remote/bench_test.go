package remote

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"testing"
	"time"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/peer"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/query/source"
)

// connect has the nodes reach each other over loopback.
func (w *world) connect(tb testing.TB) {
	tb.Helper()
	const version = 1
	addresses, listeners := map[ring.ID]string{}, make([]net.Listener, len(w.nodes))
	for i, n := range w.nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		w.must(err)
		listeners[i], addresses[n.id] = l, l.Addr().String()
	}
	peers, calls := make([]*peer.Peers, len(w.nodes)), make([]*call.Calls, len(w.nodes))
	for i, n := range w.nodes {
		var err error
		calls[i], err = call.New(call.Options{Boot: uint64(i) << 32, Running: 8, PerPeer: 8, Waiting: 64,
			Serve: n.remote.Serve,
			Send:  func(to ring.ID, frame []byte) bool { return peers[i].Send(to, version, frame) }})
		w.must(err)
		peers[i], err = peer.New(peer.Options{
			Self: n.id, Name: fmt.Sprint("n", i), Cluster: "test",
			Protocol: ring.Protocol{Min: version, Max: version},
			Cookie:   []byte("a cookie of enough bytes"), Address: func(id ring.ID) []string {
				return []string{addresses[id]}
			},
			Handler: func(from ring.ID, _ uint16, frame []byte) {
				if err := calls[i].Receive(from, frame); err != nil {
					tb.Error(err)
				}
			},
			Reached: func(id ring.ID, _ uint16, up bool) {
				if !up {
					calls[i].DropPeer(id)
				}
			},
			MaxFrame: call.MaxFrame, QueueBytes: 4 << 20, MaxPeers: 8, HalfOpen: 4,
			Handshake: 5 * time.Second, Alive: time.Second, Silence: 10 * time.Second,
			Backoff: peer.Backoff{First: 10 * time.Millisecond, Max: time.Second},
			Logger:  slog.New(slog.DiscardHandler),
		})
		w.must(err)
		peers[i].Serve(listeners[i])
		n.remote.o.Ask = calls[i].Ask
	}
	for i := range peers {
		for k, n := range w.nodes {
			if k == i {
				continue
			}
			w.must(peers[i].Connect(n.id))
			for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
				if _, ok := peers[i].Version(n.id); ok {
					break
				}
				if time.Now().After(deadline) {
					tb.Fatal("the nodes do not reach each other")
				}
			}
		}
	}
	tb.Cleanup(func() {
		for i := range peers {
			calls[i].Close()
		}
		for i := range peers {
			peers[i].Close()
		}
	})
}

// BenchmarkOneSeries is the greatest value of each minute of an hour, over loopback and from one
// store.
func BenchmarkOneSeries(b *testing.B) {
	w := newWorld(b, 3, 3, 2)
	for _, n := range append(w.nodes[:len(w.nodes):len(w.nodes)], w.one) {
		n.write("b", "m.1", 0, span, value(1))
		n.flush()
	}
	w.connect(b)
	for name, of := range map[string]source.Source{"store": w.one.source(),
		"nodes": w.nodes[0].remote.Source()} {
		b.Run(name, func(b *testing.B) {
			s, dst := seriesOf(b, of, "b", "m.1"), make([]chunk.Header, 60)
			for b.Loop() {
				if _, err := s.Aggregate(b.Context(), begin+3600, 60, dst); err != nil || dst[30].Count == 0 {
					b.Fatal(dst[30], err)
				}
			}
		})
	}
}

// BenchmarkManySeries is the average of each minute of an hour of 2,000 series.
func BenchmarkManySeries(b *testing.B) {
	const many = 2000
	w := newWorld(b, 3, 3, 2)
	for _, n := range append(w.nodes[:len(w.nodes):len(w.nodes)], w.one) {
		for i := range many {
			n.write("b", fmt.Sprintf("m.%d", i), 0, 7200, value(i%50))
		}
		n.flush()
	}
	w.connect(b)
	for name, of := range map[string]source.Source{"store": w.one.source(),
		"nodes": w.nodes[0].remote.Source()} {
		for _, together := range []int{8, 64, 256} {
			b.Run(fmt.Sprintf("%s/%d", name, together), func(b *testing.B) {
				bucket, err := of.Bucket("b")
				w.must(err)
				list, dst := make([]source.Series, many), make([]chunk.Header, 60)
				for i := range list {
					list[i] = bucket.Series(key(b, fmt.Sprintf("m.%d", i)))
				}
				for b.Loop() {
					for at := 0; at < many; at += together {
						err := of.Offers().Together.AggregateEach(context.Background(),
							list[at:min(at+together, many)], begin+3600, 60, dst,
							func(_ int, _ source.Cost, err error) error { return err })
						w.must(err)
					}
				}
			})
		}
	}
}
