package httpapi

import (
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strconv"

	"dalmatiner/internal/host/config"
)

const (
	profiles = "/debug/pprof/"
	// maxProfile is the longest profile in seconds: a forgotten request must not
	// keep others from taking one.
	maxProfile = 300
)

// toProfiles leads to the list of profiles, whose links are relative.
func toProfiles(w http.ResponseWriter, r *http.Request) error {
	http.Redirect(w, r, profiles, http.StatusMovedPermanently)
	return nil
}

// profile serves profiles of the process in the form of net/http/pprof, to
// those whom the key http.pprof names and guard lets pass.
func (a *api) profile(w http.ResponseWriter, r *http.Request) error {
	forbidden := func(text string) error {
		return &statusError{http.StatusForbidden, reasonForbidden, text}
	}
	switch {
	case a.Pprof != config.PprofLoopback && a.Pprof != config.PprofOn:
		return notFound("profiling is off: set http.pprof = loopback, or on for askers on other " +
			"machines too")
	case a.Pprof == config.PprofLoopback && !fromLoopback(r):
		return forbidden("profiles are for askers on the node's own machine, with http.pprof = " +
			"loopback: ask from there, or set http.pprof = on")
	}
	if text := r.URL.Query().Get("seconds"); text != "" {
		if s, err := strconv.ParseFloat(text, 64); err != nil || !(s > 0 && s <= maxProfile) {
			return badRequest("seconds=%s: a profile takes up to %d seconds", text, maxProfile)
		}
	}
	switch behind(r, 2) {
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r) // the others by their names, and the list
	}
	return nil
}

func fromLoopback(r *http.Request) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && remote.Addr().Unmap().IsLoopback()
}
