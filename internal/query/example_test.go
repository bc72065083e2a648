package query_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/source"
)

// thermometer is the smallest source: one bucket with one series, 20, 21, 22 … degrees. It is
// its own handle of all three.
type thermometer struct{ source.NoHistory }

func (thermometer) Offers() source.Offers { return source.Offers{} }

func (thermometer) Bucket(name string) (source.Bucket, error) {
	if name != "home" {
		return nil, fmt.Errorf("%w: %s", buckets.ErrUnknown, metric.Quote(name))
	}
	return thermometer{}, nil
}

func (thermometer) BucketNames() []string { return []string{"home"} }

func (thermometer) Info() source.Info { return source.Info{ID: 1, Name: "home", Resolution: 1000} }

func (thermometer) Metrics(_ context.Context, _ []byte, fn func(key []byte) bool) error {
	key, err := metric.Key("kitchen", "degrees")
	fn(key)
	return err
}

func (thermometer) Series([]byte) source.Series { return thermometer{} }

func (thermometer) Exists(context.Context) (bool, error) { return true, nil }

func (thermometer) Read(_ context.Context, from int64, dst []uint64) (source.Cost, error) {
	for i := range dst {
		dst[i] = point.FromInt(20 + from + int64(i))
	}
	return source.Cost{}, nil
}

// What is not offered is not called.

func (thermometer) ReadOlder(context.Context, int64, []uint64) (source.Cost, error) {
	return source.Cost{}, query.ErrUnsupported
}

func (t thermometer) WithStale() source.Series { return t }

func (thermometer) Aggregate(context.Context, int64, int64, []chunk.Header) (source.Cost, error) {
	return source.Cost{}, query.ErrUnsupported
}

func kitchen() *query.Engine {
	return &query.Engine{Source: thermometer{}, Now: func() time.Time {
		return time.UnixMilli(86_400_000)
	}}
}

func ExampleEngine_Query() {
	r, err := kitchen().Query(context.Background(),
		"SELECT avg(*.degrees BUCKET home, 5s) AS $1 BETWEEN 1 AND 20000", query.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range r.Series {
		fmt.Printf("%s, every %d ms, %.0f%% set: %v\n", s.Name, s.Resolution, 100*s.Coverage, s.Values)
	}
	// Output:
	// 'kitchen', every 5000 ms, 100% set: [22 27 32 37]
}

// EXPLAIN runs a query and returns its plan in place of the values.
func ExampleEngine_Query_explain() {
	r, err := kitchen().Query(context.Background(),
		"EXPLAIN SELECT max(x, 10s) - min(x, 10s) ALIAS kitchen.degrees BUCKET home AS x LAST 30s",
		query.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range r.Plan.Steps {
		fmt.Println(s.ID, s.Name, s.Inputs)
	}
	// Output:
	// 1 read 'kitchen'.'degrees' BUCKET 'home', 0 ms earlier []
	// 2 max of 10 [1]
	// 3 min of 10 [1]
	// 4 diff of 2 series [2 3]
}

// A query that is too large is refused before anything is read, with the figures.
func ExampleLimitError() {
	e := kitchen()
	e.Limits.MaxPoints = 3600
	_, err := e.Query(context.Background(), "SELECT kitchen.degrees BUCKET home LAST 2h",
		query.Options{})
	var limit *query.LimitError
	var at *dql.Error
	if errors.As(err, &limit) && errors.As(err, &at) {
		fmt.Println(limit.What, limit.Got, "of", limit.Limit, "at column", at.Col)
		fmt.Println(limit.Remedy)
	}
	// Output:
	// points to read 7200 of 3600 at column 8
	// ask for a shorter range or fewer series
}
