// Package statsd takes the lines of StatsD and DogStatsD over UDP, TCP and a unix socket, adds up
// what came in an interval, and stores one point for each result. It never sends an answer: it
// counts what it refuses under statsd_<reason>, logs a sample, and reads on. DESIGN.md says what
// becomes of each type.
package statsd

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/lines"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/write"
)

// Options configure a server. Those up to Logger are required; zero limits take their defaults.
type Options struct {
	Points  write.Target
	Tags    write.Tagger
	Events  Events
	Memory  *memory.Budget
	Account *account.Account // that refused lines are counted in
	Now     func() time.Time
	Logger  *slog.Logger
	Monitor *monitor.Recorder // may be nil

	Bucket         string        // of points and events
	Interval       time.Duration // 10 s; at least the resolution of the bucket
	Percentiles    []float64     // of distributions; none
	MaxSeries      int           // that are added up at a time; 100,000
	MaxConnections int           // 1024
	Idle           time.Duration // of connections; 0 keeps them
}

// Events is where events go: an events.Store.
type Events interface {
	Write(bucket string, list []events.Event) (events.Written, error)
}

// Defaults of the options, and how long a silent series is kept.
const (
	defaultInterval       = 10 * time.Second
	defaultMaxSeries      = 100_000
	defaultMaxConnections = 1024

	silentSeries = 5 * time.Minute
	silentGauge  = time.Hour
)

// Server serves connections and sockets. Run must run beside them.
type Server struct {
	o        Options
	log      *loglimit.Logger
	refusals *unacked.Refusals
	lines    *lines.Server
	packets  datagram.Group
	readers  sync.WaitGroup // of sockets
	stats    Stats

	table *table
	queue queue

	writer writer
	stop   chan struct{}
	done   chan struct{} // Run has ended
}

// Stats counts what the server did. The fields only grow.
type Stats struct {
	Samples   atomic.Int64 // lines, refused ones and events included
	Datagrams atomic.Int64
	BytesRead atomic.Int64 // in datagrams
	Flushes   atomic.Int64
}

// New returns a server that serves nothing yet.
func New(o Options) *Server {
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	o.MaxSeries = cmp.Or(o.MaxSeries, defaultMaxSeries)
	s := &Server{o: o, log: loglimit.New(o.Logger, time.Now), stop: make(chan struct{}),
		done: make(chan struct{}), queue: queue{kick: make(chan struct{}, 1)}}
	s.refusals = unacked.NewRefusals("statsd", o.Account, s.log)
	s.lines = lines.New(lines.Options{
		Listener: "statsd", Limit: cmp.Or(o.MaxConnections, defaultMaxConnections),
		LimitKey: "statsd.max_connections", Memory: o.Memory, Log: s.log, Refusals: s.refusals,
		Idle: o.Idle, Open: func(nc *conns.Conn) lines.Sender {
			return &sender{s: s, peer: conns.PeerOf(nc)}
		},
	})
	s.table = newTable(limits{series: o.MaxSeries, kept: mostKept,
		idle: int(silentSeries / o.Interval), idleGauge: int(silentGauge / o.Interval)})
	s.writer = newWriter(&s.o, labels.NewTagger(o.Tags, o.Memory, "statsd", s.refusals))
	o.Memory.Add(memory.Pool{
		Name:  "statsd-series",
		Holds: "series and values of the interval under way; beyond statsd.max_series samples are refused",
		Use:   s.table.bytes,
	})
	return s
}

// Stats returns the server's counters.
func (s *Server) Stats() *Stats { return &s.stats }

// Series returns how many series are added up now.
func (s *Server) Series() int { return s.table.size() }

// Lines returns the server of connections.
func (s *Server) Lines() *lines.Server { return s.lines }

// Serve accepts connections until the listener fails or is closed, when it returns nil.
func (s *Server) Serve(ln net.Listener) error { return s.lines.Serve(ln) }

