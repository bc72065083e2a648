package httpapi

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/httpapi/figures"
)

// served counts what this package answers.
type served struct {
	queries  prometheus.Histogram
	requests *prometheus.CounterVec
}

// newServed registers the figures of a handler. Two handlers cannot share a
// registry.
func newServed(reg prometheus.Registerer, running func() float64) *served {
	s := &served{
		queries: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: figures.Namespace + "http_query_seconds", Help: "Time that queries ran, without the wait for their turn and the answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: figures.Namespace + "http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"route", "status"}),
	}
	reg.MustRegister(s.queries, s.requests, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: figures.Namespace + "http_queries_running", Help: "Queries that run now.",
	}, running))
	return s
}

// count counts an answer. An answer without a status was given to nobody.
func (s *served) count(route string, status int) {
	if status == 0 {
		status = statusClientGone
	}
	s.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}
