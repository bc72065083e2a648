// Package httpapi serves a node over HTTP: queries and listings in the shapes
// of the original's frontend (system page section 10, DQL page section 8), the
// admin routes, health and metrics. DESIGN.md has the table of routes.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dalmatiner/internal/account"
	"dalmatiner/internal/admin"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store"
)

// Store is what the routes need of a store. Its methods may be called
// concurrently.
type Store interface {
	Buckets() []store.BucketInfo
	BucketByName(name string) (store.BucketInfo, error)
	CreateBucket(b store.BucketInfo) (store.BucketInfo, error)
	DeleteBucket(name string) error
	SetTTL(name string, points int64) error
	// Metrics calls fn with every key that starts with prefix until fn returns
	// false. The key is valid during the call.
	Metrics(ctx context.Context, b store.BucketInfo, prefix []byte, fn func(key []byte) bool) error
	Flush(ctx context.Context) (store.FlushResult, error)
	Merge(ctx context.Context) (store.MergeResult, error)
	Account() *account.Account
}

// Engine runs queries.
type Engine interface {
	Query(ctx context.Context, text string, opt query.Options) (*query.Result, error)
}

// Options is what a Handler is made of. Hosts, Version and MaxQueries may be
// left out.
type Options struct {
	Store    Store
	Operator Operator
	Status   func() admin.Status
	Engine   Engine
	Gatherer prometheus.Gatherer
	Logger   *slog.Logger
	MaxBody  int64       // bytes of a request body
	Hosts    []string    // host names that admin requests may be addressed to, besides IP addresses
	Ready    func() bool // false while the node starts or stops
	Version  string

	// MaxQueries is how many queries run at once; 0 stands for
	// DefaultMaxQueries. Further ones wait, and are refused after a while.
	MaxQueries int
}

// DefaultMaxQueries keeps small machines answering: each query may take a core
// and the memory of its whole result, and ingest comes first.
const DefaultMaxQueries = 16

// queryWait is how long a query waits for its turn: longer than a burst of
// dashboards takes, shorter than browsers' patience.
const queryWait = 10 * time.Second

// Limits of the server that have no key: each is far above what clients of the
// API send and far below what would hurt.
const (
	maxHeader    = 64 << 10         // bytes; the longest query in a URL
	readHeader   = 10 * time.Second // a client that dribbles its headers is gone
	readRequest  = time.Minute
	writeReply   = 5 * time.Minute
	idleLifetime = 2 * time.Minute
)

// NewServer returns a server with the limits of this package around a handler.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: readHeader,
		ReadTimeout:       readRequest,
		WriteTimeout:      writeReply,
		IdleTimeout:       idleLifetime,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

type api struct {
	Options
	metrics   http.Handler
	turns     chan struct{} // holds one element per running query
	queryWait time.Duration
}

// New returns the handler of all routes.
func New(o Options) http.Handler {
	if o.MaxQueries == 0 {
		o.MaxQueries = DefaultMaxQueries
	}
	return &api{
		Options:   o,
		turns:     make(chan struct{}, o.MaxQueries),
		queryWait: queryWait,
		metrics: promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
			ErrorLog:      slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
			ErrorHandling: promhttp.ContinueOnError,
		}),
	}
}

// route serves one path. Reads are open to pages of any origin, as in the
// original; admin routes are not.
type route struct {
	methods string // allowed, separated by ", "
	serve   func(w http.ResponseWriter, r *http.Request) error
	admin   bool // never CORS
	changes bool // must pass guard
}

// ServeHTTP finds the route by the escaped path, so that names may hold
// slashes and dots, and turns errors into answers.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt, ok := a.find(r.URL.EscapedPath())
	if !ok {
		a.fail(w, r, notFound("there is nothing at %s", r.URL.Path))
		return
	}
	if !rt.admin {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}
	if r.Method == http.MethodOptions && !rt.admin {
		w.Header().Set("Access-Control-Allow-Methods", rt.methods)
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
		w.Header().Set("Access-Control-Max-Age", "3600")
		return
	}
	if !allowed(rt.methods, r.Method) {
		w.Header().Set("Allow", rt.methods)
		a.fail(w, r, &statusError{http.StatusMethodNotAllowed, "", "only " + rt.methods + " is possible here"})
		return
	}
	if rt.changes {
		if err := a.guard(r); err != nil {
			a.fail(w, r, err)
			return
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, a.MaxBody)
	if err := rt.serve(w, r); err != nil {
		a.fail(w, r, err)
	}
}

func (a *api) find(path string) (route, bool) {
	switch path {
	case "/":
		return route{methods: "GET, POST", serve: a.root}, true
	case "/buckets", "/buckets/":
		return route{methods: "GET", serve: a.buckets}, true
	case "/health":
		return route{methods: "GET", serve: a.health}, true
	case "/ready":
		return route{methods: "GET", serve: a.ready}, true
	case "/metrics":
		return route{methods: "GET", serve: func(w http.ResponseWriter, r *http.Request) error {
			a.metrics.ServeHTTP(w, r)
			return nil
		}}, true
	case "/admin/account":
		return route{methods: "GET", serve: a.adminAccount, admin: true}, true
	case "/admin/stats":
		return route{methods: "GET", serve: a.adminStats, admin: true}, true
	case "/admin/merge":
		return route{methods: "POST", serve: a.merge, admin: true, changes: true}, true
	case "/admin/flush":
		return route{methods: "POST", serve: a.flush, admin: true, changes: true}, true
	case "/admin/buckets/create":
		return route{methods: "POST", serve: a.createBucket, admin: true, changes: true}, true
	case "/admin/buckets/delete":
		return route{methods: "POST", serve: a.deleteBucket, admin: true, changes: true}, true
	case "/admin/buckets/ttl":
		return route{methods: "POST", serve: a.setTTL, admin: true, changes: true}, true
	}
	if rt, ok := a.findOperation(path); ok {
		return rt, true
	}
	if rest, ok := strings.CutPrefix(path, "/buckets/"); ok {
		return route{methods: "GET", serve: func(w http.ResponseWriter, r *http.Request) error {
			return a.listMetrics(w, r, rest)
		}}, true
	}
	return route{}, false
}

// allowed says whether method is in the list; HEAD goes with GET.
func allowed(methods, method string) bool {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for m := range strings.SplitSeq(methods, ", ") {
		if m == method {
			return true
		}
	}
	return false
}

// health says that the process answers.
func (a *api) health(w http.ResponseWriter, _ *http.Request) error {
	return writeText(w, http.StatusOK, "ok "+a.Version+"\n")
}

// ready says whether the node takes points and queries.
func (a *api) ready(w http.ResponseWriter, _ *http.Request) error {
	if !a.Ready() {
		return &statusError{http.StatusServiceUnavailable, "", "not ready: the node is starting or stopping"}
	}
	return writeText(w, http.StatusOK, "ready\n")
}
