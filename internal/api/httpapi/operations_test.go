package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/inventory"
	"dalmatiner/internal/store/snapshot"
)

func (f *fakeStore) Check(_ context.Context, o fsck.Options) (fsck.Report, error) {
	if f.failure != nil {
		return fsck.Report{}, f.failure
	}
	o.Progress(fsck.Progress{File: "MANIFEST", TotalFiles: 3})
	o.Progress(fsck.Progress{File: "too soon after the one before"})
	return fsck.Report{Dir: "/data", Online: true, Files: 3, Points: o.Rate, Damaged: 1,
		Damages: []fsck.Damage{
			{File: "flush/1.seg", Offset: 8, Part: "data", Expected: "CRC-32C 1", Found: "2"}}}, nil
}

func (f *fakeStore) Snapshot(_ context.Context, name string) (snapshot.Info, error) {
	switch name {
	case "":
		return snapshot.Info{}, fmt.Errorf("%w %q", snapshot.ErrName, name)
	case "there":
		return snapshot.Info{}, fmt.Errorf("%w: %s", snapshot.ErrExists, name)
	}
	return snapshot.Info{Name: name, Dir: "/data/snapshots/" + name, Created: now.UTC(), Files: 2,
		Bytes: 10, Linked: 5, TookUS: 7}, f.failure
}

func (f *fakeStore) Snapshots() ([]snapshot.Info, error) {
	return []snapshot.Info{{Name: "there", Created: now.UTC(), Files: 2, Bytes: 10}}, f.failure
}

func (f *fakeStore) DeleteSnapshot(name string) error {
	if name != "there" {
		return fmt.Errorf("%w %s", snapshot.ErrUnknown, name)
	}
	return f.failure
}

func (f *fakeStore) Segments(_ context.Context, bucket string) ([]inventory.Segment, error) {
	if bucket == "nowhere" {
		return nil, fmt.Errorf("%w %s", buckets.ErrUnknown, metric.Quote(bucket))
	}
	return []inventory.Segment{
		{File: "flush/1.seg " + bucket, Bytes: 100, Points: 50, From: 720_000, To: 1_440_000}}, f.failure
}

func (f *fakeStore) Caches() []store.Cache {
	return []store.Cache{{Name: "sealed-blocks", Holds: "chunks", Bytes: 5}}
}

func TestGoldenOperations(t *testing.T) {
	s := newFakeStore(t)
	h := New(testOptions(s))
	compareGolden(t, "operations.golden", h, []request{
		get("/admin/status"),
		get("/admin/segments"),
		get(`/admin/segments?bucket=%5Cxfe`),
		get("/admin/segments?bucket=nowhere"),
		get("/admin/segments?bucket=a%5C"),
		get("/admin/caches"),
		get("/admin/snapshots"),
		change("/admin/snapshots/create", `{"name":"new"}`),
		change("/admin/snapshots/create", `{"name":"there"}`),
		change("/admin/snapshots/create", `{"name":""}`),
		change("/admin/snapshots/create", `{}x`),
		change("/admin/snapshots/delete", `{"name":"there"}`),
		change("/admin/snapshots/delete", `{"name":"gone"}`),
		change("/admin/snapshots/delete", `{"name":"htere"}`),
		change("/admin/check", `{"rate":1000}`),
		change("/admin/check", `{"rate":-1}`),
		change("/admin/check", `{"speed":1}`),
		get("/admin/check"),
	})
	s.failure = fmt.Errorf("check: %w", store.ErrBusy)
	if got := change("/admin/check", `{}`).send(h).Code; got != http.StatusConflict {
		t.Errorf("a second check gets %d", got)
	}
	s.failure = errBroken
	for _, r := range []request{get("/admin/segments"), get("/admin/snapshots"),
		change("/admin/snapshots/create", `{"name":"x"}`), change("/admin/check", `{}`)} {
		if got := r.send(h).Code; got != http.StatusInternalServerError {
			t.Errorf("%s gets %d", r.target, got)
		}
	}
}

// All of it, reads as well, is refused to foreign pages, and none of it is
// readable for them.
func TestOperationsAreGuarded(t *testing.T) {
	h := New(testOptions(newFakeStore(t)))
	for _, path := range []string{"/admin/check", "/admin/snapshots/create",
		"/admin/snapshots/delete"} {
		r := request{http.MethodPost, path, []string{"Content-Type: application/json"},
			`{"name":"there"}`}
		if got := r.send(h).Code; got != http.StatusForbidden {
			t.Errorf("%s without the header gets %d", path, got)
		}
		if got := change(path, `{"name":"there"}`, "Origin: http://evil.example").send(
			h).Code; got != http.StatusForbidden {
			t.Errorf("%s from a foreign page gets %d", path, got)
		}
	}
	for _, path := range []string{"/admin/status", "/admin/segments", "/admin/caches",
		"/admin/snapshots"} {
		w := get(path, "Origin: http://evil.example").send(h)
		if w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d, %v", path, w.Code, w.Header())
		}
	}
}

// slowCheck fails after it has reported progress.
type slowCheck struct{ *fakeStore }

func (s slowCheck) Check(_ context.Context, o fsck.Options) (fsck.Report, error) {
	o.Progress(fsck.Progress{})
	return fsck.Report{}, errors.New("the disk went away")
}

func TestACheckThatFailsMidway(t *testing.T) {
	o := testOptions(newFakeStore(t))
	o.Operator = slowCheck{newFakeStore(t)}
	w := change("/admin/check", `{}`).send(New(o))
	const want = `{"progress":{"file":"","files":0,"total_files":0,"bytes":0,"damaged":0}}` + "\n" +
		`{"error":"the disk went away"}` + "\n"
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
