package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/tags"
)

const taggedSeries = 1 << 20

// fiveTags appends changes that give series from a number on five tags: of 10 to 100,000 values.
func fiveTags(dst []tags.Change, bucket uint64, from, n int) []tags.Change {
	for i := from; i < from+n; i++ {
		c := tags.Change{Bucket: bucket, Key: key(i), Collection: []byte("metrics"),
			Name: []byte("\x03cpu")}
		for j, of := range []int{10, 100, 1000, 10_000, 100_000} {
			c.Set = append(c.Set, tags.Tag{TagName: tags.TagName{Name: fmt.Append(nil, "tag", j)},
				Value: fmt.Append(nil, "value-", i%of)})
		}
		dst = append(dst, c)
	}
	return dst
}

// untagged returns a store of many series with a point each.
func untagged(b *testing.B, o Options) *Store {
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	drivetest.Bucket(b, s, "b")
	x := mustSession(b, s, "b")
	for i := range taggedSeries {
		x.Point(key(i), uint64(time.Now().Unix()), point.FromInt(1))
	}
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkTags tags many series, flushes, merges, and starts again, each once: with the number of
// series in a second. A start is compared with one of the same series without tags.
func BenchmarkTags(b *testing.B) {
	o := DefaultOptions(b.TempDir())
	o.FS, o.MinFree = vfs.Default, 0
	byHand(&o)
	s := untagged(b, o)
	bucket := drivetest.Bucket(b, s, "b")
	var err error
	perSecond := func(b *testing.B) {
		b.ReportMetric(float64(b.N)*taggedSeries/b.Elapsed().Seconds(), "series/s")
	}
	start := func(b *testing.B) {
		for b.Loop() {
			if s, err = Open(o); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			s.Crash()
			b.StartTimer()
		}
		perSecond(b)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("start-untagged", start)
	if s, err = Open(o); err != nil {
		b.Fatal(err)
	}
	b.Run("apply", func(b *testing.B) {
		var list []tags.Change
		for b.Loop() {
			for from := 0; from < taggedSeries; from += 1000 {
				b.StopTimer()
				list = fiveTags(list[:0], bucket.ID, from, min(1000, taggedSeries-from))
				b.StartTimer()
				if a, err := s.Tags().Apply(context.Background(), list); err != nil || len(a.Refused) > 0 {
					b.Fatal(a.Refused, err)
				}
			}
		}
		perSecond(b)
		st := s.Tags().Index().Bytes()
		b.ReportMetric(float64(st)/taggedSeries, "B/series")
	})
	b.Run("flush", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("merge", func(b *testing.B) {
		for b.Loop() {
			if err := s.tags.Merge(context.Background(), true); err != nil {
				b.Fatal(err)
			}
		}
		perSecond(b)
		b.ReportMetric(float64(s.Tags().Stats().Bytes)/taggedSeries, "B/series")
	})
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("start", start)
}
