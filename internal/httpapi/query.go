package httpapi

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"dalmatiner/internal/query"
)

//go:embed page.html
var page []byte

// root answers a query, or without one shows how to ask.
func (a *api) root(w http.ResponseWriter, r *http.Request) error {
	text, given, err := queryText(r)
	if err != nil {
		return err
	}
	if !given {
		return a.queryPage(w, r)
	}
	asked, err := negotiate(r, formJSON, formMsgpack)
	if err != nil {
		return err
	}
	if !a.Ready() {
		return &statusError{http.StatusServiceUnavailable, reasonBusy, "not ready: the node is starting or stopping"}
	}
	result, err := a.run(r.Context(), text)
	if err != nil {
		return err
	}
	return writeResult(w, asked, result)
}

// run runs a query when it is its turn. The turn ends with the query: a client
// that reads the answer slowly holds back nobody.
func (a *api) run(ctx context.Context, text string) (*query.Result, error) {
	select {
	case a.turns <- struct{}{}:
	default:
		if err := a.waitForTurn(ctx); err != nil {
			return nil, err
		}
	}
	defer func() { <-a.turns }()
	return a.Engine.Query(ctx, text, query.Options{})
}

func (a *api) waitForTurn(ctx context.Context) error {
	patience := time.NewTimer(a.queryWait)
	defer patience.Stop()
	select {
	case a.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-patience.C:
		return &statusError{http.StatusServiceUnavailable, reasonBusy,
			fmt.Sprintf("busy: %d queries are running, the limit is %d, and none ended in %v: try again later", len(a.turns), cap(a.turns), a.queryWait)}
	}
}

func (a *api) queryPage(w http.ResponseWriter, r *http.Request) error {
	asked, err := negotiate(r, formPage, formJSON)
	if err != nil {
		return err
	}
	if asked != formPage {
		return badRequest("no query: give one as /?q=SELECT..., percent-encoded, or as the body of a POST")
	}
	h := w.Header()
	h.Set("Content-Type", typePage)
	h.Set("Content-Security-Policy", "default-src 'self'; style-src 'unsafe-inline'")
	_, err = w.Write(page)
	return err
}

// queryText returns the query of a request: the parameter q of the URL or of a
// form, or the whole body of a POST of another type. given is false when there
// is none.
func queryText(r *http.Request) (text string, given bool, err error) {
	if q, ok := r.URL.Query()["q"]; ok {
		return q[0], true, nil
	}
	if r.Method != http.MethodPost {
		return "", false, nil
	}
	contentType := r.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if contentType != "" && err != nil {
		return "", false, unsupported(contentType)
	}
	switch mediaType {
	case "application/x-www-form-urlencoded":
		if err := r.ParseForm(); err != nil {
			return "", false, bodyError(err)
		}
		if q, ok := r.PostForm["q"]; ok {
			return q[0], true, nil
		}
		return "", false, badRequest("the form has no field q: send q=SELECT..., percent-encoded, or the bare query with Content-Type text/plain")
	case "", "text/plain", "application/dql", "application/octet-stream":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return "", false, bodyError(err)
		}
		return string(body), true, nil
	}
	return "", false, unsupported(contentType)
}

func unsupported(contentType string) error {
	return &statusError{http.StatusUnsupportedMediaType, reasonType,
		"a query cannot be read from " + contentType + ": send a form with q, or the bare query as text/plain"}
}
