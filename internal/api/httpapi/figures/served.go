package figures

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Served counts what HTTP answers.
type Served struct {
	Queries  prometheus.Histogram
	requests *prometheus.CounterVec
}

// NewServed registers the figures of a handler; running gives the queries that run now. Two
// handlers cannot share a registry.
func NewServed(reg prometheus.Registerer, running func() float64) *Served {
	s := &Served{
		Queries: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: Namespace + "http_query_seconds",
			Help: "Time that queries ran, without the wait for their turn and the answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5,
				5, 10, 30, 60},
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: Namespace + "http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"route", "status"}),
	}
	reg.MustRegister(s.Queries, s.requests, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: Namespace + "http_queries_running", Help: "Queries that run now.",
	}, running))
	return s
}

// Count counts an answer.
func (s *Served) Count(route string, status int) {
	s.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}
