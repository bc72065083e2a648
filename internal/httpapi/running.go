package httpapi

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"dalmatiner/internal/query"
)

const (
	// maxQueryID bounds the name that a client gives to its query.
	maxQueryID = 64
	// shownQuery is how much of a query's text the list of running ones has.
	shownQuery = 1000
)

// runningQuery is an element of GET /admin/queries.
type runningQuery struct {
	ID     string  `json:"id,omitempty"` // as the client named it
	Query  string  `json:"query"`        // cut off behind 1,000 bytes
	TookMS int64   `json:"took_ms"`      // so far, waiting for its turn included
	Share  float64 `json:"share"`        // of its range that has been read, 0 to 1

	began    time.Time
	progress *query.Progress
}

// runningQueries are the queries that have been asked and not been answered yet.
type runningQueries struct {
	mu   sync.Mutex
	list []*runningQuery // in the order in which they came
}

// begin enters a query. The caller calls end when it has ended.
func (l *runningQueries) begin(id, text string) (end func(), progress *query.Progress) {
	q := &runningQuery{ID: id, Query: text[:min(len(text), shownQuery)], began: time.Now(), progress: &query.Progress{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, q)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = slices.DeleteFunc(l.list, func(other *runningQuery) bool { return other == q })
	}, q.progress
}

// current returns those with a name, or all for none.
func (l *runningQueries) current(id string) []runningQuery {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []runningQuery{}
	for _, q := range l.list {
		if id == "" || q.ID == id {
			now := *q
			now.TookMS, now.Share = time.Since(q.began).Milliseconds(), q.progress.Share()
			out = append(out, now)
		}
	}
	return out
}

// queries lists the running queries, or that of one name.
func (a *api) queries(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, a.running.current(param(r, "id")))
}
