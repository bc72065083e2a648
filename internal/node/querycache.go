package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/resultcache"
)

// newQueryCache returns the cache for results of queries as the configuration has it, and
// counts it in the budget; nil for none.
func newQueryCache(c *config.Config, b *memory.Budget) *query.Cache {
	cache := query.NewCache(b.Share(16, c.QueryCache))
	b.Add(memory.Pool{
		Name:  "query-results",
		Holds: "results of queries that may be asked again",
		Limit: cache.Limit(),
		Use:   cache.Bytes,
	})
	return cache
}

// registerQueryCache adds the figures of the cache to /metrics.
func registerQueryCache(reg *prometheus.Registry, c *query.Cache) {
	counter := func(name, help string, of resultcache.Outcome,
		labels prometheus.Labels) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "dalmatiner_query_cache_" + name,
			Help:        help,
			ConstLabels: labels,
		},
			func() float64 { return float64(c.Counted(of)) })
	}
	const hits, dropped = "Queries answered from the cache of results: the whole result, or steps " +
		"of it.", "Results that left the cache, by reason."
	reg.MustRegister(
		counter("hits_total", hits, resultcache.HitWhole, prometheus.Labels{"part": "whole"}),
		counter("hits_total", hits, resultcache.HitSteps, prometheus.Labels{"part": "steps"}),
		counter("misses_total",
			"Queries of which the cache of results had nothing, or nothing that still held.",
			resultcache.Missed, nil),
		counter("dropped_total", dropped, resultcache.Changed, prometheus.Labels{"reason": "changed"}),
		counter("dropped_total", dropped, resultcache.Evicted, prometheus.Labels{"reason": "room"}),
		counter("dropped_total", dropped, resultcache.Dropped, prometheus.Labels{"reason": "memory"}),
	)
}
