package httpapi

import (
	"net/http"
	"time"

	"dalmatiner/internal/ingest/scrape"
)

// A target as Prometheus answers it (prometheus.io/docs/prometheus/latest/querying/api, targets).
type targetJSON struct {
	Discovered map[string]string `json:"discoveredLabels"`
	Labels     map[string]string `json:"labels"`
	Job        string            `json:"scrapePool"`
	URL        string            `json:"scrapeUrl"`
	Error      string            `json:"lastError"`
	Last       time.Time         `json:"lastScrape"`
	Took       float64           `json:"lastScrapeDuration"` // seconds
	Health     string            `json:"health"`
	Interval   string            `json:"scrapeInterval"`
	Timeout    string            `json:"scrapeTimeout"`
}

type droppedTargetJSON struct {
	Discovered map[string]string `json:"discoveredLabels"`
	Job        string            `json:"scrapePool"`
}

// targets answers what the node scrapes: all, or those with the state and the job of the
// parameters state and scrapePool.
func (a *api) targets(w http.ResponseWriter, r *http.Request) error {
	if a.Scraper == nil {
		return errNoScraper
	}
	params := r.URL.Query()
	state, job := params.Get("state"), params.Get("scrapePool")
	switch state {
	case "", "any", "active", "dropped":
	default:
		return badRequest("state %q: known are active, dropped and any", state)
	}
	all := a.Scraper.Targets()
	active, dropped := []targetJSON{}, []droppedTargetJSON{}
	counts := map[string]int{}
	for i := range all.Active {
		if t := &all.Active[i]; state != "dropped" && (job == "" || job == t.Job) {
			active = append(active, activeTarget(t))
		}
	}
	for i := range all.Dropped {
		t := &all.Dropped[i]
		if counts[t.Job]++; state != "active" && (job == "" || job == t.Job) {
			dropped = append(dropped, droppedTargetJSON{t.Discovered, t.Job})
		}
	}
	return writeJSON(w, map[string]any{"status": "success", "data": map[string]any{
		"activeTargets": active, "droppedTargets": dropped, "droppedTargetCounts": counts}})
}

func activeTarget(t *scrape.Target) targetJSON {
	return targetJSON{Discovered: t.Discovered, Labels: t.Labels, Job: t.Job, URL: t.URL,
		Error: t.Error, Last: t.Last, Took: t.Took.Seconds(), Health: t.Health,
		Interval: t.Interval, Timeout: t.Timeout}
}

var errNoScraper = notFound("this node scrapes nothing: scrape.config names no file")

// reload reads the configuration of what is scraped anew. It stands where Prometheus has it, for
// programs that ask for it there.
func (a *api) reload(w http.ResponseWriter, r *http.Request) error {
	if err := a.checkBrowser(r); err != nil {
		return err
	}
	if a.Scraper == nil {
		return errNoScraper
	}
	if err := a.Scraper.Reload(); err != nil {
		return badRequest("the configuration before stays in force: %v", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
