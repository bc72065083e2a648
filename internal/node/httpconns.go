package node

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/ingest/conns"
)

// httpConns are the connections of the HTTP server.
type httpConns struct {
	*conns.Set
	turned atomic.Int64
}

// newHTTPConns returns a set of at most limit connections. HTTP clients know that
// an idle connection may be closed, so that one makes room after a second.
func newHTTPConns(limit int, log *loglimit.Logger) *httpConns {
	c := &httpConns{}
	c.Set = conns.New(conns.Options{
		Listener: "http", Limit: limit, Log: log, Grace: time.Second,
		Full: func(net.Conn) { c.turned.Add(1) },
	})
	return c
}

// register adds the connections to /metrics.
func (c *httpConns) register(reg *prometheus.Registry) {
	registerConns(reg, "http", "HTTP connections", c.Set)
	reg.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "dalmatiner_http_connections_refused_total",
			Help: "HTTP connections closed because too many were open and none idle."},
		func() float64 { return float64(c.turned.Load()) }))
}
