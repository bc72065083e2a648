package node

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/ingest/statsd"
)

// statsDListener takes lines of StatsD over TCP, UDP and a unix socket. A nil one is off.
type statsDListener struct {
	text    net.Listener      // nil when off
	packets *datagram.Sockets // nil when off
	unix    *net.UnixConn     // nil when off
	path    string            // of the unix socket
	server  *statsd.Server    // once it serves
}

// openStatsD opens the sockets; it returns nil where the listener is off.
func openStatsD(c *config.Config) (*statsDListener, error) {
	l := &statsDListener{path: c.StatsD.Socket}
	if c.StatsD.Addr == "" && l.path == "" {
		return nil, nil
	}
	var err error
	if c.StatsD.Addr != "" {
		l.text, l.packets, err = listenBoth("statsd.addr", c.StatsD.Addr, int(c.UDPReadBuffer))
		if err != nil {
			return nil, err
		}
	}
	if l.path != "" {
		if l.unix, err = listenUnix(l.path, int(c.UDPReadBuffer)); err != nil {
			return nil, errors.Join(fmt.Errorf("statsd.socket: %w", err), l.close())
		}
	}
	return l, nil
}

// socketMode lets every program of the machine send, as it can to a port of the loopback.
const socketMode = 0o722

// listenUnix opens a unix socket of datagrams. One that a crash has left is replaced; one of a
// program that runs is not.
func listenUnix(path string, buffer int) (*net.UnixConn, error) {
	addr := &net.UnixAddr{Name: path, Net: "unixgram"}
	nc, err := net.ListenUnixgram("unixgram", addr)
	if errors.Is(err, syscall.EADDRINUSE) && isAbandoned(addr) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		nc, err = net.ListenUnixgram("unixgram", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; choose another path with --set statsd.socket=PATH", err)
	}
	if err := errors.Join(os.Chmod(path, socketMode), nc.SetReadBuffer(buffer)); err != nil {
		return nil, errors.Join(err, nc.Close(), os.Remove(path))
	}
	return nc, nil
}

// isAbandoned reports whether a path is a socket that no program reads from.
func isAbandoned(addr *net.UnixAddr) bool {
	info, err := os.Lstat(addr.Name)
	if err != nil || info.Mode()&fs.ModeSocket == 0 {
		return false
	}
	nc, err := net.DialUnix("unixgram", nil, addr)
	if err == nil {
		_ = nc.Close() // it was opened to see whether it can be
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// drainTime is how long a stop reads on, for the datagrams that the kernel has.
const drainTime = 50 * time.Millisecond

// drain ends the reads of datagrams, behind those that have arrived.
func (l *statsDListener) drain() {
	if l == nil {
		return
	}
	end := time.Now().Add(drainTime)
	if l.packets != nil {
		for _, nc := range l.packets.Conns() {
			_ = nc.SetReadDeadline(end) // a socket that has failed has ended the node already
		}
	}
	if l.unix != nil {
		_ = l.unix.SetReadDeadline(end)
	}
	l.server.WaitSockets()
}

// close closes the sockets.
func (l *statsDListener) close() error {
	if l == nil {
		return nil
	}
	var errs []error
	if l.text != nil {
		errs = append(errs, l.text.Close(), l.packets.Close())
	}
	if l.unix != nil {
		errs = append(errs, l.unix.Close(), os.Remove(l.path))
	}
	return errors.Join(errs...)
}

// serve serves all sockets; start runs a server until it ends.
func (l *statsDListener) serve(n *node, start func(what string, serve func() error)) {
	if l == nil {
		return
	}
	c := n.cfg.StatsD
	_, shared := n.shared()
	l.server = statsd.New(statsd.Options{
		Points: n.points, Tags: n.tagger(), Events: shared, Memory: n.store.Memory(),
		Account: n.store.Account(), Now: n.store.Now, Logger: n.logger, Monitor: n.rec,
		Bucket: c.Bucket, Interval: c.Interval, Percentiles: c.Percentiles, MaxSeries: c.MaxSeries,
		MaxConnections: c.MaxConnections, Idle: c.Idle,
	})
	start("statsd flushes", l.server.Run)
	if l.text != nil {
		start("statsd listener", func() error { return l.server.Serve(l.text) })
		start("statsd UDP socket", func() error { return l.server.ServePackets(l.packets) })
		n.logger.Info("statsd lines", "addr", l.text.Addr().String(), "bucket", c.Bucket)
		n.warnExposed("statsd.addr", l.text.Addr(), "write")
		n.reportBuffer(l.packets)
	}
	if l.unix != nil {
		start("statsd unix socket", func() error { return l.server.ServeSocket(l.unix) })
		n.logger.Info("statsd socket", "path", l.path, "bucket", c.Bucket)
	}
}

// shutdown ends the connections, and stores the interval under way. The sockets are closed.
func (l *statsDListener) shutdown() {
	if l != nil {
		l.server.Shutdown()
	}
}

// register adds the counters to /metrics.
func (l *statsDListener) register(reg *prometheus.Registry) {
	if l == nil {
		return
	}
	st := l.server.Stats()
	registerConns(reg, "statsd", "connections of StatsD senders", l.server.Lines().Connections())
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_statsd_series",
		Help: "Series of StatsD that are added up now."},
		func() float64 { return float64(l.server.Series()) }))
	registerCounters(reg, []senderCounter{
		{"statsd_read_bytes_total", "Bytes received from StatsD senders.", func() int64 {
			return st.BytesRead.Load() + l.server.Lines().Stats().BytesRead.Load()
		}},
		{"statsd_samples_total", "Lines of StatsD received, refused ones included.", st.Samples.Load},
		{"statsd_datagrams_total", "Datagrams of StatsD received.", st.Datagrams.Load},
		{"statsd_flushes_total", "Intervals of StatsD that were stored.", st.Flushes.Load},
		{"statsd_udp_kernel_drop_total",
			"Datagrams of StatsD that the kernel dropped because they came too fast.",
			func() int64 { return int64(l.server.KernelDrops()) }},
	})
}
