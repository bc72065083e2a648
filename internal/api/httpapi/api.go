// Package httpapi serves a node over HTTP: queries and listings in the shapes of the
// original's frontend, the admin routes, health and metrics. DESIGN.md has the table of
// routes.
package httpapi

import (
	"cmp"
	"context"
	"log"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/api/httpapi/clusterroutes"
	"dalmatiner/internal/api/httpapi/ducksproxy"
	"dalmatiner/internal/api/httpapi/figures"
	"dalmatiner/internal/api/httpapi/running"
	"dalmatiner/internal/api/httpapi/senders"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/scrape"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store/cardinality"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write"
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
	DeleteSeries(ctx context.Context, bucket string, choice deletion.Choice,
		dryRun bool) (deletion.Result, error)
	Flush(ctx context.Context) (flush.Result, error)
	Merge(ctx context.Context) (compaction.Result, error)
	Account() *account.Account
}

// Tags is what the routes need of tags. Its methods may be called concurrently.
type Tags interface {
	// Apply and WaitDurable are those of tagstore.Store.
	Apply(ctx context.Context, list []tags.Change) (tagstore.Applied, error)
	WaitDurable(ctx context.Context, a tagstore.Applied) error
	// Ready returns an error while the node may not know all tags; then nothing but Apply is asked
	// for.
	Ready() error
	// Walk calls fn with changes that make all tags, until fn returns an error.
	Walk(fn func(*tags.Change) error) error
	// Index returns the index, which is to be read only.
	Index() *tags.Index
	Stats() tagstore.Stats
}

// Engine runs queries.
type Engine interface {
	Query(ctx context.Context, text string, opt query.Options) (*query.Result, error)
}

// Options is what a Handler is made of. Hosts, Version and what stands behind
// it may be left out.
type Options struct {
	Store    Store
	Tags     Tags
	Arrivals cardinality.Arrivals
	Operator Operator
	Neighbours
	Status       func() admin.Status
	Log          func() []admin.LogLine // the last lines of the log, oldest first
	Engine       Engine
	Events       events.Store         // nil: there are none
	EventAccount *account.Account     // of events; nil: an empty one
	Points       write.Target         // makes buckets of events, and says when they are durable
	Registry     *prometheus.Registry // of /metrics; New adds the figures of its own
	Logger       *slog.Logger
	MaxBody      int64 // bytes of a request body
	// host names that admin requests may be addressed to, besides IP addresses
	Hosts   []string
	Pprof   string      // who may take profiles, by the values of http.pprof; "" is off
	Ready   func() bool // false while the node starts or stops
	Version string
	Compat  bool             // queries that do not say give the answers of the original
	Memory  *memory.Leases   // that queries are charged to; nil charges nothing
	Senders *senders.Options // nil: none are answered

	// MaxQueries is how many queries run at once; 0 stands for
	// defaultMaxQueries. Further ones wait, and are refused after a while.
	MaxQueries int

	Bodies     *memory.Leases // that request bodies are charged to; nil charges nothing
	ReplyStall time.Duration  // for a client to take 32 KiB of its answer; defaultReplyStall

	QueryTimeout time.Duration // longest run of a query
	SlowQuery    time.Duration // queries that run this long are logged
}

// Neighbours are who a node speaks of that are not itself.
type Neighbours struct {
	Cluster *clusterroutes.Operator // nil: the node is on its own
	Ducks   *ducksproxy.Proxy       // nil: no ducks is known
	Ahead   *ahead.Senders          // whose clocks are ahead; may be nil
	Scraper *scrape.Scraper         // nil: nothing is scraped
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
	log        *loglimit.Logger // of what anybody may cause
	mux        *http.ServeMux   // of routes
	queryRoute *endpoint        // one of them
	metrics    http.Handler
	served     *figures.Served
	packers    packers
	// of *bufio.Writer with replyBuffer bytes: most of what a short answer takes
	pieces    sync.Pool
	turns     chan struct{} // holds one element per running query
	running   running.Queries
	tails     chan struct{} // holds one element for each live tail of events
	lists     processors
	queryWait time.Duration
}

// New returns the handler of all routes.
func New(o Options) http.Handler {
	o.MaxQueries = cmp.Or(o.MaxQueries, defaultMaxQueries)
	o.QueryTimeout = cmp.Or(o.QueryTimeout, defaultQueryTimeout)
	o.SlowQuery = cmp.Or(o.SlowQuery, defaultSlowQuery)
	if o.EventAccount == nil {
		o.EventAccount = account.New()
	}
	o.ReplyStall = cmp.Or(o.ReplyStall, defaultReplyStall)
	turns := make(chan struct{}, o.MaxQueries)
	limited := loglimit.New(o.Logger, time.Now)
	a := &api{
		Options:   o,
		log:       limited,
		turns:     turns,
		tails:     make(chan struct{}, maxTails),
		lists:     newProcessors(),
		queryWait: queryWait,
		served:    figures.NewServed(o.Registry, func() float64 { return float64(len(turns)) }),
		packers:   newPackers(),
		metrics: promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{
			ErrorLog:      log.New(limited.Writer(slog.LevelWarn, "metrics"), "", 0),
			ErrorHandling: promhttp.ContinueOnError,
		}),
	}
	a.mux = a.newMux()
	return a
}

// ServeHTTP answers, and counts the answer.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, rt := e.api, e.route
	conn := conns.FromContext(r.Context())
	conn.Busy()
	defer conn.Idle()
	conn.Proven() // the header is whole
	client := &patientWriter{
		ResponseWriter: w,
		control:        http.NewResponseController(w),
		conn:           conn,
		stall:          a.ReplyStall,
		end:            time.Now().Add(writeReply),
	}
	out := &reply{ResponseWriter: client}
	h := w.Header()
	// made at once
	values := [...]string{"nosniff", "no-referrer", "no-store", "Accept, Accept-Encoding"}
	h["X-Content-Type-Options"], h["Referrer-Policy"], h["Cache-Control"] = values[0:1:1],
		values[1:2:2], values[2:3:3]
	if rt.packs {
		h["Vary"] = values[3:]
		if r.Method != http.MethodHead && takesGzip(r) {
			out.packers = a.packers
		}
	}
	whole := false
	defer func() {
		out.end(whole)
		// without a status it was given to nobody
		a.served.Count(rt.name, cmp.Or(out.status, statusClientGone))
	}()
	limit := a.MaxBody
	if rt.sends {
		limit = a.Senders.MaxBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
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
	clientOf(w).body = lease
	r.Body = newBody(r, conn, lease)
	return rt.serve(w, r)
}

// health says that the process answers.
func (a *api) health(w http.ResponseWriter, _ *http.Request) error {
	return respond(w, http.StatusOK, typeText, []byte("ok "+a.Version+"\n"))
}

// ready says whether the node takes points and queries.
func (a *api) ready(w http.ResponseWriter, _ *http.Request) error {
	if !a.Ready() {
		return &statusError{http.StatusServiceUnavailable, "",
			"not ready: the node is starting or stopping"}
	}
	if a.Cluster != nil {
		if err := a.Cluster.Node.JoinError(); err != nil {
			return &statusError{http.StatusServiceUnavailable, "", "not ready: " + err.Error()}
		}
	}
	return respond(w, http.StatusOK, typeText, []byte("ready\n"))
}
