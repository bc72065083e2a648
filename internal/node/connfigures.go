package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/ddbtcp"
)

// registerTCP adds the counters of the TCP server to /metrics.
func registerTCP(reg *prometheus.Registry, srv *ddbtcp.Server) {
	st := srv.Stats()
	registerConns(reg, "tcp", "TCP connections", srv.Connections())
	reg.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_tcp_requests_total",
			Help: "Request frames."},
			func() float64 { return float64(st.Requests.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_tcp_read_bytes_total",
			Help: "Bytes received over TCP."},
			func() float64 { return float64(st.BytesRead.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_tcp_flushes_total",
			Help: "Flushes of streams."},
			func() float64 { return float64(st.Flushes.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_tcp_coalescing",
			Help: "Streams whose small pieces are read together."},
			func() float64 { return float64(st.Coalescing.Load()) }),
	)
}

// registerConns adds the connections of a listener to /metrics.
func registerConns(reg *prometheus.Registry, listener, what string, set *conns.Set) {
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_" + listener + "_connections",
			Help: "Open " + what + "."},
			func() float64 { return float64(set.Open()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_" + listener +
			"_connections_limit", Help: "Limit of open " + what + "."},
			func() float64 { return float64(set.Limit()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_" + listener +
			"_accepted_total", Help: "Accepted " + what + "."},
			func() float64 { return float64(set.Accepted()) }),
	)
	for _, why := range conns.CutReasons() {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "dalmatiner_connections_cut_total",
			Help:        "Connections that the node ended by itself, by listener and reason.",
			ConstLabels: prometheus.Labels{"listener": listener, "reason": why},
		}, func() float64 { return float64(set.Cuts(why)) }))
	}
}
