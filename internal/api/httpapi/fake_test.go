package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/api/httpapi/figures"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	seam "dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/series"
)

// now is the clock of all tests: second 200.
var now = time.Unix(200, 0)

// fakeStore keeps series as functions of the slot.
type fakeStore struct {
	list    []buckets.Info
	series  map[uint64]map[string]func(slot int64) uint64
	ledger  *account.Account
	nextID  uint64
	flushed flush.Result
	failure error
}

func newFakeStore(t testing.TB) *fakeStore {
	t.Helper()
	f := &fakeStore{series: map[uint64]map[string]func(int64) uint64{}, ledger: account.New(),
		nextID: 1,
		flushed: flush.Result{Segment: "000001.seg", Bytes: 1000, Points: 500, Series: 5,
			Took: 1500 * time.Microsecond}}
	for _, b := range []buckets.Info{
		{Name: "b", Resolution: 1000, PPF: 604800},
		{Name: "odd '\xff\n name", Resolution: 10_000, PPF: 60480, TTL: 8640,
			Grace: int64(5 * time.Second)},
	} {
		if _, err := f.CreateBucket(b); err != nil {
			t.Fatal(err)
		}
	}
	linear := func(slot int64) uint64 { return point.FromInt(slot) }
	f.put(t, 1, linear, "t")
	f.put(t, 1, func(slot int64) uint64 { return point.FromFloat(float64(slot) / 4) }, "f")
	f.put(t, 1, func(slot int64) uint64 {
		if slot%2 == 0 {
			return point.Unset
		}
		return point.FromInt(slot)
	}, "half")
	f.put(t, 1, linear, "a", "x")
	f.put(t, 1, linear, "a", "y/z")
	f.put(t, 1, linear, "a", "..")
	f.put(t, 1, linear, "\xff'\\\"", "")
	f.put(t, 2, linear, "m")
	f.series[2]["\x05raw"] = linear
	return f
}

func (f *fakeStore) put(t testing.TB, id uint64, value func(int64) uint64, parts ...string) {
	t.Helper()
	key, err := metric.Key(parts...)
	if err != nil {
		t.Fatal(err)
	}
	f.series[id][string(key)] = value
}

func (f *fakeStore) Buckets() []buckets.Info { return f.list }

func (f *fakeStore) BucketByName(name string) (buckets.Info, error) {
	for _, b := range f.list {
		if b.Name == name {
			return b, nil
		}
	}
	return buckets.Info{}, fmt.Errorf("%w %s", buckets.ErrUnknown, metric.Quote(name))
}

func (f *fakeStore) CreateBucket(b buckets.Info) (buckets.Info, error) {
	if _, err := f.BucketByName(b.Name); err == nil {
		return buckets.Info{}, fmt.Errorf("%w: %s", buckets.ErrExists, metric.Quote(b.Name))
	}
	if b.Resolution < 1 {
		return buckets.Info{}, fmt.Errorf("%w: a resolution of %d ms", buckets.ErrInvalid, b.Resolution)
	}
	b.ID = f.nextID
	f.nextID++
	f.list = append(f.list, b)
	slices.SortFunc(f.list, func(a, b buckets.Info) int { return strings.Compare(a.Name, b.Name) })
	f.series[b.ID] = map[string]func(int64) uint64{}
	return b, nil
}

func (f *fakeStore) DeleteBucket(name string) error {
	if f.failure != nil {
		return f.failure
	}
	b, err := f.BucketByName(name)
	f.list = slices.DeleteFunc(f.list, func(o buckets.Info) bool { return o.ID == b.ID })
	return err
}

func (f *fakeStore) DeleteSeries(_ context.Context, bucket string, choice deletion.Choice,
	dryRun bool) (deletion.Result, error) {
	b, err := f.BucketByName(bucket)
	if err != nil {
		return deletion.Result{}, err
	}
	out := deletion.Result{Segments: 2, Bytes: 2000}
	for key := range f.series[b.ID] {
		if key == string(choice.Key) || choice.Prefix && strings.HasPrefix(key, string(choice.Key)) {
			out.Series++
			if !dryRun {
				delete(f.series[b.ID], key)
			}
		}
	}
	if out.Series == 0 && !choice.Prefix {
		err = fmt.Errorf("%w %s", deletion.ErrUnknownSeries, metric.Text(choice.Key))
	}
	return out, err
}

func (f *fakeStore) SetTTL(name string, points int64) error {
	for i := range f.list {
		if f.list[i].Name == name {
			f.list[i].TTL = points
			return nil
		}
	}
	return fmt.Errorf("%w %s", buckets.ErrUnknown, metric.Quote(name))
}

// RecentSeries says that no series is new: hours of the clock are not those of the tests.
func (f *fakeStore) RecentSeries() series.RecentSeries { return series.RecentSeries{Since: now} }

func (f *fakeStore) Metrics(_ context.Context, b buckets.Info, prefix []byte,
	fn func(key []byte) bool) error {
	for key := range f.series[b.ID] {
		if bytes.HasPrefix([]byte(key), prefix) && !fn([]byte(key)) {
			return nil
		}
	}
	return f.failure
}

