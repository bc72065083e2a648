package node

import (
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/ingest/syslog"
)

// syslogListener takes messages of syslog over TCP and UDP. A nil one is off.
type syslogListener struct {
	text    net.Listener
	packets *datagram.Sockets
	server  *syslog.Server // once it serves
}

// openSyslog opens the sockets; it returns nil where syslog is off.
func openSyslog(c *config.Config) (*syslogListener, error) {
	if c.Syslog.Addr == "" {
		return nil, nil
	}
	ln, socks, err := listenBoth("syslog.addr", c.Syslog.Addr, int(c.UDPReadBuffer))
	if err != nil {
		return nil, err
	}
	return &syslogListener{text: ln, packets: socks}, nil
}

// serve serves both sockets; start runs a server until it ends.
func (l *syslogListener) serve(n *node, start func(what string, serve func() error)) {
	if l == nil {
		return
	}
	c := n.cfg.Syslog
	_, shared := n.shared()
	l.server = syslog.New(syslog.Options{
		Events: shared, Buckets: n.points, Memory: n.store.Memory(), Account: n.store.Account(),
		Now:    n.store.Now,
		Logger: n.logger, Bucket: c.Bucket, Zone: c.Zone, MaxFuture: n.cfg.MaxFuture, Ahead: n.ahead,
		MaxConnections: c.MaxConnections, Idle: c.Idle, InputStall: n.cfg.InputStall,
	})
	start("syslog listener", func() error { return l.server.Serve(l.text) })
	start("syslog UDP socket", func() error { return l.server.ServePackets(l.packets) })
	n.logger.Info("syslog messages", "addr", l.text.Addr().String(), "bucket", c.Bucket)
	n.warnExposed("syslog.addr", l.text.Addr(), "write")
	n.reportBuffer(l.packets)
}

// shutdown ends the connections. The sockets are closed.
func (l *syslogListener) shutdown() {
	if l != nil {
		l.server.Shutdown()
	}
}

// register adds the counters to /metrics.
func (l *syslogListener) register(reg *prometheus.Registry) {
	if l == nil {
		return
	}
	st := l.server.Stats()
	registerConns(reg, "syslog", "connections of syslog senders", l.server.Connections())
	for _, c := range []struct {
		name, help string
		value      func() float64
	}{
		{"syslog_read_bytes_total", "Bytes received from syslog senders.", func() float64 {
			return float64(st.BytesRead.Load())
		}},
		{"syslog_messages_total", "Messages of syslog received, refused ones included.", func() float64 {
			return float64(st.Messages.Load())
		}},
		{"syslog_ahead_total",
			"Messages of syslog stored with the time of arrival, because theirs was too far ahead.",
			func() float64 {
				return float64(st.Ahead.Load())
			}},
		{"syslog_udp_kernel_drop_total",
			"Datagrams of syslog that the kernel dropped because they came too fast.", func() float64 {
				return float64(l.server.KernelDrops())
			}},
	} {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_" + c.name,
			Help: c.help}, c.value))
	}
}

// listenBoth takes one port for TCP and UDP.
func listenBoth(key, addr string, buffer int) (net.Listener, *datagram.Sockets, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, err
	}
	for try := 1; ; try++ {
		ln, err := listen(key, addr)
		if err != nil {
			return nil, nil, err
		}
		socks, err := datagram.Listen(ln.Addr().String(), 1, buffer)
		if err == nil {
			return ln, socks, nil
		}
		closed := ln.Close()
		if port != "0" || try == portTries || closed != nil {
			return nil, nil, fmt.Errorf("%s: %w; choose another address with --set %s=HOST:PORT", key, err,
				key)
		}
	}
}
