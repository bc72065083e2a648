package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"dalmatiner/internal/cluster/tagging"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/write"
)

// retryAfter is in how many seconds a client tries again what the node cannot do now.
const retryAfter = "5"

// statusError is an error that knows its HTTP status, and the reason under
// which the account counts the refused request where it counts it.
type statusError struct {
	status int
	reason string
	text   string
}

func (e *statusError) Error() string { return e.text }

// formedError is a statusError whose answer has the form of a protocol; nil is that of all others.
type formedError struct {
	*statusError
	json []byte
}

func (e *formedError) Unwrap() error { return e.statusError }

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, "", fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &statusError{http.StatusNotFound, "", fmt.Sprintf(format, args...)}
}

// Reasons under which the account counts refused requests of this package.
const (
	reasonSyntax        = "query_syntax"
	reasonUnknownBucket = "query_unknown_bucket"
	reasonNoResults     = "query_no_results"
	reasonLimit         = "query_limit"
	reasonUnsupported   = "query_unsupported"
	reasonBusy          = "query_busy"
	reasonTimeout       = "query_timeout"
	reasonMemory        = "query_memory"
	reasonNoMajority    = "no_majority"
	reasonTooLarge      = "http_too_large"
	reasonType          = "http_type"
	reasonForbidden     = "http_forbidden"
)

// statusClientGone is what a proxy's log calls a request whose client went
// away; nobody receives it.
const statusClientGone = 499

// classify returns the status of an error and the reason under which it is
// counted, "" for those that are not refusals of a query or frame.
func classify(err error) (status int, reason string) {
	var (
		known  *statusError
		tooBig *http.MaxBytesError
		limit  *query.LimitError
		syntax *dql.Error
		memory *memory.Refusal
	)
	switch {
	case errors.As(err, &known):
		return known.status, known.reason
	case errors.As(err, &tooBig):
		return http.StatusRequestEntityTooLarge, reasonTooLarge
	case tagging.Reason(err) != "":
		return http.StatusServiceUnavailable, tagging.Reason(err)
	case errors.Is(err, buckets.ErrNoMajority):
		return http.StatusServiceUnavailable, reasonNoMajority
	case errors.Is(err, query.ErrNoResults):
		return http.StatusNotFound, reasonNoResults
	case errors.Is(err, buckets.ErrUnknown):
		return http.StatusNotFound, reasonUnknownBucket
	case errors.As(err, &limit):
		return http.StatusBadRequest, reasonLimit
	case errors.As(err, &memory) && memory.TooLarge:
		return http.StatusRequestEntityTooLarge, reasonMemory
	case memory != nil:
		return http.StatusServiceUnavailable, reasonMemory
	case errors.Is(err, query.ErrUnsupported):
		return http.StatusBadRequest, reasonUnsupported
	case errors.As(err, &syntax):
		return http.StatusBadRequest, reasonSyntax
	case errors.Is(err, context.Canceled):
		return statusClientGone, ""
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, reasonBusy
	}
	return statusOf(err), ""
}

// statusOf returns the status of an error of the store.
func statusOf(err error) int {
	is := func(known error) bool { return errors.Is(err, known) }
	switch {
	case is(buckets.ErrInvalid), is(snapshot.ErrName):
		return http.StatusBadRequest
	case is(deletion.ErrUnknownSeries), is(snapshot.ErrUnknown):
		return http.StatusNotFound
	case is(buckets.ErrExists), is(snapshot.ErrExists), is(store.ErrBusy), is(deletion.ErrTooMany):
		return http.StatusConflict
	case is(write.ErrDiskFull):
		return http.StatusInsufficientStorage
	}
	return http.StatusInternalServerError
}

// fail answers with an error as text or JSON, counts refusals, and logs what is
// our fault. Nothing must have been written before.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, reason := classify(err)
	if reason != "" {
		a.Store.Account().RefuseRequest(reason)
	}
	if status == statusClientGone {
		return
	}
	if status >= http.StatusInternalServerError && reason == "" && !errors.As(err, new(*statusError)) {
		a.log.Log(slog.LevelError, "request_failed", "request failed", "method", r.Method, "path",
			r.URL.Path, "err", err)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	p := newProblem(err, status, reason)
	text, contentType := []byte(p.Text()+"\n"), typeText
	formed := (*formedError)(nil)
	switch {
	case errors.As(err, &formed) && formed.json != nil:
		text, contentType = append(formed.json, '\n'), typeJSON
	case wantsJSON(r):
		text, contentType = p.JSON(), typeJSON
	}
	if werr := respond(w, status, contentType, text); werr != nil {
		a.Logger.Debug("answer not delivered", "path", r.URL.Path, "err", werr)
	}
}

func respond(w http.ResponseWriter, status int, contentType string, body []byte) error {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}
