package httpapi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"dalmatiner/internal/host/suggest"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/snapshot"
)

// queryParameters are those that stand beside a query; the last ones change
// nothing and are the original's.
var queryParameters = []string{"q", "format", "compat", "explain", "gaps", "damaged", "width",
	"align", "tz", "cache", "id", "debug", "trace_id", "parent_id", "graph"}

// queryNames is what others call q: the body in JSON, the URL of the page, other stores.
var queryNames = []string{"query", "dql", "sql", "statement"}

// parameters are those of the routes, by the names that routes have in /metrics, and by their
// patterns below /admin/ and of profiles. All take format, which is that of errors, too.
var parameters = map[string][]string{
	"/buckets/":            {"contains", "limit", "prefix", "depth"},
	"/collections":         {"limit", "after"},
	"/collections/":        {"depth", "limit", "after"},
	"/events":              {"bucket", "start", "end", "filter", "limit", "order", "follow"},
	"/events/":             {"unit"},
	"/tags/collections":    {"prefix", "limit"},
	"/tags/names":          {"collection", "metric", "where", "namespace", "prefix", "limit"},
	"/tags/values":         {"name", "collection", "metric", "where", "prefix", "limit"},
	"/tags/top":            {"by", "sort", "limit", "collection", "name", "bucket", "prefix", "depth"},
	"/api/v1/targets":      {"state", "scrapePool"},
	"/metrics":             {"name[]"},
	"/admin/account":       {"bucket", "minutes"},
	"/admin/tags/export":   {"bucket", "metric"},
	"/admin/segments":      {"bucket"},
	"/admin/queries":       {"id"},
	profiles + "{name...}": {"debug", "gc", "seconds", "rate"}, // those of net/http/pprof
}

// parametersOf returns the parameters of a route.
func parametersOf(rt route) []string {
	known := parameters[rt.name]
	if rt.admin {
		known = parameters[rt.pattern]
	}
	return append([]string{"format"}, known...)
}

// tokenParameter stands in every request of the original's plugin for Grafana whose user has given
// it one. As in the original it changes nothing: there is no login.
const tokenParameter = "token"

// checkParameters refuses the first parameter that is not known, by name.
func checkParameters(given map[string][]string, known []string) error {
	if allKnown(given, known) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(known, name) || name == tokenParameter {
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(name), "{") {
			return badRequest(
				`the form is a JSON object: send it with Content-Type application/json, as by curl -H 'Content-Type: application/json' -d '{"query": "SELECT..."}'`)
		}
		near := suggest.Nearest(name, known)
		if slices.Contains(known, "q") && slices.Contains(queryNames, strings.ToLower(name)) {
			near = []string{"q"}
		}
		return badRequest("unknown parameter %.100q%s known here are %s", name,
			orStop(suggest.Hint(near)), strings.Join(known, ", "))
	}
	return nil
}

func allKnown(given map[string][]string, known []string) bool {
	for name := range given {
		if !slices.Contains(known, name) {
			return false
		}
	}
	return true
}

func orStop(hint string) string {
	if hint == "" {
		return ":"
	}
	return hint
}

// checkRequest refuses unknown parameters, but not of queries, which look themselves (the page
// keeps its state in their URL), and not of senders, who add their own.
func checkRequest(rt route, r *http.Request) error {
	if rt.name == "/" || rt.sends {
		return nil
	}
	return checkParameters(r.URL.Query(), parametersOf(rt))
}

// nearBuckets adds the names of near buckets to an error that knows none of name.
func nearBuckets(s Store, name string, err error) error {
	if !errors.Is(err, buckets.ErrUnknown) {
		return err
	}
	near := suggest.NewCollector(name)
	for _, b := range s.Buckets() {
		near.Add(b.Name)
	}
	var names []string
	for _, n := range near.Names() {
		names = append(names, metric.Quote(n))
	}
	return meant(err, reasonUnknownBucket, names)
}

// namesLookedAt bounds the metrics that one that does not exist is compared with.
const namesLookedAt = 50_000

// nearMetrics adds the names of near metrics of a bucket to an error that knows
// none of key.
func nearMetrics(ctx context.Context, s Store, bucket string, key []byte, err error) error {
	if !errors.Is(err, deletion.ErrUnknownSeries) {
		return err
	}
	b, berr := s.BucketByName(bucket)
	if berr != nil { // it was deleted just now
		return err
	}
	near, looked := suggest.NewCollector(metric.Text(key)), 0
	merr := s.Metrics(ctx, b, nil, func(key []byte) bool {
		near.Add(metric.Text(key))
		looked++
		return looked < namesLookedAt
	})
	if merr != nil { // the names are one more courtesy
		return err
	}
	return meant(err, "", near.Names())
}

// nearSnapshots adds the names of near snapshots to an error that knows none of name.
func nearSnapshots(o Operator, name string, err error) error {
	if !errors.Is(err, snapshot.ErrUnknown) {
		return err
	}
	list, lerr := o.Snapshots()
	if lerr != nil { // as above
		return err
	}
	near := suggest.NewCollector(name)
	for i := range list {
		near.Add(list[i].Name)
	}
	return meant(err, "", near.Names())
}

// meant adds names that may be meant to the error for one that does not exist.
func meant(err error, reason string, names []string) error {
	if names == nil {
		return err
	}
	return &statusError{http.StatusNotFound, reason, err.Error() + suggest.Hint(names)}
}
