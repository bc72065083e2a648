// Package ddbudp takes points over UDP in the form of early versions of DalmatinerDB:
// datagrams of entries for one bucket. It never sends an answer. DESIGN.md has the bytes.
package ddbudp

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
)

// maxBuckets is how many buckets one listener keeps a stream for. Senders of
// more make it open streams anew, which costs a lookup for every series.
const maxBuckets = 64

// Options configures a server. Points, Account and Logger are required.
type Options struct {
	Points  write.Target
	Account *account.Account // that refused datagrams are counted in
	Logger  *slog.Logger
	Monitor *monitor.Recorder // may be nil
}

// Stats counts what the server did. The fields only grow.
type Stats struct {
	Datagrams atomic.Int64 // refused ones included
	BytesRead atomic.Int64
}

// Server takes the datagrams of a set of sockets.
type Server struct {
	o        Options
	socks    *datagram.Sockets
	log      *loglimit.Logger
	refusals *unacked.Refusals
	stats    Stats
}

// New returns a server for the sockets, which are its own from now on.
func New(o Options, socks *datagram.Sockets) *Server {
	log := loglimit.New(o.Logger, time.Now)
	return &Server{o: o, socks: socks, log: log, refusals: unacked.NewRefusals("udp", o.Account, log)}
}

// Stats returns the server's counters.
func (s *Server) Stats() *Stats { return &s.stats }

// KernelDrops returns how many datagrams the kernel dropped because they came
// faster than they were read.
func (s *Server) KernelDrops() uint64 { return s.socks.Drops() }

// Serve reads all sockets until their owner closes them, when it returns nil and
// what was read is in the store, or until one of them or the store fails.
func (s *Server) Serve() error {
	defer s.log.Close()
	return s.socks.Serve(s.listen)
}

// listener reads one socket.
type listener struct {
	s       *Server
	buckets map[string]*sender
	points  []write.Point // of a datagram
	clock   uint64        // datagrams so far
}

// sender is the way into one bucket.
type sender struct {
	bucket *unacked.Bucket
	used   uint64 // clock of the last datagram
}

func (s *Server) listen(c *net.UDPConn) error {
	l := &listener{s: s, buckets: make(map[string]*sender)}
	err := l.loop(c)
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	for _, b := range l.buckets {
		err = errors.Join(err, b.bucket.Close())
	}
	return err
}

func (l *listener) loop(c *net.UDPConn) error {
	buf := make([]byte, datagram.MaxPayload)
	for {
		n, peer, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		l.s.stats.Datagrams.Add(1)
		l.s.stats.BytesRead.Add(int64(n))
		if err := l.take(buf[:n], peer); err != nil {
			return err
		}
	}
}

// take stores the points of one datagram, all or none.
func (l *listener) take(src []byte, peer netip.AddrPort) error {
	bucket, entries, err := parse(src)
	if err != nil {
		l.s.refusals.Count(reason(err), peer, []byte(err.Error()))
		return nil
	}
	b, err := l.bucket(bucket)
	if err != nil {
		return err
	}
	stream, _, err := b.Stream()
	if err != nil {
		why, ok := unacked.Refused(err)
		if !ok {
			return err
		}
		l.s.refusals.Count(why, peer, []byte(err.Error()))
		return nil
	}
	l.points = l.points[:0]
	for len(entries) > 0 {
		var e entry
		if e, entries = nextEntry(entries); len(e.data) == point.Size {
			l.points = append(l.points, write.Point{Key: e.key, Slot: e.slot, Word: point.Get(e.data)})
			continue
		}
		stream.Append(l.points)
		l.points = l.points[:0]
		stream.Points(e.key, e.slot, e.data)
	}
	stream.Append(l.points)
	return b.Commit()
}

// bucket returns the way into a bucket; the one that was used longest ago
// makes room for a new one.
func (l *listener) bucket(name []byte) (*unacked.Bucket, error) {
	l.clock++
	if b := l.buckets[string(name)]; b != nil {
		b.used = l.clock
		return b.bucket, nil
	}
	if len(l.buckets) >= maxBuckets {
		var oldest string
		for name, b := range l.buckets {
			if o := l.buckets[oldest]; o == nil || b.used < o.used {
				oldest = name
			}
		}
		if err := l.buckets[oldest].bucket.Close(); err != nil {
			return nil, err
		}
		delete(l.buckets, oldest)
	}
	b := &sender{bucket: unacked.NewBucket(l.s.o.Points, string(name), l.s.o.Monitor), used: l.clock}
	b.bucket.NeverWait()
	l.buckets[string(name)] = b
	return b.bucket, nil
}
