package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/query/resultcache"
)

// The cache of results has a pool of its own, of a share of the memory at most, and figures by
// what became of questions and of what was kept.
func TestQueryCacheIsCounted(t *testing.T) {
	cfg := config.Default()
	budget := memory.New(256<<20, time.Now, nil)
	c := newQueryCache(&cfg, budget)
	reg := prometheus.NewRegistry()
	registerQueryCache(reg, c)
	c.Count(resultcache.HitSteps)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += fmt.Sprintf("{%s=%q}", l.GetName(), l.GetValue())
			}
			got = append(got, fmt.Sprint(f.GetName(), labels, " ", m.GetCounter().GetValue()))
		}
	}
	want := []string{
		`dalmatiner_query_cache_dropped_total{reason="changed"} 0`,
		`dalmatiner_query_cache_dropped_total{reason="memory"} 0`,
		`dalmatiner_query_cache_dropped_total{reason="room"} 0`,
		`dalmatiner_query_cache_hits_total{part="steps"} 1`,
		`dalmatiner_query_cache_hits_total{part="whole"} 0`,
		`dalmatiner_query_cache_misses_total 0`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("figures are\n%q\nwant\n%q", got, want)
	}
	i := slices.IndexFunc(budget.Pools(), func(u memory.Usage) bool {
		return u.Name == "query-results"
	})
	if i < 0 || budget.Pools()[i].Limit != 16<<20 || c.Limit() != 16<<20 {
		t.Errorf("the limit is %d, pools are %+v; want a sixteenth of the memory", c.Limit(),
			budget.Pools())
	}
}
