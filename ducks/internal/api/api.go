// Package api is what programs and pages ask ducks: JSON over HTTP, with a token or a session.
// Every change is in the trail, done or refused.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"dalmatiner/access"
	"dalmatiner/access/state"
	"dalmatiner/ducks/internal/boot"
	"dalmatiner/ducks/internal/contents"
	"dalmatiner/ducks/internal/dhcp"
	"dalmatiner/ducks/internal/pool"
	"dalmatiner/ducks/internal/room"
	"dalmatiner/ducks/internal/target"
)

// Options are what is asked.
type Options struct {
	Room   *room.Room
	Server Server
	Pool   pool.Pool
	Access *access.Access
	Times  *boot.Times
	Leases func() ([]dhcp.Lease, error)
	// Sessions returns those of all devices as they were when asked last, not longer ago than age, and
	// when that was.
	Sessions func(ctx context.Context, age time.Duration) ([]target.Traffic, time.Time, error)
	Reads    *contents.Turns
	Wake     func(mac string) error // switches a machine on; nil: no interface is known
	Logger   *slog.Logger
}

// maxBody bounds what a request brings.
const maxBody = 64 << 10

// call is a request of somebody who was let in.
type call struct {
	*Options
	*http.Request
	w      http.ResponseWriter
	secret string // of a token or session
	who    access.Identity
	object string     // that it concerns, for the trail
	within []string   // the scopes in which that lies
	seen   *room.Tree // once something asked for it
}

// route is what can be asked.
type route struct {
	pattern string
	text    string      // what it does, for people
	role    access.Role // that it needs; empty: nobody has to be let in yet
	what    string      // for the trail; empty: it changes nothing
	do      func(c *call) (any, error)
	in, out reflect.Type // of the bodies; nil: none, or no JSON
	query   []string     // what an address may have behind its path
	scope   scope        // the scopes in which its object lies; nil: it concerns all
	image   bool         // its body is an image, which is as long as it is
}

// Handler answers below /api/v1/.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, q *http.Request) { o.serve(w, q, r) })
	}
	mux.HandleFunc("GET "+Description, func(w http.ResponseWriter, _ *http.Request) {
		o.write(w, http.StatusOK, describe(routes()))
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, q *http.Request) {
		o.answer(w, nil, fmt.Errorf("%s %s: %w", q.Method, q.URL.Path, state.ErrUnknown))
	})
	return mux
}

func (o *Options) serve(w http.ResponseWriter, q *http.Request, r route) {
	c := &call{Options: o, Request: q, w: w, object: q.PathValue("name")}
	if r.image {
		u := receives(w, q)
		defer u.drain()
	} else {
		q.Body = http.MaxBytesReader(w, q.Body, maxBody)
	}
	c.secret, _ = strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	var answer any
	var err error
	if r.role != "" {
		if c.who, err = o.Access.Check(c.secret); err == nil {
			err = c.may(r)
		} else if errors.Is(err, access.ErrDenied) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			o.fail(w, http.StatusUnauthorized, err)
			return
		}
	}
	if err == nil {
		answer, err = r.do(c)
	}
	if r.what != "" {
		act := access.Act{
			Who:    c.who.Name,
			From:   q.RemoteAddr,
			What:   r.what,
			Object: c.object,
			Within: c.concerned(),
		}
		if err != nil {
			act.Error = err.Error()
		}
		if e := o.Access.Record(act); e != nil {
			err = errors.Join(err, fmt.Errorf("the trail: %w", e))
		}
	}
	if _, is := answer.(sent); is {
		if err != nil {
			o.Logger.Warn("an answer was cut off", "path", q.URL.Path, "err", err)
		}
		return
	}
	o.answer(w, answer, err)
}

// concerned returns the scopes whose admins see an act in the trail: those of what it concerns, and
// of who did it.
func (c *call) concerned() []string {
	list := slices.Concat(c.within, c.who.Scopes)
	slices.Sort(list)
	return slices.Compact(list)
}

// may returns access.ErrDenied unless who asks has the role for a route, and reaches what it
// concerns.
func (c *call) may(r route) (err error) {
	if r.scope == nil || !c.who.Role.Allows(r.role) {
		return c.who.May(r.role)
	}
	if len(c.who.Scopes) == 0 && r.what == "" {
		return nil // it reaches all, and nothing is noted
	}
	if c.within, err = r.scope(c); err != nil {
		return err
	}
	return c.who.May(r.role, c.within...)
}

// statuses are those of errors, the first that fits.
var statuses = []struct {
	err    error
	status int
}{
	{access.ErrDenied, http.StatusForbidden}, {state.ErrUnknown, http.StatusNotFound},
	{pool.ErrUnknown, http.StatusNotFound},
	{room.ErrExists, http.StatusConflict}, {access.ErrExists, http.StatusConflict},
	{pool.ErrExists, http.StatusConflict},
	{room.ErrBusy, http.StatusConflict}, {room.ErrLimit, http.StatusConflict},
	{target.ErrBusy, http.StatusConflict}, {access.ErrTooMany, http.StatusTooManyRequests},
	{pool.ErrFull, http.StatusInsufficientStorage},
	{errRequest, http.StatusBadRequest}, {room.ErrRefused, http.StatusBadRequest},
	{contents.ErrImage, http.StatusBadRequest}, {pool.ErrSize, http.StatusBadRequest},
	{access.ErrRefused, http.StatusBadRequest}, {room.ErrName, http.StatusBadRequest},
	{access.ErrName, http.StatusBadRequest},
}

// errRequest is a request that cannot be read.
var errRequest = errors.New("the request is not understood")

func (o *Options) answer(w http.ResponseWriter, answer any, err error) {
	if err == nil {
		o.write(w, http.StatusOK, answer)
		return
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			o.fail(w, s.status, err)
			return
		}
	}
	o.Logger.Error("a request failed", "err", err)
	o.fail(w, http.StatusInternalServerError, err)
}

func (o *Options) fail(w http.ResponseWriter, status int, err error) {
	o.write(w, status, map[string]string{"error": strings.ReplaceAll(err.Error(), "\n", "; ")})
}

func (o *Options) write(w http.ResponseWriter, status int, answer any) {
	if answer == nil {
		answer = struct{}{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // an error may have a command with '>'
	e.SetIndent("", "  ")
	if err := e.Encode(answer); err != nil {
		o.Logger.Error("an answer cannot be written", "err", err)
		status, b = http.StatusInternalServerError,
			*bytes.NewBufferString(`{"error": "the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who asked may have gone
}

// read reads the body of a request.
func read[T any](c *call) (v T, err error) {
	d := json.NewDecoder(c.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, fmt.Errorf("%w: %w", errRequest, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, fmt.Errorf("%w: something follows the JSON", errRequest)
	}
	return v, nil
}
