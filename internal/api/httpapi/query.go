package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"dalmatiner/internal/api/httpapi/page"
	"dalmatiner/internal/query"
)

// root answers a query, or without one shows how to ask.
func (a *api) root(w http.ResponseWriter, r *http.Request) error {
	text, given, err := queryText(r)
	if err != nil {
		return err
	}
	if !given {
		return a.queryPage(w, r)
	}
	bodyOf(r).keep(int64(len(text)))
	for _, given := range []url.Values{r.Form, r.PostForm} {
		if err := checkParameters(given, queryParameters); err != nil {
			return err
		}
	}
	asked, err := negotiate(r, formJSON, formMsgpack)
	if err != nil {
		return err
	}
	opt, err := a.queryOptions(r)
	if err != nil {
		return err
	}
	if !a.Ready() {
		return &statusError{http.StatusServiceUnavailable, reasonBusy,
			"not ready: the node is starting or stopping"}
	}
	lease := a.Memory.Lease()
	defer lease.Release() // when the answer is out: until then the result is there
	opt.Memory, opt.Stream = lease, asked == formJSON
	end, progress := a.running.Begin(param(r, "id"), text)
	defer end()
	opt.Progress = progress
	result, err := a.run(r.Context(), text, opt)
	if err != nil {
		return &queryError{err, text}
	}
	clientOf(w).lease = lease
	ctx := r.Context()
	if opt.Stream && len(result.Events) > 0 { // they are read while they are sent
		if err := a.takeTurn(ctx); err != nil {
			return err
		}
		defer a.endTurn()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(lease.WithContext(ctx), a.QueryTimeout, errQueryTimeout)
		defer cancel()
	}
	return a.writeResult(ctx, w, asked, result)
}

// run runs a query when it is its turn. The turn ends with the query: a client
// that reads the answer slowly holds back nobody.
func (a *api) run(ctx context.Context, text string, opt query.Options) (*query.Result, error) {
	if err := a.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer a.endTurn()
	began := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, a.QueryTimeout, errQueryTimeout)
	defer cancel()
	result, err := a.Engine.Query(limited, text, opt)
	took := time.Since(began)
	a.served.Queries.Observe(took.Seconds())
	if took >= a.SlowQuery {
		about := []any{"took", took.Round(time.Microsecond), "limit", a.SlowQuery, "query",
			fmt.Sprintf("%.1000s", text)}
		if err != nil {
			about = append(about, "err", err)
		}
		a.log.Log(slog.LevelWarn, "slow_query", "slow query", about...)
	}
	if err != nil && ctx.Err() == nil && context.Cause(limited) == errQueryTimeout {
		return nil, tookTooLong(a.QueryTimeout)
	}
	return result, err
}

// errQueryTimeout is why the context of a query ends that takes too long.
var errQueryTimeout = errors.New("the query takes longer than query.timeout")

func tookTooLong(limit time.Duration) error {
	return &statusError{http.StatusServiceUnavailable, reasonTimeout,
		fmt.Sprintf("the query was given up after %v, the limit is query.timeout: ask for a shorter "+
			"range or fewer series", limit)}
}

// takeTurn waits until it is the turn of a query, and endTurn ends it.
func (a *api) takeTurn(ctx context.Context) error {
	select {
	case a.turns <- struct{}{}:
		return nil
	default:
		return a.waitForTurn(ctx)
	}
}

func (a *api) endTurn() { <-a.turns }

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
			fmt.Sprintf("busy: %d queries are running, the limit is %d, and none ended in %v: try again "+
				"later", len(a.turns), cap(a.turns), a.queryWait)}
	}
}

// greeting is for programs that ask whether somebody is there: the original's plugin for Grafana
// takes a source of data only if it gets 200 for / without a query.
type greeting struct {
	Version string `json:"version"`
	Usage   string `json:"usage"`
}

// queryPage answers where there is no query.
func (a *api) queryPage(w http.ResponseWriter, r *http.Request) error {
	asked, err := negotiate(r, formPage, formJSON)
	if err != nil {
		return err
	}
	if asked != formPage {
		if err := checkParameters(r.Form, queryParameters); err != nil {
			return err
		}
		if r.Method != http.MethodPost && wantsJSON(r) && param(r, "format") == "" {
			return writeJSON(w, greeting{a.Version, "give a query as /?q=SELECT..."})
		}
		return badRequest(
			"no query: give one as /?q=SELECT..., percent-encoded, or as the body of a POST")
	}
	w.Header().Set("Content-Security-Policy", page.Security)
	return respond(w, http.StatusOK, typePage, page.Index(r.Host))
}

// asset answers with a file of the page. Its name changes with its content, so
// browsers may keep it. The build has packed it harder than a reply could be.
func (a *api) asset(w http.ResponseWriter, r *http.Request) error {
	name := behind(r, 1)
	file, ok := page.Find(name)
	if !ok {
		return notFound("there is no file %s of the page", name)
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	if file.Gzipped != nil && takesGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		return respond(w, http.StatusOK, file.MediaType, file.Gzipped)
	}
	return respond(w, http.StatusOK, file.MediaType, file.Body)
}

// queries lists the running queries, or that of one name.
func (a *api) queries(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, a.running.Current(param(r, "id")))
}
