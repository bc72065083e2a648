package httpapi

import (
	"net/http"
	"strings"

	"dalmatiner/internal/api/httpapi/ducksproxy"
	"dalmatiner/internal/api/httpapi/senders"
	"dalmatiner/internal/api/httpapi/taglist"
)

// route serves the paths of one pattern. Reads are open to pages of any origin,
// as in the original; what is below /admin/, and profiles, is not: requests for
// them must pass guard.
type route struct {
	pattern string // in the language of http.ServeMux, without a method
	methods string // allowed, separated by ", "
	serve   func(w http.ResponseWriter, r *http.Request) error
	name    string // in /metrics
	packs   bool   // the answer may be compressed
	admin   bool   // not public: never CORS, behind guard
	sends   bool   // the body is that of a sender of points: large, packed as its protocol says
}

// queryPattern is that of queries, which is found without the mux: most requests are for it.
const queryPattern = "/{$}"

// administration is the name of admin routes and profiles in /metrics.
const administration = "/admin/"

func (a *api) routes() []route {
	return append([]route{
		{pattern: queryPattern, methods: "GET, POST", serve: a.root, name: "/", packs: true},
		{pattern: "/buckets", methods: "GET", serve: a.buckets, name: "/buckets", packs: true},
		{pattern: "/buckets/{$}", methods: "GET", serve: a.buckets, name: "/buckets", packs: true},
		{pattern: "/buckets/{names...}", methods: "GET",
			serve: a.listMetrics, name: "/buckets/", packs: true},
		{pattern: "/collections", methods: "GET",
			serve: a.collections, name: "/collections", packs: true},
		{pattern: "/collections/{$}", methods: "GET",
			serve: a.collections, name: "/collections", packs: true},
		{pattern: "/collections/{bucket}/metrics", methods: "GET",
			serve: a.collectionMetrics, name: "/collections/", packs: true},
		{pattern: "/collections/{bucket}/metrics/{prefix...}", methods: "GET",
			serve: a.collectionMetrics, name: "/collections/", packs: true},
		{pattern: "/collections/{bucket}/namespaces", methods: "GET",
			serve: a.namespaces, name: "/collections/", packs: true},
		{pattern: "/collections/{bucket}/namespaces/{rest...}", methods: "GET",
			serve: a.namespaces, name: "/collections/", packs: true},
		{pattern: "/tags/collections", methods: "GET",
			serve: a.counted(taglist.TaggedCollections), name: "/tags/collections", packs: true},
		{pattern: "/tags/names", methods: "GET",
			serve: a.counted(taglist.Names), name: "/tags/names", packs: true},
		{pattern: "/tags/values", methods: "GET",
			serve: a.counted(taglist.Values), name: "/tags/values", packs: true},
		{pattern: "/tags/top", methods: "GET", serve: a.top, name: "/tags/top", packs: true},
		{pattern: "/functions", methods: "GET",
			serve: a.functions, name: "/functions", packs: true},
		{pattern: "/functions/{$}", methods: "GET",
			serve: a.functions, name: "/functions", packs: true},
		{pattern: "/events", methods: "GET", serve: a.getEvents, name: "/events", packs: true},
		{pattern: "/events/{$}", methods: "GET", serve: a.getEvents, name: "/events", packs: true},
		{pattern: "/events/{bucket...}", methods: "POST", serve: a.postEvents, name: "/events/"},
		{pattern: "/assets/{file...}", methods: "GET", serve: a.asset, name: "/assets/"},
		{pattern: "/api/v1/targets", methods: "GET",
			serve: a.targets, name: "/api/v1/targets", packs: true},
		{pattern: "/-/reload", methods: "POST", serve: a.reload, name: "/-/reload"},
		{pattern: "/health", methods: "GET", serve: a.health, name: "/health"},
		{pattern: "/ready", methods: "GET", serve: a.ready, name: "/ready"},
		{pattern: "/metrics", methods: "GET", name: "/metrics",
			serve: func(w http.ResponseWriter, r *http.Request) error {
				a.metrics.ServeHTTP(w, r)
				return nil
			}},
	}, append(a.senderRoutes(), a.adminRoutes()...)...)
}

