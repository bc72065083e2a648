package query_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/dql"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/query"
)

// tagged is a series in an index.
type tagged struct {
	collection string
	metric     []byte
	hit        query.Hit
}

// indexed is a source in memory whose series have tags.
type indexed struct {
	*memory
	series *[]tagged
}

func (x indexed) Lookup(_ context.Context, l query.Lookup, fn func(query.Hit) bool) error {
	for _, s := range *x.series {
		if s.collection != l.Collection || l.Metric != nil && !bytes.Equal(l.Metric, s.metric) || !holds(l.Where, s.hit.Tags) {
			continue
		}
		if !fn(s.hit) {
			break
		}
	}
	return nil
}

func holds(c *dql.Cond, tags []query.Tag) bool {
	if c == nil {
		return true
	}
	value, there := "", false
	for _, t := range tags {
		if t.DimVar == c.Tag {
			value, there = t.Value, true
		}
	}
	switch c.Op {
	case dql.CondAnd:
		return holds(c.Left, tags) && holds(c.Right, tags)
	case dql.CondOr:
		return holds(c.Left, tags) || holds(c.Right, tags)
	case dql.CondEqual:
		return there && value == c.Value
	case dql.CondNotEqual:
		return !there || value != c.Value
	}
	return there
}

// tag reads "tag COLLECTION METRIC BUCKET KEY [NAMESPACE:]NAME=VALUE …".
func (s *script) tag(words []string) {
	q, err := dql.Parse("SELECT " + words[1] + " BUCKET x, " + words[3] + " BUCKET x LAST 1s")
	if err != nil {
		s.t.Fatal(err)
	}
	keyOf := func(i int) []byte { return q.Fields[i].Expr.(*dql.Select).Metric.Key }
	t := tagged{collection: words[0], metric: keyOf(0), hit: query.Hit{Bucket: bucketOf(s.source, s.source.buckets[words[2]]), Key: keyOf(1)}}
	for _, word := range words[4:] {
		name, value, _ := strings.Cut(word, "=")
		namespace, name, found := strings.Cut(name, ":")
		if !found {
			namespace, name = "", namespace
		}
		t.hit.Tags = append(t.hit.Tags, query.Tag{DimVar: dql.DimVar{Namespace: namespace, Name: name}, Value: value})
	}
	s.tags = append(s.tags, t)
}

// A lookup that finds too much ends with the limit, and one that fails names
// the collection.
func TestLookupsAreLimited(t *testing.T) {
	m := newBucket(t)
	var all []tagged
	for i := range 20 {
		k := key(t, "a", strconv.Itoa(i))
		all = append(all, tagged{"c", k, query.Hit{Bucket: bucketOf(m, m.buckets["b"]), Key: k}})
	}
	e := &query.Engine{Source: sourceOf(indexed{m, &all}), Now: time.Now, Limits: query.Limits{MaxSeries: 10}}
	_, err := e.Query(context.Background(), "SELECT sum(ALL FROM c) LAST 1s", query.Options{})
	var limit *query.LimitError
	if !errors.As(err, &limit) || limit.Limit != 10 || limit.Got != 11 {
		t.Errorf("20 series: %v", err)
	}
	e.Source = sourceOf(brokenIndex{m})
	if _, err := e.Query(context.Background(), "SELECT ALL FROM c LAST 1s", query.Options{}); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), metric.Quoted("c")) {
		t.Errorf("a broken index: %v", err)
	}
}

type brokenIndex struct{ *memory }

func (brokenIndex) Lookup(context.Context, query.Lookup, func(query.Hit) bool) error {
	return errBroken
}
