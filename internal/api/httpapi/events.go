package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"dalmatiner/internal/api/eventjson"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/filter"
	"dalmatiner/internal/store/events"
)

// Limits of reads of events.
const (
	defaultEvents = 10_000
	maxEvents     = 1_000_000

	maxTails   = 64                  // live tails at a time
	tailBytes  = events.MaxBody + 64 // that wait for a reader; as many are on their way
	tailRest   = time.Second         // between two looks whether the node stops
	tailSilent = 15 * time.Second    // after which a tail says that it is there
)

// eventsAsked is what a GET of events asks for.
type eventsAsked struct {
	bucket     string
	start, end int64 // ns
	want       *filter.Filter
	limit      int
	newest     bool // the newest come first
	follow     bool
}

var errNoEvents = &statusError{http.StatusNotImplemented, reasonUnsupported,
	"events are not in this version"}

// getEvents answers with the events of a range, or with those that come from now on.
func (a *api) getEvents(w http.ResponseWriter, r *http.Request) error {
	if a.Events == nil {
		return errNoEvents
	}
	asked, err := a.eventsAsked(r)
	if err != nil {
		return err
	}
	if !a.Ready() {
		return &statusError{http.StatusServiceUnavailable, reasonBusy,
			"not ready: the node is starting or stopping"}
	}
	need := int64(replyBuffer + pieceSize)
	if asked.follow {
		need = 2*tailBytes + pieceSize
	}
	lease := a.Memory.Lease()
	defer lease.Release()
	if err := lease.Grow(need); err != nil {
		return err
	}
	clientOf(w).lease = lease // while memory is short, slow readers are cut off earlier
	if asked.follow {
		return a.followEvents(w, r, asked)
	}
	if _, err := negotiate(r, formJSON); err != nil {
		return err
	}
	// A read takes a turn as a query does, to its end: it sends as it reads.
	if err := a.takeTurn(r.Context()); err != nil {
		return err
	}
	defer a.endTurn()
	return a.listEvents(w, r, asked)
}

func (a *api) eventsAsked(r *http.Request) (q eventsAsked, err error) {
	if q.bucket, err = bucketName(param(r, "bucket")); err != nil {
		return q, badRequest("Bad bucket: %v", err)
	}
	text := param(r, "filter")
	if q.want, err = filter.FromText(text); err != nil {
		return q, &queryError{err, text}
	}
	switch follow := param(r, "follow"); follow {
	case "", "0":
	case "1":
		q.follow = true
		for _, name := range []string{"start", "end", "limit", "order"} {
			if param(r, name) != "" {
				return q, badRequest("%s: follow=1 gives the events from now on", name)
			}
		}
		return q, nil
	default:
		return q, badRequest("follow=%s: known are 1, for the events from now on, and 0", follow)
	}
	q.end = time.Now().UnixNano()
	if text := param(r, "start"); text == "" {
		return q, badRequest("Bad start: it is missing; give a date, or a number of milliseconds since " +
			"1970")
	} else if q.start, err = eventjson.ParseTime(text); err != nil {
		return q, badRequest("Bad start: %v", err)
	}
	if text := param(r, "end"); text != "" {
		if q.end, err = eventjson.ParseTime(text); err != nil {
			return q, badRequest("Bad end: %v", err)
		}
	}
	order := param(r, "order")
	if q.newest = order == "desc"; order != "" && order != "asc" && !q.newest {
		return q, badRequest("order=%s: known are asc, the oldest first, and desc, the newest first",
			order)
	}
	q.limit = defaultEvents
	if text := param(r, "limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 || q.limit > maxEvents {
			return q, badRequest("limit=%s: it is a number of events, from 1 to %d", text, maxEvents)
		}
	}
	return q, nil
}

