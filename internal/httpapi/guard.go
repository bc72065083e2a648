package httpapi

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dalmatiner/internal/admin"
)

// guard refuses requests for what is not public data, reads as well as changes,
// that a foreign web page in an operator's browser may have made. A request must
// be addressed to an IP address or a known name: a name that an attacker points
// at this node makes his page the same origin as ours, and only Host tells. It
// must not come from a page of another origin, as far as the browser says. One
// that changes something also carries a header that pages cannot set across
// origins without asking.
func (a *api) guard(r *http.Request) error {
	refuse := func(text string) error {
		return &statusError{http.StatusForbidden, reasonForbidden, text}
	}
	if !a.knownHost(r.Host) {
		return refuse("requests to " + r.URL.Path + " must be addressed to an IP address or a name in http.hosts, not to " +
			strconv.Quote(r.Host) + ": add the name to http.hosts, or use the address")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return refuse("pages of other origins, such as " + strconv.Quote(origin) + ", must not use this part of the node")
		}
	}
	if fromOtherPage(r) {
		return refuse("pages of other origins must not use this part of the node")
	}
	if r.Method == http.MethodPost && r.Header.Get(admin.Header) == "" {
		return refuse("a request that changes something must carry the header " + admin.Header + ": 1")
	}
	return nil
}

// knownHost reports whether the host of a request is an IP address or a name of
// http.hosts.
func (a *api) knownHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return net.ParseIP(host) != nil || slices.ContainsFunc(a.Hosts, func(known string) bool {
		return strings.EqualFold(strings.TrimSpace(known), host)
	})
}

// fromOtherPage reports whether a browser says that it asks for a page that is
// not this node's. Other programs say nothing.
func fromOtherPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}
