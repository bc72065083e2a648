// Package httpapi serves a node over HTTP: queries and listings in the shapes
// of the original's frontend (system page section 10, DQL page section 8), the
// admin routes, health and metrics. DESIGN.md has the table of routes.
package httpapi

import (
	"cmp"
	"context"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dalmatiner/internal/account"
	"dalmatiner/internal/admin"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/loglimit"
	"dalmatiner/internal/memory"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store"
)

// Store is what the routes need of a store. Its methods may be called
// concurrently.
type Store interface {
	Buckets() []buckets.Info
	BucketByName(name string) (buckets.Info, error)
	CreateBucket(b buckets.Info) (buckets.Info, error)
	DeleteBucket(name string) error
	SetTTL(name string, points int64) error
	// Metrics calls fn with every key that starts with prefix until fn returns
	// false. The key is valid during the call.
	Metrics(ctx context.Context, b buckets.Info, prefix []byte, fn func(key []byte) bool) error
	DeleteSeries(ctx context.Context, bucket string, choice store.SeriesChoice, dryRun bool) (store.DeletedSeries, error)
	Flush(ctx context.Context) (store.FlushResult, error)
	Merge(ctx context.Context) (store.MergeResult, error)
	Account() *account.Account
}

// Engine runs queries.
type Engine interface {
	Query(ctx context.Context, text string, opt query.Options) (*query.Result, error)
}

// Options is what a Handler is made of. Hosts, Version and what stands behind
// it may be left out.
type Options struct {
	Store    Store
	Operator Operator
	Status   func() admin.Status
	Log      func() []admin.LogLine // the last lines of the log, oldest first
	Engine   Engine
	Registry *prometheus.Registry // of /metrics; New adds the figures of its own
	Logger   *slog.Logger
	MaxBody  int64       // bytes of a request body
	Hosts    []string    // host names that admin requests may be addressed to, besides IP addresses
	Pprof    string      // who may take profiles, by the values of http.pprof; "" is off
	Ready    func() bool // false while the node starts or stops
	Version  string
	Compat   bool           // queries that do not say give the answers of the original
	Memory   *memory.Leases // that queries are charged to; nil charges nothing

	// MaxQueries is how many queries run at once; 0 stands for
	// defaultMaxQueries. Further ones wait, and are refused after a while.
	MaxQueries int

	Bodies     *memory.Leases // that request bodies are charged to; nil charges nothing
	ReplyStall time.Duration  // for a client to take 32 KiB of its answer; defaultReplyStall

	QueryTimeout time.Duration // longest run of a query
	SlowQuery    time.Duration // queries that run this long are logged
}

// defaultMaxQueries keeps small machines answering: each query may take a core
// and the memory of its whole result, and ingest comes first.
const defaultMaxQueries = 16

// Defaults of the keys of the same names.
const (
	defaultQueryTimeout = time.Minute
	defaultSlowQuery    = 5 * time.Second
	defaultReplyStall   = 10 * time.Second
)

// queryWait is how long a query waits for its turn: longer than a burst of
// dashboards takes, shorter than browsers' patience.
const queryWait = 10 * time.Second

// Limits of the server that have no key: each is far above what clients of the
// API send and far below what would hurt.
const (
	maxHeader   = 64 << 10         // bytes; the longest query in a URL
	readHeader  = 10 * time.Second // a client that dribbles its headers is gone
	readRequest = time.Minute
	writeReply  = 5 * time.Minute
)

// NewServer returns a server with the limits of this package around a handler. Its
// connections are those of a conns.Set where its listener is one of such a set.
func NewServer(handler http.Handler, logger *slog.Logger, idle time.Duration) *http.Server {
	return &http.Server{
		Handler:           handler,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: readHeader,
		ReadTimeout:       readRequest,
		WriteTimeout:      writeReply,
		IdleTimeout:       idle,
		ConnContext:       conns.NewContext,
		// What a request is wrong about comes as often as its sender likes.
		ErrorLog: log.New(loglimit.New(logger, time.Now).Writer(slog.LevelWarn, "http_server"), "", 0),
	}
}

