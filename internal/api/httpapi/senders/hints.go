package senders

import "strings"

// The ways for clients whose protocol is not taken yet.
const (
	throughPrometheus = "use remote write, at /api/v1/write"
	eventsAsLines     = "send them as to Loki, as lines of JSON to POST /events/<bucket>, or as syslog"
)

// hints are what to use in place of paths of other stores, by how the path ends.
var hints = map[string]string{
	"/v1/logs":            "logs of OTLP are not taken: " + eventsAsLines,
	"/receive":            throughPrometheus,
	"/api/v1/query":       "PromQL is not answered: ask in DQL, GET /?q=",
	"/api/v1/query_range": "PromQL is not answered: ask in DQL, GET /?q=",
	"/api/query":          "queries of OpenTSDB are not answered: ask in DQL, GET /?q=",
	"/api/suggest":        "names are not suggested: GET /buckets lists series",
	"/render":             "queries of Graphite are not answered: ask in DQL, GET /?q=",
	"/metrics/find":       "queries of Graphite are not answered: GET /buckets lists series",
}

// Hint returns what to use in place of a path that other stores have, and this one has not; ""
// for all others.
func Hint(path string) string {
	path = strings.TrimSuffix(path, "/")
	for rest := path; rest != ""; {
		if hint, ok := hints[rest]; ok {
			return hint
		}
		i := strings.IndexByte(rest[1:], '/')
		if i < 0 {
			return ""
		}
		rest = rest[1+i:] // below a prefix, such as /influx
	}
	return ""
}
