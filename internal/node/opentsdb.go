package node

import (
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/ingest/opentsdb"
)

// openTSDBListener takes lines of OpenTSDB over TCP. A nil one is off.
type openTSDBListener struct {
	text   net.Listener
	server *opentsdb.Telnet // once it serves
}

// openOpenTSDB opens the socket; it returns nil where the listener is off.
func openOpenTSDB(c *config.Config) (*openTSDBListener, error) {
	if c.OpenTSDB.Addr == "" {
		return nil, nil
	}
	ln, err := listen("opentsdb.addr", c.OpenTSDB.Addr)
	if err != nil {
		return nil, err
	}
	return &openTSDBListener{text: ln}, nil
}

// serve serves the socket; start runs a server until it ends.
func (l *openTSDBListener) serve(n *node, start func(what string, serve func() error)) {
	if l == nil {
		return
	}
	c := n.cfg.OpenTSDB
	l.server = opentsdb.NewTelnet(opentsdb.Options{
		Points: n.points, Tags: n.tagger(), Memory: n.store.Memory(), Account: n.store.Account(),
		Logger: n.logger, Monitor: n.rec, Now: n.store.Now, Bucket: c.Bucket, Version: n.cfg.Version,
		MaxConnections: c.MaxConnections, Idle: c.Idle,
	})
	start("opentsdb listener", func() error { return l.server.Serve(l.text) })
	n.logger.Info("opentsdb lines", "addr", l.text.Addr().String(), "bucket", c.Bucket)
	n.warnExposed("opentsdb.addr", l.text.Addr(), "write")
}

// shutdown ends the connections. The socket is closed.
func (l *openTSDBListener) shutdown() {
	if l != nil {
		l.server.Shutdown()
	}
}

// register adds the counters to /metrics.
func (l *openTSDBListener) register(reg *prometheus.Registry) {
	if l == nil {
		return
	}
	st := l.server.Stats()
	registerConns(reg, "opentsdb", "connections of OpenTSDB senders", l.server.Connections())
	registerCounters(reg, []senderCounter{
		{"opentsdb_read_bytes_total", "Bytes received in lines of OpenTSDB.", st.BytesRead.Load},
		{"opentsdb_lines_total", "Lines of OpenTSDB received, refused ones included.", st.Lines.Load},
	})
}

// senderCounter is a figure of /metrics that only grows.
type senderCounter struct {
	name, help string
	value      func() int64
}

// registerCounters adds counters to /metrics.
func registerCounters(reg *prometheus.Registry, list []senderCounter) {
	for _, c := range list {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_" + c.name,
			Help: c.help}, func() float64 { return float64(c.value()) }))
	}
}
