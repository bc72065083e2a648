package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/inventory"
	"dalmatiner/internal/store/snapshot"
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

// operations are the routes that an Operator serves.
type operations struct {
	operator Operator
	store    Store // names buckets that may be meant
	logger   *slog.Logger
}

func (o *operations) routes() []route {
	return []route{
		{pattern: "/admin/caches", methods: "GET", serve: o.caches},
		// It changes nothing but costs much: no foreign page may ask for it.
		{pattern: "/admin/check", methods: "POST", serve: o.check},
		{pattern: "/admin/segments", methods: "GET", serve: o.segments},
		{pattern: "/admin/snapshots", methods: "GET", serve: o.snapshots},
		{pattern: "/admin/snapshots/create", methods: "POST", serve: o.createSnapshot},
		{pattern: "/admin/snapshots/delete", methods: "POST", serve: o.deleteSnapshot},
	}
}

func (a *api) status(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, a.Status())
}

func (a *api) recentLog(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, a.Log())
}

func (o *operations) segments(w http.ResponseWriter, r *http.Request) error {
	bucket := ""
	if escaped := r.URL.Query().Get("bucket"); escaped != "" {
		name, err := bucketName(escaped)
		if err != nil {
			return err
		}
		bucket = name
	}
	list, err := o.operator.Segments(r.Context(), bucket)
	if err != nil {
		return nearBuckets(o.store, bucket, err)
	}
	return writeJSON(w, list)
}

func (o *operations) caches(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, o.operator.Caches())
}

func (o *operations) snapshots(w http.ResponseWriter, _ *http.Request) error {
	list, err := o.operator.Snapshots()
	if err != nil {
		return err
	}
	return writeJSON(w, list)
}

func (o *operations) createSnapshot(w http.ResponseWriter, r *http.Request) error {
	var in admin.SnapshotName
	if err := readBody(r, &in); err != nil {
		return err
	}
	s, err := o.operator.Snapshot(r.Context(), in.Name)
	if err != nil {
		return err
	}
	o.logger.Info("snapshot made", "name", s.Name, "bytes", s.Bytes, "remote", r.RemoteAddr)
	return writeJSON(w, s)
}

func (o *operations) deleteSnapshot(w http.ResponseWriter, r *http.Request) error {
	var in admin.SnapshotName
	if err := readBody(r, &in); err != nil {
		return err
	}
	if err := o.operator.DeleteSnapshot(in.Name); err != nil {
		return nearSnapshots(o.operator, in.Name, err)
	}
	o.logger.Info("snapshot deleted", "name", in.Name, "remote", r.RemoteAddr)
	return writeJSON(w, in)
}

// check answers with lines of JSON: progress while it goes on, the report at
// the end. The client that leaves ends it.
func (o *operations) check(w http.ResponseWriter, r *http.Request) error {
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
	if err := control.SetWriteDeadline(time.Time{}); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
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
	report, err := o.operator.Check(r.Context(),
		fsck.Options{Rate: in.Rate, Progress: func(p fsck.Progress) {
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
		o.logger.Info("checked", "files", report.Files, "points", report.Points, "damaged",
			report.Damaged, "remote", r.RemoteAddr)
		send(admin.CheckMessage{Report: &report})
	}
	return nil
}
