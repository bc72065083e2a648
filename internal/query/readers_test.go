package query_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/source"
)

// meeting is a source whose reads wait until so many are under way at once.
type meeting struct {
	*memory
	mu      sync.Mutex
	under   int
	most    int
	want    int
	reached chan struct{}
}

func (m *meeting) Read(ctx context.Context, b source.Info, key []byte, from int64,
	dst []uint64) (source.Cost, error) {
	m.mu.Lock()
	if m.under++; m.under > m.most {
		if m.most = m.under; m.most == m.want {
			close(m.reached)
		}
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.under--
		m.mu.Unlock()
	}()
	select {
	case <-m.reached:
	case <-ctx.Done():
		return source.Cost{}, ctx.Err()
	}
	return m.memory.Read(ctx, b, key, from, dst)
}

func manySeries(t *testing.T, n int) *memory {
	m := newBucket(t)
	for i := range n {
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, ints(5000, func(k int64) int64 {
			return k * int64(i) % 1009
		}))
	}
	return m
}

const seriesFirst = "SELECT avg(sum(m.* BUCKET b), 10s), m.1 BUCKET b BETWEEN 1 AND 5000000"

// Leaves are read by the query and its readers at once, and all of them
// together are no more than that.
func TestSeriesAreReadSideBySide(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := &meeting{memory: manySeries(t, 60), want: 4, reached: make(chan struct{})}
	e := (query.Engine{Source: sourceOf(m), Now: time.Now, Readers: query.NewReaders(3)}).WithRounds(
		500)
	r, err := e.Query(ctx, seriesFirst, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	single := query.Engine{Source: sourceOf(m.memory), Now: time.Now}
	alone, err := single.Query(ctx, seriesFirst, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Series {
		if !sameBits(r.Series[i].Values, alone.Series[i].Values) {
			t.Fatalf("series %d differs from that of a query without readers", i)
		}
	}
	if r.Stats != alone.Stats || m.most != 4 {
		t.Fatalf("%+v with %d reads at once, want %+v with 4", r.Stats, m.most, alone.Stats)
	}
}

// Readers are those of all queries: two of them have no more together.
func TestQueriesShareReaders(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := &meeting{memory: manySeries(t, 40), want: 4, reached: make(chan struct{})}
	e := query.Engine{Source: sourceOf(m), Now: time.Now, Readers: query.NewReaders(1)}
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range 3 {
		wg.Go(func() {
			if _, err := e.Query(ctx, seriesFirst, query.Options{}); err != nil {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	if failed.Load() != 0 || m.most != 4 {
		t.Fatalf("%d of 3 queries failed with %d reads at once, want 4", failed.Load(), m.most)
	}
}

// failing reads one series no more from some slot on.
type failing struct {
	*memory
	key  string
	from int64
}

var errLost = errors.New("lost")

func (f *failing) Read(ctx context.Context, b source.Info, key []byte, from int64,
	dst []uint64) (source.Cost, error) {
	if string(key) == f.key && from >= f.from {
		return source.Cost{}, errLost
	}
	return f.memory.Read(ctx, b, key, from, dst)
}

func TestAnErrorOfAReaderEndsTheQuery(t *testing.T) {
	m := manySeries(t, 30)
	for i := range 30 {
		f := &failing{memory: m, key: string(key(t, "m", fmt.Sprint(i))), from: 2000}
		e := (query.Engine{Source: sourceOf(f), Now: time.Now, Readers: query.NewReaders(2)}).WithRounds(
			500)
		if _, err := e.Query(t.Context(), seriesFirst, query.Options{}); !errors.Is(err, errLost) {
			t.Fatalf("series %d cannot be read: %v", i, err)
		}
	}
}

// watching notes the fewest readers that were free during its reads.
type watching struct {
	adder
	readers *query.Readers
	fewest  atomic.Int64
}

func (w *watching) look() {
	free := int64(w.readers.Free())
	for seen := w.fewest.Load(); free < seen &&
		!w.fewest.CompareAndSwap(seen, free); seen = w.fewest.Load() {
	}
}

func (w *watching) Read(ctx context.Context, b source.Info, key []byte, from int64,
	dst []uint64) (source.Cost, error) {
	w.look()
	return w.adder.Read(ctx, b, key, from, dst)
}

func (w *watching) Aggregate(ctx context.Context, b source.Info, key []byte, from, step int64,
	dst []chunk.Header) (source.Cost, error) {
	w.look()
	return w.adder.Aggregate(ctx, b, key, from, step, dst)
}

// A query that reads little leaves the readers to others.
func TestLittleIsReadAlone(t *testing.T) {
	m := newBucket(t)
	for i := range 80 {
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, ints(100, func(k int64) int64 { return k }))
	}
	for text, free := range map[string]int64{
		"SELECT max(m.1 BUCKET b, 1m), max(m.2 BUCKET b, 1m), max(m.3 BUCKET b, 1m) BETWEEN 0 AND 3600000": 3,
		// 360 headers
		"SELECT max(m.1 BUCKET b, 1h), max(m.2 BUCKET b, 1h), max(m.3 BUCKET b, 1h) BETWEEN 0 AND " +
			"86400000": 3,
		"SELECT max(m.* BUCKET b, 1h) BETWEEN 0 AND 86400000":                                  0,
		"SELECT max(m.* BUCKET b, 1m) BETWEEN 0 AND 3600000":                                   0,
		"SELECT m.1 BUCKET b, m.2 BUCKET b, m.3 BUCKET b BETWEEN 0 AND 3600000":                3,
		"SELECT m.1 BUCKET b, m.2 BUCKET b, m.3 BUCKET b, m.4 BUCKET b BETWEEN 0 AND 86400000": 0,
	} {
		w := &watching{adder: adder{m}, readers: query.NewReaders(3)}
		w.fewest.Store(3)
		e := query.Engine{Source: sourceOf(w), Now: time.Now, Readers: w.readers}
		if _, err := e.Query(t.Context(), text, query.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := w.fewest.Load(); got != free || w.readers.Free() != 3 {
			t.Errorf("%s: %d of 3 readers were free, want %d; %d are now", text, got, free, w.readers.Free())
		}
	}
}
