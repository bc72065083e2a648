package httpapi

import (
	"errors"
	"net/http"

	"dalmatiner/internal/api/httpapi/senders"
)

// senderRoutes are those that package senders answers.
func (a *api) senderRoutes() (out []route) {
	if a.Senders == nil {
		return nil
	}
	for _, rt := range a.Senders.Routes() {
		out = append(out, route{pattern: rt.Path, methods: rt.Methods, name: rt.Name, sends: true,
			serve: func(w http.ResponseWriter, r *http.Request) error { return a.send(rt, w, r) }})
	}
	return out
}

// bodyReasons are those under which the account counts bodies that are not read. What is wrong
// with points is counted where they are.
var bodyReasons = map[int]string{
	http.StatusRequestEntityTooLarge: reasonTooLarge,
	http.StatusUnsupportedMediaType:  reasonType,
}

// send stores what a client of another system sends.
func (a *api) send(rt senders.Route, w http.ResponseWriter, r *http.Request) error {
	if err := a.checkBrowser(r); err != nil {
		return err
	}
	if !a.Ready() {
		return &statusError{http.StatusServiceUnavailable, reasonBusy,
			"not ready: the node is starting or stopping"}
	}
	lease := bodyOf(r).in.Lease
	err := rt.Serve(w, r, senders.Body{Reader: r.Body, Grow: func(bytes int64) error {
		return lease.GrowWhenFree(r.Context(), bytes)
	}})
	if known := (*senders.Error)(nil); errors.As(err, &known) {
		refused := &statusError{known.Status, bodyReasons[known.Status], known.Text}
		return &formedError{refused, known.JSON}
	}
	return err
}

// checkBrowser refuses what a page of another origin sends. Browsers say that they ask for a page;
// what else sends points has no such headers, and may use any name of the node.
func (a *api) checkBrowser(r *http.Request) error {
	if r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return nil
	}
	return a.guard(r)
}