type api struct {
	Options
	log       *loglimit.Logger // of what anybody may cause
	metrics   http.Handler
	served    *served
	packers   packers
	pieces    sync.Pool     // of *bufio.Writer with replyBuffer bytes: most of what a short answer takes
	turns     chan struct{} // holds one element per running query
	running   runningQueries
	lists     processors
	queryWait time.Duration
}

// New returns the handler of all routes.
func New(o Options) http.Handler {
	o.MaxQueries = cmp.Or(o.MaxQueries, defaultMaxQueries)
	o.QueryTimeout = cmp.Or(o.QueryTimeout, defaultQueryTimeout)
	o.SlowQuery = cmp.Or(o.SlowQuery, defaultSlowQuery)
	o.ReplyStall = cmp.Or(o.ReplyStall, defaultReplyStall)
	turns := make(chan struct{}, o.MaxQueries)
	limited := loglimit.New(o.Logger, time.Now)
	return &api{
		Options:   o,
		log:       limited,
		turns:     turns,
		lists:     newProcessors(),
		queryWait: queryWait,
		served:    newServed(o.Registry, func() float64 { return float64(len(turns)) }),
		packers:   newPackers(),
		metrics: promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{
			ErrorLog:      log.New(limited.Writer(slog.LevelWarn, "metrics"), "", 0),
			ErrorHandling: promhttp.ContinueOnError,
		}),
	}
}

// route serves one path. Reads are open to pages of any origin, as in the
// original; what is below /admin/, and profiles, is not: requests for them must
// pass guard.
type route struct {
	methods string // allowed, separated by ", "
	serve   func(w http.ResponseWriter, r *http.Request) error
	name    string // in /metrics; that of admin routes is set for them
	packs   bool   // the answer may be compressed
	admin   bool   // not public: never CORS, behind guard; all below /admin/ are set to it
}

// ServeHTTP finds the route by the escaped path, so that names may hold
// slashes and dots, answers, and counts the answer.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	rt, ok := a.find(path)
	if !ok {
		rt = route{name: "other", serve: func(http.ResponseWriter, *http.Request) error {
			return notFound("there is nothing at %s", r.URL.Path)
		}}
	}
	if rt.admin || strings.HasPrefix(path, "/admin/") {
		rt.name, rt.admin = "/admin/", true
	}
	conn := conns.FromContext(r.Context())
	conn.Busy()
	defer conn.Idle()
	conn.Proven() // the header is whole
	client := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), conn: conn, stall: a.ReplyStall, end: time.Now().Add(writeReply)}
	out := &reply{ResponseWriter: client}
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if rt.packs {
		h.Set("Vary", "Accept, Accept-Encoding")
		if r.Method != http.MethodHead && takesGzip(r) {
			out.packers = a.packers
		}
	}
	whole := false
	defer func() {
		out.end(whole)
		a.served.count(rt.name, out.status)
	}()
	r.Body = http.MaxBytesReader(w, r.Body, a.MaxBody)
	if err := a.serve(rt, out, r); err != nil {
		a.fail(out, r, err)
	}
	whole = true
}

// serve checks what holds for all routes and lets the route answer.
func (a *api) serve(rt route, w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	if !rt.admin {
		h.Set("Access-Control-Allow-Origin", "*")
	}
	if rt.methods == "" {
		return rt.serve(w, r)
	}
	if r.Method == http.MethodOptions && !rt.admin {
		h.Set("Access-Control-Allow-Methods", rt.methods)
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
		h.Set("Access-Control-Max-Age", "3600")
		w.WriteHeader(http.StatusOK)
		return nil
	}
	if !allowed(rt.methods, r.Method) {
		h.Set("Allow", allow(rt))
		return &statusError{http.StatusMethodNotAllowed, "", "only " + rt.methods + " is possible here"}
	}
	if rt.admin {
		if err := a.guard(r); err != nil {
			return err
		}
	}
	if err := checkRequest(rt, r); err != nil {
		return err
	}
	conn := conns.FromContext(r.Context())
	conn.Idle() // it may have to send the head of a packed body
	err := a.unpack(rt, w, r)
	conn.Busy()
	if err != nil {
		return err
	}
	lease := a.Bodies.Lease() // until the answer is out: the text of a query is part of it
	defer lease.Release()
	r.Body = &body{ReadCloser: r.Body, request: r, conn: conn, lease: lease}
	return rt.serve(w, r)
}

