// Package running lists the queries that are being answered.
package running

import (
	"slices"
	"sync"
	"time"

	"dalmatiner/internal/query"
)

const (
	// MaxID is the most bytes of the name that a client gives to its query.
	MaxID = 64
	// Shown is how many bytes of a query's text the list has.
	Shown = 1000
)

// Query is an element of GET /admin/queries.
type Query struct {
	ID     string  `json:"id,omitempty"` // as the client named it
	Query  string  `json:"query"`        // cut off behind 1,000 bytes
	TookMS int64   `json:"took_ms"`      // so far, waiting for its turn included
	Share  float64 `json:"share"`        // of its range that has been read, 0 to 1

	began    time.Time
	progress *query.Progress
}

// Queries are the queries that have been asked and not been answered yet. Its methods may be called
// concurrently.
type Queries struct {
	mu   sync.Mutex
	list []*Query // in the order in which they came
}

// Begin enters a query, whose id may be empty. The caller calls end when it has ended.
func (l *Queries) Begin(id, text string) (end func(), progress *query.Progress) {
	q := &Query{
		ID:       id,
		Query:    text[:min(len(text), Shown)],
		began:    time.Now(),
		progress: &query.Progress{},
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, q)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = slices.DeleteFunc(l.list, func(other *Query) bool { return other == q })
	}, q.progress
}

// Current returns those with a name, or all for none.
func (l *Queries) Current(id string) []Query {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []Query{}
	for _, q := range l.list {
		if id == "" || q.ID == id {
			now := *q
			now.TookMS, now.Share = time.Since(q.began).Milliseconds(), q.progress.Share()
			out = append(out, now)
		}
	}
	return out
}
