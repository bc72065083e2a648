package query_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/source"
)

func TestEqualReadsHappenOnce(t *testing.T) {
	const n = 100_000
	m := newBucket(t)
	m.load("b", key(t, "a"), 0, ints(n, func(i int64) int64 { return i }))
	m.load("b", key(t, "b"), 0, ints(n, func(i int64) int64 { return i }))
	m.noteReads()
	r, err := engine(m, n*1000).Query(context.Background(),
		"SELECT max(x, 1h), avg(x, 1h), max(x, 1h) - sum(max(* BUCKET b, 1h)) ALIAS a BUCKET b AS x "+
			"BETWEEN 1 AND NOW", query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Stats.Reads != 2 || r.Stats.PointsRead != 2*n || r.Stats.Slots != 2*n || r.Stats.Set != 2*n {
		t.Errorf("stats are %+v, want 2 reads of %d points", r.Stats, n)
	}
	if len(m.reads) == 0 {
		t.Error("no read was noted")
	}
	for what, times := range m.reads {
		if times != 1 {
			t.Errorf("%q was read %d times", what, times)
		}
	}
}

func TestCancelledQueriesStop(t *testing.T) {
	m := newBucket(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := engine(m, 1_000_000).Query(ctx, "SELECT a BUCKET b LAST 1m", query.Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// broken fails every read.
type broken struct{ *memory }

var errBroken = errors.New("disk on fire")

func (broken) Read(context.Context, source.Info, []byte, int64, []uint64) (source.Cost, error) {
	return source.Cost{}, errBroken
}

func (broken) Metrics(context.Context, source.Info, []byte, func([]byte) bool) error {
	return errBroken
}

func TestErrorsOfTheSourceNameWhatWasRead(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "a", "x"), 0, nil)
	e := engine(m, 1_000_000)
	e.Source = sourceOf(broken{m})
	f := func(text, want string) {
		t.Helper()
		_, err := e.Query(context.Background(), text, query.Options{})
		if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want the source's error and %q", text, err, want)
		}
	}
	f("SELECT a.x BUCKET b LAST 1m", "'a'.'x' of bucket 'b'")
	f("SELECT a.* BUCKET b LAST 1m", "metrics of bucket 'b'")
}

func TestOptionsOnlyTightenLimits(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "a"), 0, nil)
	e := engine(m, 1_000_000)
	e.Limits.MaxOutput = 30
	f := func(text string, opt query.Options, limit int64) {
		t.Helper()
		_, err := e.Query(context.Background(), text, opt)
		var le *query.LimitError
		if errors.As(err, &le) != (limit > 0) || le != nil && le.Limit != limit {
			t.Errorf("%s: got %v, want a limit of %d", text, err, limit)
		}
		if de := (*dql.Error)(nil); limit > 0 && !errors.As(err, &de) {
			t.Errorf("%s: %v has no position", text, err)
		}
	}
	f("SELECT a BUCKET b LAST 30s", query.Options{}, 0)
	f("SELECT a BUCKET b LAST 31s", query.Options{}, 30)
	f("SELECT a BUCKET b LAST 20s", query.Options{Limits: query.Limits{MaxOutput: 19}}, 19)
	f("SELECT a BUCKET b LAST 31s", query.Options{Limits: query.Limits{MaxOutput: 100}}, 30)
}

// A year at one second is 252 MB of words; the result is a few hundred values.
func TestMemoryFollowsTheResult(t *testing.T) {
	const year = 365 * 86400
	m := newBucket(t)
	m.load("b", key(t, "a"), year-1000, ints(1000, func(i int64) int64 { return i }))
	e := engine(m, year*1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := e.Query(context.Background(), "SELECT max(a BUCKET b, 1d), sum(a BUCKET b, 1d) LAST 52w",
		query.Options{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	const most = 4 << 20
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		t.Errorf("allocated %d bytes, want at most %d", got, most)
	}
	if n := len(r.Series[0].Values); n != 364 || r.Series[0].Values[363] != 999 {
		t.Errorf("%d values, the last %v", n, r.Series[0].Values[n-1])
	}
}
