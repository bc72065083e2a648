package node

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// httpConns counts the connections of an HTTP server and closes those beyond a
// limit before anything is read from them.
type httpConns struct {
	limit  int64
	open   atomic.Int64
	turned atomic.Int64
}

// watch makes the server report its connections.
func (c *httpConns) watch(s *http.Server) {
	s.ConnState = func(nc net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if c.open.Add(1) > c.limit {
				c.turned.Add(1)
				_ = nc.Close() // the server finds it closed, and says so next
			}
		case http.StateClosed, http.StateHijacked:
			c.open.Add(-1)
		}
	}
}

// register adds the connections to /metrics.
func (c *httpConns) register(reg *prometheus.Registry) {
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_http_connections", Help: "Open HTTP connections."},
			func() float64 { return float64(c.open.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_http_connections_limit", Help: "Limit of open HTTP connections."},
			func() float64 { return float64(c.limit) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_http_connections_refused_total", Help: "HTTP connections closed because too many were open."},
			func() float64 { return float64(c.turned.Load()) }),
	)
}