// ServePackets takes lines from the sockets until they are closed or drained, when it returns nil.
// It closes them when one of them fails.
func (s *Server) ServePackets(socks *datagram.Sockets) error {
	s.readers.Add(1)
	defer s.readers.Done()
	return s.packets.Serve(socks, func(nc *net.UDPConn) error {
		return s.readPackets(nc.ReadFromUDPAddrPort)
	})
}

// ServeSocket is ServePackets for a unix socket of datagrams.
func (s *Server) ServeSocket(nc *net.UnixConn) error {
	s.readers.Add(1)
	defer s.readers.Done()
	return s.readPackets(func(buf []byte) (int, netip.AddrPort, error) {
		n, err := nc.Read(buf)
		return n, netip.AddrPort{}, err
	})
}

// KernelDrops returns how many datagrams the kernel dropped because they came faster than they
// were read.
func (s *Server) KernelDrops() uint64 { return s.packets.Drops() }

// Shutdown closes all connections, waits for the sockets, and for Run to store the interval under
// way. The caller closes or drains listeners and sockets first.
func (s *Server) Shutdown() {
	s.writer.cancel()
	s.lines.Shutdown()
	s.readers.Wait()
	close(s.stop)
	<-s.done
	s.log.Close()
}

// WaitSockets waits for the ends of ServePackets and ServeSocket.
func (s *Server) WaitSockets() { s.readers.Wait() }

func (s *Server) readPackets(read func([]byte) (int, netip.AddrPort, error)) error {
	buf := make([]byte, datagram.MaxPayload)
	from := sender{s: s}
	for {
		n, peer, err := read(buf)
		if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		s.stats.Datagrams.Add(1)
		s.stats.BytesRead.Add(int64(n))
		from.peer = peer
		from.packet(buf[:n])
	}
}

// sender takes the lines of one connection or socket. It is not for concurrent use.
type sender struct {
	s     *Server
	peer  netip.AddrPort
	count int64
	line  sample
	event occurrence
}

// packet takes all lines of a datagram.
func (f *sender) packet(data []byte) {
	_ = f.Begin()
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		if line = bytes.TrimSuffix(line, []byte{'\r'}); len(line) > 0 {
			f.Line(line)
		}
		data = rest
	}
	_ = f.Commit()
}

// Begin takes the table for the lines of a read.
func (f *sender) Begin() error {
	f.s.table.mu.Lock()
	return nil
}

// Commit gives the table back.
func (f *sender) Commit() error {
	f.s.table.mu.Unlock()
	f.s.stats.Samples.Add(f.count)
	f.count = 0
	return nil
}

// Close does nothing: all that came is in the table.
func (f *sender) Close() error { return nil }

// Line takes a line. It always goes on.
func (f *sender) Line(line []byte) bool {
	f.count++
	if reason := f.take(line); reason != "" {
		f.s.refusals.Count(reason, f.peer, line)
	}
	return true
}

// take takes a line, or says why it is refused.
func (f *sender) take(line []byte) (reason string) {
	switch {
	case len(line) > lines.MaxLine:
		return "line_too_long"
	case isOccurrence(line):
		if f.event.parse(line) != nil {
			return "bad_event"
		}
		return f.s.queue.add(line)
	}
	m := &f.line
	if m.parse(line) != nil {
		return badLine
	}
	if !m.timed {
		return f.s.table.add(m)
	}
	if !m.eachValue(func([]byte, number) {}) {
		return badLine
	}
	return f.s.queue.add(line)
}

// queue is lines that are stored at once, on their way to the writer.
type queue struct {
	mu     sync.Mutex
	lines  []byte
	closed bool
	kick   chan struct{} // the writer is told of the first line
}

// maxQueue bounds the bytes of a queue.
const maxQueue = 4 << 20

// add takes a line, or says why it is refused.
func (q *queue) add(line []byte) (reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return shutDown
	case len(q.lines)+len(line) >= maxQueue:
		return queueFull
	}
	q.lines = append(append(q.lines, line...), '\n')
	select {
	case q.kick <- struct{}{}:
	default:
	}
	return ""
}

// take returns all lines, in exchange for a buffer.
func (q *queue) take(buf []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.lines
	q.lines = buf[:0]
	return list
}

// close refuses what comes from now on.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}
