package query_test

import (
	"context"
	"testing"
	"time"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/source"
)

// watched is a source that notes how far the query says it is at each read.
type watched struct {
	*memory
	progress *query.Progress
	shares   []float64
}

func (w *watched) Read(ctx context.Context, b source.Info, key []byte, from int64,
	dst []uint64) (source.Cost, error) {
	w.shares = append(w.shares, w.progress.Share())
	return w.memory.Read(ctx, b, key, from, dst)
}

// Progress is the share of the range that earlier rounds have read.
func TestProgress(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "a"), 100, ints(10, func(i int64) int64 { return i }))
	source := &watched{memory: m, progress: &query.Progress{}}
	e := &query.Engine{Source: sourceOf(source), Now: time.Now}
	opt := query.Options{Progress: source.progress, NoAggregates: true}
	if _, err := e.Query(t.Context(), "SELECT max(a BUCKET b, 1m) AFTER 100000 FOR 100000s",
		opt); err != nil {
		t.Fatal(err)
	}
	if share := source.progress.Share(); share != 1 {
		t.Errorf("at the end the share is %v", share)
	}
	if n := len(source.shares); n < 3 || source.shares[0] != 0 {
		t.Fatalf("the shares of %d reads are %v", n, source.shares)
	}
	for i, share := range source.shares[1:] {
		last := i == len(source.shares)-2 && share == 1 // the distances between points are looked at then
		if !last && (share <= source.shares[i] || share >= 1) {
			t.Errorf("read %d: the share is %v after %v", i+1, share, source.shares[i])
		}
	}
}
