package cluster

import (
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/metric"
)

// TestGatheredPoints: whatever comes in whatever order, each point is there once, and those of a series are in the
// order in which they came.
func TestGatheredPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all atomic.Int64
		nothing := func(metric.SeriesID) (uint64, []byte, bool) { return 0, nil, false }
		o := &order{names: names.New(nothing, 1, func() int64 { return 0 }), all: &all, bucket: 7, hpts: rapid.Bool().Draw(t, "timestamps")}
		var g gathered
		var q outBatch
		want, got := make(map[metric.SeriesID]string), make(map[metric.SeriesID]string)
		text := func(slot uint64, v replication.Value) string { return fmt.Sprint(slot, " ", v, "; ") }
		send := func() {
			if q.points == 0 {
				return
			}
			for _, r := range (replication.Change{Columns: q.columns, Rows: q.rows}).InRows().Rows {
				got[r.Series] += text(r.Slot, r.Value)
			}
			q = outBatch{}
		}
		word := uint64(0)
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			series, slots := rapid.IntRange(1, 12).Draw(t, "series"), rapid.IntRange(1, 12).Draw(t, "slots")
			mixed, perSeries := rapid.IntRange(0, 3).Draw(t, "mixed") == 0, rapid.IntRange(0, 3).Draw(t, "per series") == 0
			for i := range series * slots {
				number, slot := i%series, uint64(i/series)
				if perSeries {
					number, slot = i/slots, uint64(i%slots)
				}
				if mixed {
					number = rapid.IntRange(0, 11).Draw(t, "number")
				}
				id, place := o.series(fmt.Appendf(nil, "\x05key%02d", number))
				if rapid.IntRange(0, 40).Draw(t, "none") == 0 {
					place = -1
				}
				word++
				v := replication.Value{Word: word}
				if o.hpts {
					v.Time = word
				}
				want[id] += text(slot, v)
				g.add(o, id, place, slot, v)
			}
			columns, rows := g.take(o)
			next := outBatch{columns: columns, rows: rows, points: replication.Points(columns, rows)}
			if !q.add(&next) {
				send()
				q = next
			}
			if o.hpts || mixed || perSeries {
				continue
			}
			for i := range columns {
				if c := &columns[i]; len(c.Words) == 0 || c.From+len(c.Words) > len(c.Group.Series) {
					t.Fatalf("column %+v", c)
				}
			}
		}
		send()
		for id, list := range want {
			if got[id] != list {
				t.Fatalf("series %x: got %s, want %s", id[:2], got[id], list)
			}
		}
	})
}

// TestSendersInOrderSendColumns: points in the order of the sender go as columns, again after a batch that was not.
func TestSendersInOrderSendColumns(t *testing.T) {
	var all atomic.Int64
	nothing := func(metric.SeriesID) (uint64, []byte, bool) { return 0, nil, false }
	o := &order{names: names.New(nothing, 1, func() int64 { return 0 }), all: &all, bucket: 7}
	var g gathered
	batch := func(slots, series, step int) (columns, rows int) {
		for slot := range slots {
			for i := range series {
				id, place := o.series(fmt.Appendf(nil, "\x05key%03d", i*step%series))
				g.add(o, id, place, uint64(slot), replication.Value{Word: 1})
			}
		}
		c, r := g.take(o)
		return len(c), len(r)
	}
	for i, want := range []struct{ step, columns, rows int }{{1, 3, 0}, {1, 3, 0}, {7, 8, 292}, {1, 0, 300}, {1, 3, 0}} {
		if columns, rows := batch(3, 100, want.step); columns != want.columns || rows != want.rows {
			t.Errorf("batch %d: %d columns and %d rows, want %d and %d", i, columns, rows, want.columns, want.rows)
		}
	}
}