func (f *fakeStore) Merge(context.Context) (compaction.Result, error) {
	return compaction.Result{Windows: 2, Removed: 3, Bytes: 4000, Took: time.Millisecond}, f.failure
}

func (f *fakeStore) Flush(context.Context) (flush.Result, error) { return f.flushed, f.failure }
func (f *fakeStore) Account() *account.Account                   { return f.ledger }
func (f *fakeStore) Stats() store.Stats {
	return store.Stats{Series: 9, Buckets: 2, FreeDisk: 1 << 40}
}

func (f *fakeStore) BucketStats(id uint64) store.BucketStats {
	return store.BucketStats{Series: int64(len(f.series[id]))}
}

// source lets the query engine read a fakeStore.
type source struct{ *fakeStore }

func (s source) Offers() seam.Offers { return seam.Offers{} }

func (s source) Bucket(name string) (seam.Bucket, error) {
	b, err := s.BucketByName(name)
	if err != nil {
		return nil, fmt.Errorf("%w %s", buckets.ErrUnknown, metric.Quote(name))
	}
	return fakeBucket{fakeStore: s.fakeStore, info: b}, nil
}

func (s source) BucketNames() []string {
	var names []string
	for _, b := range s.list {
		names = append(names, b.Name)
	}
	return names
}

type fakeBucket struct {
	*fakeStore
	seam.NoHistory
	info buckets.Info
}

func (b fakeBucket) Info() seam.Info {
	return seam.Info{ID: b.info.ID, Name: b.info.Name, Resolution: b.info.Resolution, TTL: b.info.TTL}
}

func (b fakeBucket) Metrics(ctx context.Context, prefix []byte, fn func(key []byte) bool) error {
	return b.fakeStore.Metrics(ctx, buckets.Info{ID: b.info.ID}, prefix, fn)
}

func (b fakeBucket) Series(key []byte) seam.Series {
	return fakeSeries(b.series[b.info.ID][string(key)])
}

// fakeSeries gives the word of a slot; nil is a series that is not there.
type fakeSeries func(slot int64) uint64

func (value fakeSeries) Exists(context.Context) (bool, error) { return value != nil, nil }

func (value fakeSeries) Read(_ context.Context, from int64, dst []uint64) (seam.Cost, error) {
	clear(dst)
	for i := range dst {
		if value != nil {
			dst[i] = value(from + int64(i))
		}
	}
	return seam.Cost{}, nil
}

func (fakeSeries) ReadOlder(context.Context, int64, []uint64) (seam.Cost, error) {
	return seam.Cost{}, query.ErrUnsupported
}

func (s fakeSeries) WithStale() seam.Series { return s }

func (fakeSeries) Aggregate(context.Context, int64, int64, []chunk.Header) (seam.Cost, error) {
	return seam.Cost{}, query.ErrUnsupported
}

// engineFunc is an engine that answers with a fixed result or error.
type engineFunc func(ctx context.Context, text string) (*query.Result, error)

func (f engineFunc) Query(ctx context.Context, text string,
	_ query.Options) (*query.Result, error) {
	return f(ctx, text)
}

// fakeTags keeps tags in memory only.
type fakeTags struct{ index *tags.Index }

func newFakeTags(t testing.TB, list ...tags.Change) fakeTags {
	t.Helper()
	f := fakeTags{tags.New()}
	if _, err := f.Apply(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fakeTags) Index() *tags.Index                     { return f.index }
func (f fakeTags) Ready() error                           { return nil }
func (f fakeTags) Stats() tagstore.Stats                  { return tagstore.Stats{Lost: 3} }
func (f fakeTags) Walk(fn func(*tags.Change) error) error { return f.index.Walk(fn) }

func (f fakeTags) Apply(_ context.Context, list []tags.Change) (out tagstore.Applied, err error) {
	for i := range list {
		if f.index.Apply(&list[i]) {
			out.Changed++
		}
	}
	return out, nil
}

func (f fakeTags) WaitDurable(context.Context, tagstore.Applied) error { return nil }

var errBroken = errors.New("the disk is broken")

func testOptions(s *fakeStore) Options {
	return Options{
		Store:    s,
		Arrivals: s,
		Tags:     fakeTags{tags.New()},
		Operator: s,
		Status:   func() admin.Status { return admin.Status{Version: "test", Ready: true, Series: 9} },
		Log: func() []admin.LogLine {
			return []admin.LogLine{
				{Number: 7, TimeMS: 200_000, Level: "WARN", Message: "slow query", Fields: "took=6s"}}
		},
		Engine: &query.Engine{Source: source{s}, Now: func() time.Time {
			return now
		}, Limits: query.Limits{MaxPoints: 150}},
		Registry: figures.NewRegistry(s),
		Logger:   slog.New(slog.DiscardHandler),
		MaxBody:  1000,
		Hosts:    []string{"localhost", " db.example"},
		Ready:    func() bool { return true },
		Version:  "test",
	}
}