func (a *api) adminRoutes() []route {
	routes := []route{
		{pattern: "/admin/account", methods: "GET", serve: a.adminAccount},
		{pattern: "/admin/buckets/create", methods: "POST", serve: a.createBucket},
		{pattern: "/admin/buckets/delete", methods: "POST", serve: a.deleteBucket},
		{pattern: "/admin/buckets/ttl", methods: "POST", serve: a.setTTL},
		{pattern: "/admin/flush", methods: "POST", serve: a.flush},
		{pattern: "/admin/log", methods: "GET", serve: a.recentLog},
		{pattern: "/admin/merge", methods: "POST", serve: a.merge},
		{pattern: "/admin/queries", methods: "GET", serve: a.queries},
		{pattern: "/admin/series/delete", methods: "POST", serve: a.deleteSeries},
		{pattern: "/admin/stats", methods: "GET", serve: a.adminStats},
		{pattern: "/admin/status", methods: "GET", serve: a.status},
		{pattern: "/admin/tags/export", methods: "GET",
			serve: func(w http.ResponseWriter, r *http.Request) error {
				return exportTags(a.Store, a.Tags, w, r)
			}},
		{pattern: "/tags", methods: "POST", serve: a.postTags},
		{
			pattern: ducksproxy.Path + "{rest...}",
			methods: "GET, POST, PUT, PATCH, DELETE",
			serve:   ducks(a.Ducks),
		},
		{pattern: "/admin/{nothing...}", serve: nothing},
		{pattern: "/debug/pprof", methods: "GET", serve: toProfiles},
		{pattern: profiles + "{name...}", methods: "GET", serve: a.profile},
	}
	o := &operations{operator: a.Operator, store: a.Store, logger: a.Logger}
	routes = append(append(routes, o.routes()...), clusterRoutes(a.Cluster, a.Logger)...)
	for i := range routes {
		routes[i].name, routes[i].admin = administration, true
	}
	return routes
}

// ducks lets a ducks answer, if one is known.
func ducks(p *ducksproxy.Proxy) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if p == nil {
			return notFound("no ducks is known here: ducks.url says where one is")
		}
		if err := p.Serve(w, r); err != nil {
			return &statusError{http.StatusBadGateway, "", err.Error()}
		}
		return nil
	}
}

// nothing answers where there is no route.
func nothing(_ http.ResponseWriter, r *http.Request) error {
	if hint := senders.Hint(r.URL.Path); hint != "" {
		return notFound("there is nothing at %s: %s", r.URL.Path, hint)
	}
	return notFound("there is nothing at %s", r.URL.Path)
}

// endpoint is a route with what stands behind all of them.
type endpoint struct {
	*api
	route
}

func (a *api) newMux() *http.ServeMux {
	mux, routes := http.NewServeMux(), a.routes()
	if a.Cluster != nil {
		inACluster(routes, a.Tags)
	}
	for _, rt := range routes {
		e := &endpoint{a, rt}
		mux.Handle(rt.pattern, e)
		if rt.pattern == queryPattern {
			a.queryRoute = e
		}
	}
	return mux
}

// ServeHTTP finds the route and lets it answer. The mux is asked for that of a
// CONNECT, whose path it takes as it is: parts of names may be empty, or dots, so
// no path may be cleaned.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		a.queryRoute.ServeHTTP(w, r)
		return
	}
	e := &endpoint{a, route{name: "other", serve: nothing}}
	if strings.HasPrefix(r.URL.Path, "/") {
		h, _ := a.mux.Handler(&http.Request{Method: http.MethodConnect, URL: r.URL, Host: r.Host})
		if found, ok := h.(*endpoint); ok {
			e = found
		}
	}
	e.ServeHTTP(w, r)
}

// behind returns what follows the first n parts of the path, escaped: an escaped
// slash belongs to a name.
func behind(r *http.Request, n int) string {
	parts := strings.SplitN(r.URL.EscapedPath(), "/", n+2)
	if len(parts) < n+2 {
		return ""
	}
	return parts[n+1]
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
