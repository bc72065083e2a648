package httpapi

import (
	"dalmatiner/internal/api/httpapi/taglist"
	"log/slog"
	"net/http"

	"dalmatiner/internal/api/httpapi/clusterroutes"
)

// clusterRoutes are those that clusterroutes answers.
func clusterRoutes(o *clusterroutes.Operator, logger *slog.Logger) (out []route) {
	for _, rt := range o.Routes() {
		out = append(out, route{pattern: rt.Path, methods: rt.Method,
			serve: func(w http.ResponseWriter, r *http.Request) error {
				answer, err := rt.Serve(r.Context(), func(in any) error { return readBody(r, in) })
				if clusterroutes.IsConflict(err) {
					err = &statusError{http.StatusConflict, "", err.Error()}
				}
				if err != nil {
					return err
				}
				if rt.Method == http.MethodPost {
					logger.Info("cluster changed", "by", rt.Path, "remote", r.RemoteAddr)
				}
				return writeJSON(w, answer)
			}})
	}
	return out
}

// inACluster lets routes that show tags wait until a node knows all of them.
func inACluster(routes []route, of Tags) {
	for i := range routes {
		if rt := &routes[i]; taglist.Shows(rt.pattern) {
			rt.serve = taglist.Behind(of.Ready, rt.serve)
		}
	}
}
