package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"dalmatiner/internal/coordinator"
	"dalmatiner/internal/eventjson"
)

// postEvents stores events, one JSON object a line. A line that is none is named in the answer,
// and the rest goes on. The answer comes when all are durable.
func (a eventRoutes) postEvents(w http.ResponseWriter, r *http.Request) error {
	if a.Events == nil {
		return errNoEvents
	}
	// Browsers say that they ask for a page; a page of another origin must not write. What else
	// sends events has no such headers, and may use any name of the node.
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		if err := a.guard(r); err != nil {
			return err
		}
	}
	bucket, err := bucketName(behind(r, 1))
	if err != nil {
		return err
	}
	unit, ok := map[string]time.Duration{"": time.Nanosecond, "ns": time.Nanosecond, "ms": time.Millisecond, "s": time.Second}[param(r, "unit")]
	if !ok {
		return badRequest("unit=%s: known are s, ms, and ns, which is the default", param(r, "unit"))
	}
	if !a.Ready() {
		return &statusError{http.StatusServiceUnavailable, reasonBusy, "not ready: the node is starting or stopping"}
	}
	if _, err := a.Points.EnsureBucket(bucket); err != nil {
		return nearBuckets(a.Store, bucket, err)
	}
	in := eventjson.Import{Store: a.Events, Bucket: bucket, Unit: unit, Now: time.Now().UnixNano(),
		Bad: func() { a.Store.Account().RefuseRequest("event_malformed") }, Stored: bodyOf(r).done}
	report, token, err := in.Lines(r.Body)
	if broken := (*eventjson.ReadError)(nil); errors.As(err, &broken) {
		return bodyError(broken.Err)
	}
	if err != nil {
		return err
	}
	if a.Points.Durable() && token != (coordinator.Token{}) {
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
	return write(w, status, typeJSON, append(answer, '\n'))
}
