package query_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/finder"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/tags"
)

// indexed is a source in memory whose series have tags.
type indexed struct {
	*memory
	finder.Index
}

// withTags returns m with an index without tags.
func withTags(m *memory) *indexed {
	x := &indexed{memory: m}
	x.Index = finder.Index{Tags: tags.New(), Buckets: tagBuckets{m}}
	return x
}

// tagBuckets is what an index asks of a memory.
type tagBuckets struct{ *memory }

func (b tagBuckets) Bucket(name string) (source.Bucket, error) {
	return sourceOf(b.memory).Bucket(name)
}

func (b tagBuckets) Tagged(id uint64) (source.Bucket, error) {
	for _, info := range b.buckets {
		if info.ID == id {
			return bucketOf(b.memory, info), nil
		}
	}
	return nil, buckets.ErrUnknown
}

func (b tagBuckets) May(_ context.Context, of source.Bucket, keys [][]byte, from, past int64,
	may []bool) error {
	for i, key := range keys {
		r, ok := b.series[of.Info().ID][string(key)]
		may[i] = ok && r.from < past && from < r.from+int64(len(r.words))
	}
	return nil
}

// tag reads "tag COLLECTION METRIC BUCKET KEY [NAMESPACE:]NAME=VALUE …".
func (s *script) tag(words []string) {
	q, err := dql.Parse("SELECT " + words[1] + " BUCKET x, " + words[3] + " BUCKET x LAST 1s")
	if err != nil {
		s.t.Fatal(err)
	}
	keyOf := func(i int) []byte { return q.Fields[i].Expr.(*dql.Select).Metric.Key }
	c := tags.Change{Bucket: s.source.buckets[words[2]].ID, Key: keyOf(1),
		Collection: []byte(words[0]), Name: keyOf(0)}
	for _, word := range words[4:] {
		name, value, _ := strings.Cut(word, "=")
		namespace, name, found := strings.Cut(name, ":")
		if !found {
			namespace, name = "", namespace
		}
		c.Set = append(c.Set,
			tags.Tag{TagName: tags.TagName{Namespace: []byte(namespace), Name: []byte(name)},
				Value: []byte(value)})
	}
	s.index.Tags.Apply(&c)
}

// A lookup that finds too much ends with the limit, and one that fails names
// the collection.
func TestLookupsAreLimited(t *testing.T) {
	m := newBucket(t)
	x := withTags(m)
	for i := range 20 {
		k := key(t, "a", strconv.Itoa(i))
		m.load("b", k, time.Now().Unix()-30, ints(60, func(i int64) int64 { return i }))
		x.Tags.Apply(&tags.Change{Bucket: 1, Key: k, Collection: []byte("c")})
	}
	e := &query.Engine{Source: sourceOf(x), Now: time.Now, Limits: query.Limits{MaxSeries: 10}}
	_, err := e.Query(context.Background(), "SELECT sum(ALL FROM c) LAST 1s", query.Options{})
	var limit *query.LimitError
	if !errors.As(err, &limit) || limit.Limit != 10 || limit.Got != 11 {
		t.Errorf("20 series: %v", err)
	}
	e.Source = sourceOf(brokenIndex{m})
	if _, err := e.Query(context.Background(), "SELECT ALL FROM c LAST 1s",
		query.Options{}); !errors.Is(err, errBroken) ||
		!strings.Contains(err.Error(), metric.Quote("c")) {
		t.Errorf("a broken index: %v", err)
	}
}

type brokenIndex struct{ *memory }

func (brokenIndex) Lookup(context.Context, source.Lookup, func(source.Hit) bool) error {
	return errBroken
}
