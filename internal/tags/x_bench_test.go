package tags

import (
	"context"
	"fmt"
	"testing"
)

const benchSeries = 1_000_000

// distinct is how many values each of ten tags has: a series has five of them.
var distinct = [10]int{2, 7, 10, 100, 1000, 10_000, 20_000, 50_000, 100_000, 100_000}

// appendKey appends the key of series i: four parts.
func appendKey(dst []byte, i int) []byte {
	for _, p := range []string{"base", fmt.Sprintf("host-%05d", i/10), "cpu",
		fmt.Sprintf("core%d", i%10)} {
		dst = append(append(dst, byte(len(p))), p...)
	}
	return dst
}

func benchChange(c *Change, i int) {
	c.Bucket, c.Collection, c.Clock, c.Node = 1, []byte("metrics"),
		1_700_000_000_000_000_000+uint64(i), 7
	c.Key, c.Set = appendKey(c.Key[:0], i), c.Set[:0]
	for t := range 5 {
		n := (t*2 + i%2) % 10
		c.Set = append(c.Set,
			tag("", fmt.Sprintf("tag%d", n), fmt.Sprintf("value-%d.example.net", i/10*7919%distinct[n])))
	}
}

var million *Index

// millionSeries returns the index that all benchmarks look up in.
func millionSeries(b *testing.B) *Index {
	if million == nil {
		var c Change
		million = New()
		for i := range benchSeries {
			benchChange(&c, i)
			million.Apply(&c)
		}
	}
	return million
}

func BenchmarkApply(b *testing.B) {
	changes := make([]Change, 200_000)
	for i := range changes {
		benchChange(&changes[i], i)
	}
	for b.Loop() {
		x := New()
		for i := range changes {
			x.Apply(&changes[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(changes)), "ns/series")
}

// BenchmarkMemory is the memory of a million series beside their keys.
func BenchmarkMemory(b *testing.B) {
	x := millionSeries(b)
	for b.Loop() {
		x.Bytes()
	}
	keys := 0
	for i := range benchSeries {
		keys += len(appendKey(nil, i))
	}
	b.ReportMetric(float64(x.Bytes()-int64(keys))/benchSeries, "B/series+key")
}

func BenchmarkLookup(b *testing.B) {
	x := millionSeries(b)
	equal := func(name int, v int) *Cond {
		return &Cond{Op: Equal, Tag: tagName("", fmt.Sprint("tag", name)),
			Value: fmt.Appendf(nil, "value-%d.example.net", v)}
	}
	and := func(l, r *Cond) *Cond { return &Cond{Op: And, Left: l, Right: r} }
	part := func(n int, v string) *Cond {
		return &Cond{Op: Equal, Tag: tagName("ddb", fmt.Sprint("part_", n)), Value: []byte(v)}
	}
	glob := func(n int, pieces ...string) *Cond {
		c := &Cond{Op: Glob, Tag: tagName("ddb", fmt.Sprint("part_", n))}
		for _, p := range pieces {
			c.Pieces = append(c.Pieces, []byte(p))
		}
		return c
	}
	for _, c := range []struct {
		name  string
		where *Cond
	}{
		{"one-value-of-few", equal(5, 77)},
		{"one-value-of-many", equal(2, 3)},
		{"three", and(and(equal(0, 1), equal(2, 3)), equal(4, 7))},
		{"middle-part-glob", and(and(part(1, "base"), part(2, "host-00777")), part(3, "cpu"))},
		{"patterns-of-parts", and(glob(2, "", "3"), glob(4, "", "7"))},
		{"regexp-of-100k",
			&Cond{Op: Regexp, Tag: tagName("", "tag8"), Pattern: "value-[0-9]*77[.]example.*"}},
		{"glob-of-100k", &Cond{Op: Glob, Tag: tagName("", "tag8"),
			Pieces: [][]byte{[]byte("value-"), []byte("77."), {}}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := Query{Collection: []byte("metrics"), Where: c.where, Want: []TagName{tagName("", "tag8")}}
			hits := 0
			for b.Loop() {
				hits = 0
				if _, err := x.Lookup(context.Background(), &q, func(*Hit) bool {
					hits++
					return true
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(hits), "hits")
		})
	}
}

// BenchmarkUntagged asks a condition on parts of keys one by one.
func BenchmarkUntagged(b *testing.B) {
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = appendKey(nil, i*1000+i)
	}
	part := func(n int, pieces ...[]byte) *Cond {
		return &Cond{Op: Glob, Tag: tagName("ddb", fmt.Sprint("part_", n)), Pieces: pieces}
	}
	for _, c := range []struct {
		name  string
		where *Cond
	}{
		{"second-and-last",
			&Cond{Op: And, Left: part(2, nil, []byte("3")), Right: part(4, nil, []byte("7"))}},
		{"first-and-third", &Cond{Op: And, Left: part(1, []byte("base")), Right: part(3, []byte("cpu"))}},
	} {
		b.Run(c.name, func(b *testing.B) {
			holds, err := c.where.UntaggedFilter()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, key := range keys {
					holds(key)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
		})
	}
}

// BenchmarkLoad loads a million series from blocks, as a start does.
func BenchmarkLoad(b *testing.B) {
	blocks, _ := blocksOf(b, millionSeries(b))
	size := 0
	for _, block := range blocks {
		size += len(block)
	}
	for b.Loop() {
		load(b, New(), keepAll, blocks)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSeries, "ns/series")
	b.ReportMetric(float64(size)/benchSeries, "B/series")
}

// BenchmarkEach counts a million series by names and by values, of which all are new or none.
func BenchmarkEach(b *testing.B) {
	x := millionSeries(b)
	const came = 1_700_000_000_000_000_000
	for _, c := range []struct {
		name string
		s    Scope
	}{
		{"old", Scope{Now: 2 * came}},
		{"new", Scope{Now: came}},
		{"new-of-a-collection", Scope{Now: came, Collection: []byte("metrics")}},
	} {
		b.Run("names/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := x.EachName(context.Background(), c.s, func(TagName, int, Count) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("values/"+c.name, func(b *testing.B) {
			values := 0
			for b.Loop() {
				values = 0
				if _, err := x.EachValue(context.Background(), c.s, nil, func(TagName, []byte, Count) {
					values++
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(values), "values")
		})
	}
}
