package scrape

import (
	"cmp"
	"maps"
	"slices"
	"time"

	plabels "github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
)

// Target is one target, and what became of its last scrape.
type Target struct {
	Job        string            // of the configuration
	Discovered map[string]string // labels before relabelling
	Labels     map[string]string // of all its series
	URL        string
	Health     string // up, down, or unknown before the first scrape
	Error      string // of the last scrape; empty after a good one
	Last       time.Time
	Took       time.Duration
	Interval   string
	Timeout    string
}

// Targets are those that are scraped, sorted by job and URL, and those that relabelling dropped.
// Of the latter only job and discovered labels are known.
type Targets struct {
	Active, Dropped []Target
}

// Targets returns the targets of all jobs.
func (s *Scraper) Targets() (out Targets) {
	lb := plabels.NewBuilder(plabels.EmptyLabels())
	active := s.targets.TargetsActive()
	for _, job := range slices.Sorted(maps.Keys(active)) {
		list := make([]Target, 0, len(active[job]))
		for _, t := range active[job] {
			list = append(list, target(job, t, lb))
		}
		slices.SortFunc(list, func(a, b Target) int { return cmp.Compare(a.URL, b.URL) })
		out.Active = append(out.Active, list...)
	}
	dropped := s.targets.TargetsDropped()
	for _, job := range slices.Sorted(maps.Keys(dropped)) {
		for _, t := range dropped[job] {
			out.Dropped = append(out.Dropped, Target{Job: job,
				Discovered: t.DiscoveredLabels(lb).Map()})
		}
	}
	return out
}

func target(job string, t *scrape.Target, lb *plabels.Builder) Target {
	out := Target{Job: job, Discovered: t.DiscoveredLabels(lb).Map(), Labels: t.Labels(lb).Map(),
		URL: t.URL().Redacted(), Health: string(t.Health()), Last: t.LastScrape(),
		Took:     t.LastScrapeDuration(),
		Interval: t.GetValue("__scrape_interval__"), Timeout: t.GetValue("__scrape_timeout__")}
	if err := t.LastError(); err != nil {
		out.Error = err.Error()
	}
	return out
}
