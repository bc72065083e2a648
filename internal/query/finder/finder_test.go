package finder

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/tags"
)

// bucket is the only bucket, of whose series those have points whose keys begin with has.
type bucket struct {
	source.Bucket
	keys []string
	has  string
}

func (b *bucket) Info() source.Info { return source.Info{ID: 1, Name: "b", Resolution: 1000} }

func (b *bucket) Metrics(_ context.Context, _ []byte, fn func(key []byte) bool) error {
	for _, key := range b.keys {
		if !fn([]byte(key)) {
			break
		}
	}
	return nil
}

// only implements Buckets.
type only struct{ b *bucket }

func (o only) Tagged(uint64) (source.Bucket, error) { return o.b, nil }

func (o only) Bucket(name string) (source.Bucket, error) {
	if name != "b" {
		return nil, buckets.ErrUnknown
	}
	return o.b, nil
}

func (o only) May(_ context.Context, _ source.Bucket, keys [][]byte, _, _ int64, may []bool) error {
	for i, key := range keys {
		may[i] = strings.HasPrefix(string(key), o.b.has)
	}
	return nil
}

// meter counts what is lent, up to a limit.
type meter struct{ lent, limit int64 }

var errMeter = errors.New("no memory")

func (m *meter) Grow(bytes int64) error {
	if m.lent += bytes; m.lent > m.limit {
		return errMeter
	}
	return nil
}

const longSeries = 300

// longNames returns an index of a bucket whose series have names of 60 KB and a long tag; those
// of one half are in the collection of the bucket by their tags, the others are not.
func longNames(t *testing.T) *Index {
	t.Helper()
	b := &bucket{}
	x := &Index{Tags: tags.New(), Buckets: only{b}}
	for i := range longSeries {
		key := fmt.Sprintf("%05d%s", i, strings.Repeat("k", 60_000))
		b.keys = append(b.keys, key)
		if i%2 == 0 {
			continue
		}
		value := fmt.Sprintf("%05d%s", i, strings.Repeat("v", 4000))
		c := tags.Change{Bucket: 1, Collection: []byte("b"), Clock: 1, Key: []byte(key),
			Set: []tags.Tag{{TagName: tags.TagName{Name: []byte("long")}, Value: []byte(value)}}}
		if !x.Tags.Apply(&c) {
			t.Fatal("nothing new")
		}
	}
	return x
}

// TestHitsKeepTheirOwnBytes: of many series with long names and values that a lookup finds, it
// keeps those with points. What it holds beside them is little, and lent to it.
func TestHitsKeepTheirOwnBytes(t *testing.T) {
	x := longNames(t)
	x.Buckets.(only).b.has = "00007"
	m := &meter{limit: 1 << 40}
	l := source.Lookup{Collection: "b", End: 1000, Tags: []dql.DimVar{{Name: "long"}}, Memory: m}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var hits []source.Hit
	if err := x.Lookup(context.Background(), l, func(h source.Hit) bool {
		hits = append(hits, h)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(hits) != 1 || string(hits[0].Key[:5]) != "00007" || len(hits[0].Tags) != 1 ||
		hits[0].Tags[0].Value[:6] != "00007v" {
		t.Fatalf("%d hits, want the one with points", len(hits))
	}
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 200_000 {
		t.Errorf("a hit of 64 KB holds %d bytes", held)
	}
	if most := int64(2*(togetherBytes+64_100) + longSeries*bareSize); m.lent < 2*64_000 ||
		m.lent > most {
		t.Errorf("%d bytes were lent, want at most %d", m.lent, most)
	}
	runtime.KeepAlive(hits)
	runtime.KeepAlive(x)
	l.Memory = &meter{limit: m.lent - 1}
	if err := x.Lookup(context.Background(), l, func(source.Hit) bool {
		return true
	}); !errors.Is(err, errMeter) {
		t.Errorf("with a byte too few: %v", err)
	}
}

// TestHitsOfManyLookedAtTogether: whichever series have points, each hit has its own key and tags.
func TestHitsOfManyLookedAtTogether(t *testing.T) {
	x := longNames(t)
	for _, has := range []string{"", "0000", "0013", "00299"} {
		x.Buckets.(only).b.has = has
		want := make(map[string]bool)
		for i, key := range x.Buckets.(only).b.keys {
			if strings.HasPrefix(key, has) {
				want[key] = i%2 == 1
			}
		}
		l := source.Lookup{Collection: "b", End: 1000, Tags: []dql.DimVar{{Name: "long"}}}
		if err := x.Lookup(context.Background(), l, func(h source.Hit) bool {
			tagged, ok := want[string(h.Key)]
			if !ok || tagged != (len(h.Tags) == 1) || tagged && h.Tags[0].Value[:5] != string(h.Key[:5]) {
				t.Errorf("a hit that is not wanted, or wrong: %s", h.Key[:5])
			}
			delete(want, string(h.Key))
			return true
		}); err != nil || len(want) != 0 {
			t.Errorf("points where keys begin with %q: %d were not found, %v", has, len(want), err)
		}
	}
}
