package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"dalmatiner/internal/admin"
	"dalmatiner/internal/fsck"
	"dalmatiner/internal/inventory"
	"dalmatiner/internal/snapshot"
	"dalmatiner/internal/store"
)

// Operator is what the routes of operations need of a store. Its methods may
// be called concurrently.
type Operator interface {
	Check(ctx context.Context, o fsck.Options) (fsck.Report, error)
	Snapshot(ctx context.Context, name string) (snapshot.Info, error)
	Snapshots() ([]snapshot.Info, error)
	DeleteSnapshot(name string) error
	Segments(ctx context.Context, bucket string) ([]inventory.Segment, error)
	Caches() []store.Cache
}

// progressEvery is the time between two lines of progress of a check.
const progressEvery = 200 * time.Millisecond

func (a *api) status(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, a.Status())
}

func (a *api) recentLog(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, a.Log())
}

func (a *api) segments(w http.ResponseWriter, r *http.Request) error {
	bucket := ""
	if escaped := r.URL.Query().Get("bucket"); escaped != "" {
		name, err := bucketName(escaped)
		if err != nil {
			return err
		}
		bucket = name
	}
	list, err := a.Operator.Segments(r.Context(), bucket)
	if err != nil {
		return a.nearBuckets(bucket, err)
	}
	return writeJSON(w, list)
}

func (a *api) caches(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, a.Operator.Caches())
}

func (a *api) snapshots(w http.ResponseWriter, _ *http.Request) error {
	list, err := a.Operator.Snapshots()
	if err != nil {
		return err
	}
	return writeJSON(w, list)
}

func (a *api) createSnapshot(w http.ResponseWriter, r *http.Request) error {
	var in admin.SnapshotName
	if err := readBody(r, &in); err != nil {
		return err
	}
	s, err := a.Operator.Snapshot(r.Context(), in.Name)
	if err != nil {
		return err
	}
	a.Logger.Info("snapshot made", "name", s.Name, "bytes", s.Bytes, "remote", r.RemoteAddr)
	return writeJSON(w, s)
}

func (a *api) deleteSnapshot(w http.ResponseWriter, r *http.Request) error {
	var in admin.SnapshotName
	if err := readBody(r, &in); err != nil {
		return err
	}
	if err := a.Operator.DeleteSnapshot(in.Name); err != nil {
		return nearSnapshots(a.Operator, in.Name, err)
	}
	a.Logger.Info("snapshot deleted", "name", in.Name, "remote", r.RemoteAddr)
	return writeJSON(w, in)
}

// check answers with lines of JSON: progress while it goes on, the report at
// the end. The client that leaves ends it.
func (a *api) check(w http.ResponseWriter, r *http.Request) error {
	var in admin.CheckRequest
	if err := readBody(r, &in); err != nil {
		return err
	}
	if in.Rate < 0 {
		return badRequest("a rate of %d bytes per second is negative", in.Rate)
	}
	// A check may take longer than any other reply.
	control := http.NewResponseController(w)
	clientOf(w).end = time.Time{}
	if err := control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	lines := json.NewEncoder(w)
	started, next := false, time.Time{}
	send := func(m admin.CheckMessage) {
		if !started {
			w.Header().Set("Content-Type", "application/x-ndjson")
			started = true
		}
		_ = lines.Encode(m) // fails when the client left, which ends the context
		_ = control.Flush() // likewise
	}
	report, err := a.Operator.Check(r.Context(), fsck.Options{Rate: in.Rate, Progress: func(p fsck.Progress) {
		if now := time.Now(); now.After(next) {
			next = now.Add(progressEvery)
			send(admin.CheckMessage{Progress: &p})
		}
	}})
	switch {
	case err != nil && !started:
		return err
	case err != nil:
		send(admin.CheckMessage{Error: err.Error()})
	default:
		a.Logger.Info("checked", "files", report.Files, "points", report.Points, "damaged", report.Damaged, "remote", r.RemoteAddr)
		send(admin.CheckMessage{Report: &report})
	}
	return nil
}
