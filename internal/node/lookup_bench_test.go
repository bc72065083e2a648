package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/local"
	seam "dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/tags"
)

const lookupSeries = 1_000_000

// lookupKey is the key of series i: four parts.
func lookupKey(dst []byte, i int) []byte {
	for _, p := range []string{"base", fmt.Sprintf("host-%06d", i/10), "cpu",
		fmt.Sprint("core", i%10)} {
		dst = append(append(dst, byte(len(p))), p...)
	}
	return dst
}

// taggedStore has a million series with a point now and five tags, of 10 to 100,000 values.
func taggedStore(b *testing.B) *store.Store {
	o := store.DefaultOptions(b.TempDir())
	o.MinFree = 0
	s, err := store.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	info, err := s.EnsureBucket("b")
	if err != nil {
		b.Fatal(err)
	}
	w, err := s.NewSession(info)
	if err != nil {
		b.Fatal(err)
	}
	var list []tags.Change
	for i := range lookupSeries {
		key := lookupKey(nil, i)
		w.Point(key, uint64(time.Now().Unix()), point.FromInt(1))
		c := tags.Change{Bucket: info.ID, Key: key, Collection: []byte("c"), Name: []byte("\x03cpu")}
		for j, of := range []int{10, 100, 1000, 10_000, 100_000} {
			c.Set = append(c.Set, tags.Tag{TagName: tags.TagName{Name: fmt.Append(nil, "tag", j)},
				Value: fmt.Append(nil, "value-", i/10%of, ".net")})
		}
		if list = append(list, c); len(list) == 1000 {
			if _, err := s.Tags().Apply(context.Background(), list); err != nil {
				b.Fatal(err)
			}
			list = list[:0]
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkLookup looks series up as queries do: with their values of a tag, and whether they have
// a point in the last minute.
func BenchmarkLookup(b *testing.B) {
	s := taggedStore(b)
	src := local.New(local.Options{Store: s, Tags: s.Tags().Index()})
	tag := func(n int) dql.DimVar { return dql.DimVar{Name: fmt.Sprint("tag", n)} }
	equal := func(n, v int) *dql.Cond {
		return &dql.Cond{Op: dql.CondEqual, Tag: tag(n), Value: fmt.Sprint("value-", v, ".net")}
	}
	part := func(n int, v string) *dql.Cond {
		return &dql.Cond{Op: dql.CondEqual,
			Tag: dql.DimVar{Namespace: "ddb", Name: fmt.Sprint("part_", n)}, Value: v}
	}
	and := func(l, r *dql.Cond) *dql.Cond { return &dql.Cond{Op: dql.CondAnd, Left: l, Right: r} }
	for _, c := range []struct {
		name  string
		where *dql.Cond
		hits  int
	}{
		{"100", equal(3, 77), 100},
		{"100k", equal(0, 3), 100_000},
		{"three", and(and(equal(0, 7), equal(1, 77)), equal(2, 777)), 1000},
		{"middle-part-glob", and(and(part(1, "base"), part(2, "host-000777")), part(3, "cpu")), 10},
		{"regexp-of-100k", &dql.Cond{Op: dql.CondMatch, Tag: tag(4), Value: "value-[0-9]*77[.]n.*"},
			10_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			now := time.Now().UnixMilli()
			l := seam.Lookup{Collection: "c", Where: c.where, Tags: []dql.DimVar{tag(4)},
				Start: now - 60_000, End: now}
			for b.Loop() {
				hits := 0
				err := src.Offers().Index.Lookup(context.Background(), l,
					func(seam.Hit) bool { hits++; return true })
				if err != nil || hits != c.hits {
					b.Fatalf("%d hits, want %d: %v", hits, c.hits, err)
				}
			}
			b.ReportMetric(float64(c.hits), "hits")
		})
	}
}

// BenchmarkLookedUp asks the engine for ten seconds of the series that a lookup finds: what a
// series costs beside its points.
func BenchmarkLookedUp(b *testing.B) {
	s := taggedStore(b)
	cfg := config.Default()
	n := &node{cfg: cfg, rec: monitor.New(), store: s}
	engine := n.engine()
	for _, c := range []struct {
		name, text string
		reads      int
	}{
		{"10k", "SELECT ALL FROM c WHERE tag1 = 'value-7.net' LAST 10s", 10_000},
		{"100k", "SELECT ALL FROM c WHERE tag0 = 'value-3.net' LAST 10s", 100_000},
		{"grouped", "SELECT ALL FROM c WHERE tag0 = 'value-3.net' GROUP BY $tag2 USING sum LAST 10s",
			100_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := engine.Query(b.Context(), c.text, query.Options{NoCache: true})
				if err != nil || r.Stats.Reads != c.reads {
					b.Fatal(r, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.reads), "ns/series")
		})
	}
}
