package httpapi

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dalmatiner/internal/api/admin"
)

// guard refuses requests for what is not public data that a foreign web page in an operator's
// browser may have made.
func (a *api) guard(r *http.Request) error {
	if err := foreign(r, a.Hosts); err != nil {
		return &statusError{http.StatusForbidden, reasonForbidden, err.Error()}
	}
	return nil
}

// foreign returns why a request, a read as well as a change, may be that of a foreign page. A
// request must be addressed to an IP address or to one of hosts: a name that an attacker points
// at this node makes his page the same origin as ours, and only Host tells. It must not come from
// a page of another origin, as far as the browser says. One that changes something also carries
// admin.Header, which pages cannot set across origins without asking.
func foreign(r *http.Request, hosts []string) error {
	if !known(r.Host, hosts) {
		return errors.New("requests to " + r.URL.Path + " must be addressed to an IP address or a name " +
			"in http.hosts, not to " + strconv.Quote(r.Host) +
			": add the name to http.hosts, or use the address")
	}
	if from := r.Header.Get("Origin"); from != "" {
		u, err := url.Parse(from)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return errors.New("pages of other origins, such as " + strconv.Quote(from) +
				", must not use this part of the node")
		}
	}
	if fromOtherPage(r) {
		return errors.New("pages of other origins must not use this part of the node")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(admin.Header) == "" {
		return errors.New("a request that changes something must carry the header " + admin.Header +
			": 1")
	}
	return nil
}

// known reports whether the host of a request is an IP address or one of hosts.
func known(hostport string, hosts []string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return net.ParseIP(host) != nil || slices.ContainsFunc(hosts, func(known string) bool {
		return strings.EqualFold(strings.TrimSpace(known), host)
	})
}

// fromOtherPage reports whether a browser says that it asks for a page that is
// not this node's. Other programs say nothing.
func fromOtherPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}