// allow returns the header Allow of a route.
func allow(rt route) string {
	methods := rt.methods
	if strings.Contains(methods, http.MethodGet) {
		methods += ", HEAD"
	}
	if !rt.admin {
		methods += ", OPTIONS"
	}
	return methods
}

func (a *api) find(path string) (route, bool) {
	switch path {
	case "/":
		return route{methods: "GET, POST", serve: a.root, name: "/", packs: true}, true
	case "/buckets", "/buckets/":
		return route{methods: "GET", serve: a.buckets, name: "/buckets", packs: true}, true
	case "/collections", "/collections/":
		return route{methods: "GET", serve: a.collections, name: "/collections", packs: true}, true
	case "/functions", "/functions/":
		return route{methods: "GET", serve: a.functions, name: "/functions", packs: true}, true
	case "/events", "/events/":
		return route{methods: "GET", serve: notInThisVersion("events"), name: "/events"}, true
	case "/health":
		return route{methods: "GET", serve: a.health, name: "/health"}, true
	case "/ready":
		return route{methods: "GET", serve: a.ready, name: "/ready"}, true
	case "/metrics":
		return route{methods: "GET", name: "/metrics", serve: func(w http.ResponseWriter, r *http.Request) error {
			a.metrics.ServeHTTP(w, r)
			return nil
		}}, true
	case "/admin/account":
		return route{methods: "GET", serve: a.adminAccount}, true
	case "/admin/log":
		return route{methods: "GET", serve: a.recentLog}, true
	case "/admin/stats":
		return route{methods: "GET", serve: a.adminStats}, true
	case "/admin/merge":
		return route{methods: "POST", serve: a.merge}, true
	case "/admin/flush":
		return route{methods: "POST", serve: a.flush}, true
	case "/admin/buckets/create":
		return route{methods: "POST", serve: a.createBucket}, true
	case "/admin/buckets/delete":
		return route{methods: "POST", serve: a.deleteBucket}, true
	case "/admin/series/delete":
		return route{methods: "POST", serve: a.deleteSeries}, true
	case "/admin/buckets/ttl":
		return route{methods: "POST", serve: a.setTTL}, true
	}
	if rt, ok := a.findOperation(path); ok {
		return rt, true
	}
	if rt, ok := a.findProfile(path); ok {
		return rt, true
	}
	if name, ok := strings.CutPrefix(path, "/assets/"); ok {
		return route{methods: "GET", name: "/assets/", serve: func(w http.ResponseWriter, r *http.Request) error {
			return a.asset(w, r, name)
		}}, true
	}
	if rest, ok := strings.CutPrefix(path, "/buckets/"); ok {
		return route{methods: "GET", name: "/buckets/", packs: true, serve: func(w http.ResponseWriter, r *http.Request) error {
			return a.listMetrics(w, r, rest)
		}}, true
	}
	if rest, ok := strings.CutPrefix(path, "/collections/"); ok {
		return a.findCollection(rest)
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
	return write(w, http.StatusOK, typeText, []byte("ok "+a.Version+"\n"))
}

// ready says whether the node takes points and queries.
func (a *api) ready(w http.ResponseWriter, _ *http.Request) error {
	if !a.Ready() {
		return &statusError{http.StatusServiceUnavailable, "", "not ready: the node is starting or stopping"}
	}
	return write(w, http.StatusOK, typeText, []byte("ready\n"))
}
