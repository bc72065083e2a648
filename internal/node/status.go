package node

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/api/admin"
)

// status is what the node knows of itself beside its store.
type status struct {
	read atomic.Int64 // slots read by queries

	mu                sync.Mutex
	began             time.Time
	tcpAddr, httpAddr string
	in, out           float64 // per second, of the last second
	stored, slots     int64   // at its end
}

// begin notes when and where the node began to answer.
func (s *status) begin(n *node, tcpAddr, httpAddr net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = time.Now()
	s.tcpAddr, s.httpAddr = tcpAddr.String(), httpAddr.String()
	s.stored = n.stored()
}

// follow measures the rates once a second until ctx ends. The function it
// returns waits for that.
func (s *status) follow(ctx context.Context, n *node) (wait func()) {
	var done sync.WaitGroup
	done.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for last := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				now := time.Now()
				s.measure(n.stored(), now.Sub(last).Seconds())
				n.listeners.countDrops(n.store.Account())
				last = now
			}
		}
	})
	return done.Wait
}

func (s *status) measure(stored int64, took float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.read.Load()
	s.in, s.out = float64(stored-s.stored)/took, float64(slots-s.slots)/took
	s.stored, s.slots = stored, slots
}

// stored returns the points stored in all buckets there ever were.
func (n *node) stored() (points int64) {
	for _, c := range n.store.Account().Totals() {
		points += int64(c.StoredPoints())
	}
	return points
}

// report is the state of the node for an operator.
func (n *node) report() admin.Status {
	st := n.store.Stats()
	s := &n.status
	s.mu.Lock()
	defer s.mu.Unlock()
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return admin.Status{
		Version: n.cfg.Version, Node: n.cfg.Node, Ready: n.up.Load() &&
			(n.cluster == nil || n.cluster.JoinError() == nil), DataDir: absolute(n.cfg.DataDir),
		UptimeS: time.Since(s.began).Seconds(), TCPAddr: s.tcpAddr, HTTPAddr: s.httpAddr,
		StatusNeighbours: admin.StatusNeighbours{Cluster: n.cluster.line(), Ducks: n.ducksAddress(),
			Scrapes: n.scrapeBucket()},
		Buckets: st.Buckets, Series: st.Series, PointsIn: s.in, PointsOut: s.out,
		RSSBytes: residentBytes(), HeapBytes: int64(heap[0].Value.Uint64()),
		HeadBytes: st.Head.Bytes + st.Head.Warm + st.Head.Sealed + st.Head.Late,
		StatusMemory: admin.StatusMemory{
			MemoryLimit: st.Memory.Limit,
			MemoryUsed:  st.Memory.Used,
			MemoryLevel: st.Memory.Level.String(),
			SendersHeld: st.Senders.Held,
		},
		Segments: st.Segments.Count, SegmentBytes: st.Segments.Bytes,
		SegmentPoints: st.Segments.Points,
		WALSync:       n.cfg.WALSync, WALBytes: st.WALBytes, WALUnsynced: st.WAL.Unsynced,
		Flushes: st.Flushes.Count, SinceFlushS: st.Flushes.Since.Seconds(),
		FreeDisk: st.FreeDisk, DiskFull: st.DiskFull, Damage: st.Damage,
	}
}

// absolute returns the whole path of a directory: another process may have another one of its name.
func absolute(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		return whole
	}
	return dir
}

// residentBytes is the memory of the process as the kernel counts it, 0 where
// it does not say.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// warnExposed says what a listener beyond this machine means as long as there
// is nothing that a client must know to be let in. can is what a client does
// there.
func (n *node) warnExposed(key string, addr net.Addr, can string) {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return // not an address of a network
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return
	}
	n.logger.Warn("anyone who reaches this port can "+can+": keep it behind a firewall, or listen "+
		"on 127.0.0.1",
		"key", key, "addr", addr.String())
}
