package logrecord

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
)

func drawWords(t *rapid.T) []uint64 {
	limit := rapid.SampledFrom([]int64{100, 1 << 14, 1 << 30, point.MaxInt}).Draw(t, "limit")
	odd := rapid.Bool().Draw(t, "not only integers")
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) uint64 {
		if odd && rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			return rapid.SampledFrom([]uint64{point.Unset, point.FromFloat(1.5), 1<<63 | 1}).Draw(t, "word")
		}
		return point.FromInt(rapid.Int64Range(-limit, limit).Draw(t, "int"))
	}), 1, 300).Draw(t, "words")
}

func TestDataRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := head.Write{Column: rapid.IntRange(0, 255).Draw(t, "column"),
			Slot:  rapid.Int64Range(0, buckets.MaxSlot).Draw(t, "slot"),
			Words: drawWords(t), Down: rapid.Bool().Draw(t, "down")}
		c := account.Counts{Accepted: uint64(len(w.Words)), Late: 3}
		rec, headed := AppendWrite(nil, 7, 9, &w, -5, &c)
		copied := rapid.Bool().Draw(t, "copies")
		if copied {
			MarkCopies(rec)
		}
		if h, ok := ParseHead(rec[:headed]); !ok || h.Copies != copied || h.Points != c.StoredPoints() {
			t.Fatalf("the head is %+v, %t", h, ok)
		}
		p, err := Parse(rec)
		if err != nil {
			t.Fatal(err)
		}
		got := head.Write{Column: p.Column, Slot: p.Slot, Words: ParseCells(nil, p.Cells),
			Down: p.Kind == Column}
		if !reflect.DeepEqual(got, w) || p.Bucket != 7 || p.Group != 9 || p.Minute != -5 ||
			p.Counts != c || p.Copies != copied {
			t.Fatalf("%+v came back as %+v, %+v", w, got, p)
		}
	})
}

func TestSmallIntegersAreLoggedInFewBytes(t *testing.T) {
	f := func(v int64, bytes int) {
		t.Helper()
		words := []uint64{point.FromInt(v), point.FromInt(0), point.FromInt(1)}
		if got := (len(appendCells(nil, words)) - 1) / len(words); got != bytes {
			t.Errorf("%d is logged in %d bytes, want %d", v, got, bytes)
		}
	}
	f(127, 1)
	f(-128, 1)
	f(128, 2)
	f(999, 2)
	f(-32768, 2)
	f(32768, 4)
	f(1<<31, 8)
	f(point.MinInt, 8)
}

func FuzzRecord(f *testing.F) {
	f.Add(AppendBucket(nil, &buckets.Info{ID: 3, Name: "b", Resolution: 1000, PPF: 10}))
	f.Add(AppendBucketDeleted(nil, &buckets.Deletion{ID: 3, Clock: 7, Name: "b"}))
	f.Add(AppendTTL(nil, 3, 60))
	f.Add(slices.Concat(AppendEvents(nil, 3, 100, &account.Counts{Accepted: 1},
		[]eventfile.Event{{Time: 5, Body: []byte("b")}, {Time: 3, ID: eventfile.ID{1}}})))
	f.Add(AppendSeries(nil, 3, 4, 5, 1<<60, []byte("key")))
	f.Add(AppendDeleted(AppendSeriesDeleted(nil, 3, 4, Deleted, 1<<60), 5, metric.SeriesID{}))
	f.Add(AppendRefused(nil, 3, 100,
		&account.Counts{Refused: [account.NumReasons]uint64{account.Future: 2}}))
	f.Add(writeRecord(nil, 3, 4, &head.Write{Slot: 9, Words: []uint64{point.FromInt(5)}}, 100,
		&account.Counts{Accepted: 1}))
	f.Add(ofCopies(writeRecord(nil, 3, 4, &head.Write{Slot: 9, Words: []uint64{point.FromInt(5)}}, 100,
		&account.Counts{Accepted: 1})))
	f.Add(AppendDeleted(AppendSeriesDeleted(nil, 3, 4, Dropped, 0), 5, metric.SeriesID{}))
	f.Add(writeRecord(nil, 3, 4, &head.Write{Words: []uint64{point.FromInt(5), point.FromInt(6)},
		Runs: []head.Run{{Column: 255, Points: 1, Slot: 9}, {Points: 1, Slot: 3}}}, 100,
		&account.Counts{Accepted: 2}))
	f.Fuzz(func(t *testing.T, src []byte) {
		in := bytes.Clone(src)
		p, err := Parse(src)
		if !bytes.Equal(in, src) {
			t.Fatal("the parser wrote to its input")
		}
		if err == nil && (p.Kind.Points() != HoldsPoints(src) || p.Copies && !p.Kind.Points() &&
			p.Kind != Refused) {
			t.Fatalf("%+v", p)
		}
		if err == nil && p.Kind.Points() {
			n, _ := cellCount(p.Cells)
			if got := len(ParseCells(nil, p.Cells)); got != n || n > MaxPoints {
				t.Fatalf("%d words, counted %d", got, n)
			}
			for _, r := range ParseRuns(nil, p.Runs) {
				if r.Column < 0 || r.Points < 1 || r.Column+r.Points > head.Width || r.Slot < 0 ||
					r.Slot > buckets.MaxSlot {
					t.Fatalf("run %+v", r)
				}
				n -= r.Points
			}
			if p.Kind == Runs && n != 0 {
				t.Fatalf("%d words are of no run", n)
			}
		}
	})
}

// writeRecord is AppendWrite without what it says of the head.
func writeRecord(dst []byte, bucket uint64, group uint32, w *head.Write, minute int64,
	c *account.Counts) []byte {
	rec, _ := AppendWrite(dst, bucket, group, w, minute, c)
	return rec
}
