package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"dalmatiner/internal/api/eventjson"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/write"
)

// postEvents stores events, one JSON object a line. A line that is none is named in the answer,
// and the rest goes on. The answer comes when all are durable.
func (a *api) postEvents(w http.ResponseWriter, r *http.Request) error {
	if a.Events == nil {
		return errNoEvents
	}
	if err := a.checkBrowser(r); err != nil {
		return err
	}
	bucket, err := bucketName(behind(r, 1))
	if err != nil {
		return err
	}
	unit, err := eventjson.Unit(param(r, "unit"))
	if err != nil {
		return badRequest("%v", err)
	}
	if !a.Ready() {
		return &statusError{http.StatusServiceUnavailable, reasonBusy,
			"not ready: the node is starting or stopping"}
	}
	if _, err := a.Points.EnsureBucket(bucket, buckets.Form{}); err != nil {
		return nearBuckets(a.Store, bucket, err)
	}
	in := eventjson.Import{Store: a.Events, Bucket: bucket, Unit: unit, Stored: bodyOf(r).done,
		Ahead: func(n events.Ahead) { a.tellAhead(r, n) },
		Bad:   func() { a.Store.Account().RefuseRequest("event_malformed") }}
	report, token, err := in.Lines(r.Body)
	if broken := (*eventjson.ReadError)(nil); errors.As(err, &broken) {
		return bodyError(broken.Err)
	}
	if err != nil {
		return err
	}
	if a.Points.Durable() && token != (write.Token{}) {
		if err := a.Points.WaitDurable(r.Context(), token); err != nil {
			return err
		}
	}
	answer, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	status := http.StatusOK
	if report.Bad > 0 && report.Bad == report.Received {
		status = http.StatusBadRequest
	}
	return respond(w, status, typeJSON, append(answer, '\n'))
}

// tellAhead notes that a client has sent events too far ahead.
func (a *api) tellAhead(r *http.Request, n events.Ahead) {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // zero for what is no TCP connection
	a.Ahead.Tell(ahead.Found{Listener: "http", Addr: peer.Addr(), Count: n.Events,
		Sent: time.Unix(0, n.Sent), Arrived: time.Now(), Fate: ahead.WithArrival})
}