// listEvents sends events as they are read. Once it has begun, only a broken connection can say
// that the answer is not whole.
func (a *api) listEvents(w http.ResponseWriter, r *http.Request, asked eventsAsked) error {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(clientOf(w).lease.WithContext(r.Context()), a.QueryTimeout,
		errQueryTimeout)
	defer cancel()
	begun := &begunWriter{ResponseWriter: w}
	out := bufio.NewWriterSize(begun, replyBuffer)
	w.Header().Set("Content-Type", typeJSON)
	buf := append(out.AvailableBuffer(), `{"e":[`...)
	n, more := 0, false
	read := a.Events.Read
	if asked.newest {
		read = a.Events.ReadBack
	}
	gaps, err := read(ctx, asked.bucket, asked.start, asked.end, func(e *events.Event) (err error) {
		if !asked.want.Match(term.Root(e.Body)) {
			return nil
		}
		if n == asked.limit {
			more = true
			return events.Stop
		}
		if n > 0 {
			buf = append(buf, ',')
		}
		n++
		if buf = eventjson.AppendEvent(buf, e.Time, e.Body); len(buf) < pieceSize {
			return nil
		}
		buf, err = encoded(out, buf)
		return err
	})
	if err != nil {
		if begun.begun {
			panic(http.ErrAbortHandler)
		}
		w.Header().Del("Content-Type")
		if errors.Is(context.Cause(ctx), errQueryTimeout) {
			return tookTooLong(a.QueryTimeout)
		}
		return nearBuckets(a.Store, asked.bucket, err)
	}
	buf = append(buf, ']')
	if more {
		buf = append(buf, `,"more":true`...)
	}
	if len(gaps) > 0 {
		buf = eventjson.AppendGaps(append(buf, `,"damaged":`...), gaps)
	}
	buf = strconv.AppendInt(append(buf, `,"t":`...), time.Since(began).Microseconds(), 10)
	_, err = out.Write(append(buf, "}\n"...))
	if err = errors.Join(err, out.Flush()); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// followEvents sends the events of a bucket as they are written, until the client leaves or the
// node stops.
func (a *api) followEvents(w http.ResponseWriter, r *http.Request, asked eventsAsked) error {
	select {
	case a.tails <- struct{}{}:
		defer func() { <-a.tails }()
	default:
		return &statusError{http.StatusServiceUnavailable, reasonBusy,
			fmt.Sprintf("busy: %d live tails of events are open, which is the limit", maxTails)}
	}
	tail, err := a.Events.Follow(asked.bucket, tailBytes)
	if err != nil {
		return nearBuckets(a.Store, asked.bucket, err)
	}
	defer tail.Close()
	if out, ok := w.(*reply); ok {
		out.packers = nil // what is held to be compressed comes late
	}
	clientOf(w).end = time.Time{}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	send := func(text []byte) error {
		_, err := w.Write(text)
		return errors.Join(err, flush.Flush())
	}
	if err := send([]byte(": events from now on\n\n")); err != nil {
		return nil // the client has left
	}
	spoke, buf := time.Now(), make([]byte, 0, pieceSize)
	for a.Ready() && r.Context().Err() == nil {
		ctx, cancel := context.WithTimeout(r.Context(), tailRest)
		list, missed, err := tail.Next(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil // the bucket was deleted, the store closed, or the client has left
		}
		sent, err := eventjson.Tail(buf, list, missed, asked.want, pieceSize, send)
		if err == nil && !sent && time.Since(spoke) > tailSilent {
			sent, err = true, send([]byte(": nothing new\n\n"))
		}
		if err != nil {
			return nil
		}
		if sent {
			spoke = time.Now()
		}
	}
	return nil
}

// encodeEvents appends the events of a query to buf, which it writes out in pieces.
func encodeEvents(ctx context.Context, w *bufio.Writer, buf []byte,
	list *query.EventList) ([]byte, error) {
	buf = appendString(append(buf, `{"type":"events","name":`...), list.Name)
	metadata, err := json.Marshal(readable(list.Metadata))
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", list.Name, err)
	}
	buf = append(append(buf, `,"metadata":`...), metadata...)
	buf = append(buf, `,"values":[`...)
	first := true
	more, gaps, err := list.Each(ctx, func(e *query.Event) (err error) {
		if !first {
			buf = append(buf, ',')
		}
		first = false
		if buf = eventjson.AppendEvent(buf, e.Time, e.Body); len(buf) >= pieceSize {
			buf, err = encoded(w, buf)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	buf = append(buf, ']')
	if more {
		buf = append(buf, `,"more":true`...)
	}
	if len(gaps) > 0 {
		buf = eventjson.AppendGaps(append(buf, `,"damaged":`...), gaps)
	}
	return append(buf, '}'), nil
}

// mpEvents is encodeEvents as msgpack.
func mpEvents(w *bufio.Writer, buf []byte, list *query.EventList) ([]byte, error) {
	entries := 4
	if len(list.Gaps) > 0 {
		entries++
	}
	buf = mpHead(buf, mpMap32, entries)
	buf = mpString(mpString(buf, "type"), "events")
	buf = mpString(mpString(buf, "name"), validText(list.Name))
	buf = mpMetadata(mpString(buf, "metadata"), list.Metadata)
	if len(list.Gaps) > 0 {
		buf = mpHead(mpString(buf, "damaged"), mpArray32, len(list.Gaps))
		for _, g := range list.Gaps {
			buf = mpInt(mpString(mpHead(buf, mpMap32, 3), "start"), g.Start)
			buf = mpInt(mpString(buf, "end"), g.End)
			buf = mpInt(mpString(buf, "events"), g.Events)
		}
	}
	buf = mpHead(mpString(buf, "values"), mpArray32, len(list.Events))
	for i := range list.Events {
		e := &list.Events[i]
		in := json.NewDecoder(bytes.NewReader(term.Root(e.Body).AppendJSON(nil)))
		in.UseNumber() // every digit of an integer counts
		var body any
		if err := in.Decode(&body); err != nil {
			return nil, fmt.Errorf("an event as JSON: %w", err)
		}
		buf = mpInt(mpString(mpHead(buf, mpMap32, 2), "timestamp"), e.Time)
		if buf = mpValue(mpString(buf, "event"), body); len(buf) >= pieceSize {
			var err error
			if buf, err = encoded(w, buf); err != nil {
				return nil, err
			}
		}
	}
	return buf, nil
}
