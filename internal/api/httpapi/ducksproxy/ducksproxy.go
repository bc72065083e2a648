// Package ducksproxy hands requests of the page on to ducks, which has an API of its own: so a
// browser that reaches the store sees the rooms as well, with what lets it in there and nothing of
// this node's.
package ducksproxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"dalmatiner/access/trust"
)

// Where the API of ducks is, here and there.
const (
	mount = "/ducks"
	root  = "/api/v1/"
	Path  = mount + root // what is below it is handed on
)

// Limits of requests to ducks. Its longest answer is to a clone, which takes milliseconds, or an
// update, which compares images.
const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 2 * time.Minute
)

// Proxy hands requests on. It may be used concurrently.
type Proxy struct {
	to      *url.URL
	forward httputil.ReverseProxy
}

// New returns one that hands on to the ducks at an address without a path. An https server is
// trusted by the certificate of its CA in a file, or without one by those of the system.
func New(to *url.URL, ca string) (*Proxy, error) {
	trusted, err := trust.CA(ca)
	if err != nil {
		return nil, err
	}
	p := &Proxy{to: to}
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:       trusted,
		ResponseHeaderTimeout: answerTimeout,
		IdleConnTimeout:       time.Minute,
	}
	p.forward = httputil.ReverseProxy{
		Transport:      t,
		Rewrite:        p.rewrite,
		ModifyResponse: answered,
		ErrorHandler:   failed,
	}
	return p, nil
}

// outcome is where a request leaves why it was not answered.
type outcome struct{ err error }

type outcomeKey struct{}

// Serve answers with what ducks says. An error says that ducks has not answered: then nothing is
// written.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request) error {
	var out outcome
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), outcomeKey{}, &out)))
	if out.err != nil {
		return fmt.Errorf("ducks at %s does not answer: %w", p.to, out.err)
	}
	return nil
}

// rewrite makes the request to ducks. It gets what it needs, and no cookie of anybody.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	u := *r.In.URL
	u.Scheme, u.Host = p.to.Scheme, p.to.Host
	u.Path, u.RawPath = strings.TrimPrefix(u.Path, mount), strings.TrimPrefix(u.RawPath, mount)
	r.Out.URL, r.Out.Host, r.Out.Header = &u, "", http.Header{}
	for _, name := range []string{"Accept", "Authorization", "Content-Type"} {
		if v, is := r.In.Header[name]; is {
			r.Out.Header[name] = v
		}
	}
}

// answered keeps of the header what says what the body is; the rest is this node's.
func answered(r *http.Response) error {
	kept := http.Header{}
	for _, name := range []string{"Content-Length", "Content-Type"} {
		if v, is := r.Header[name]; is {
			kept[name] = v
		}
	}
	r.Header = kept
	return nil
}

func failed(_ http.ResponseWriter, r *http.Request, err error) {
	r.Context().Value(outcomeKey{}).(*outcome).err = err
}
