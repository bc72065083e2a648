package cluster

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/wire"
)

// TestGatheredPoints: whatever comes in whatever order, each point is there once, and those of a
// series are in the order in which they came.
func TestGatheredPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all atomic.Int64
		nothing := func(metric.SeriesID) (uint64, []byte, bool) { return 0, nil, false }
		o := &order{names: names.New(nothing, 1, func() int64 {
			return 0
		}), all: &all, bucket: 7, hpts: rapid.Bool().Draw(t, "timestamps")}
		var g rowBatch
		var q outBatch
		want, got := make(map[metric.SeriesID]string), make(map[metric.SeriesID]string)
		send := func() {
			if q.points == 0 {
				return
			}
			for _, r := range (replication.Change{Columns: q.columns, Rows: q.rows}).InRows().Rows {
				got[r.Series] += pointText(r.Slot, r.Value)
			}
			q = outBatch{}
		}
		word := int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			series, slots := rapid.IntRange(1, 12).Draw(t, "series"), rapid.IntRange(1, 12).Draw(t, "slots")
			mixed, perSeries := rapid.IntRange(0, 3).Draw(t, "mixed") == 0,
				rapid.IntRange(0, 3).Draw(t, "per series") == 0
			drawSlots(t, o, &g, series, slots, mixed, perSeries, &word, want)
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

func pointText(slot uint64, v replication.Value) string { return fmt.Sprint(slot, " ", v, "; ") }

// drawSlots gathers slots of a sender, and notes in want what of each series is to come out.
func drawSlots(t *rapid.T, o *order, g *rowBatch, series, slots int, mixed, perSeries bool,
	word *int64, want map[metric.SeriesID]string) {
	// Without timestamps the points of a slot may come as a batch of the wire, of which many are taken
	// at once.
	batched, room := !o.hpts && rapid.Bool().Draw(t, "batched"),
		rapid.SampledFrom([]int{0, 20, 1 << 20}).Draw(t, "room")
	if rapid.IntRange(0, 4).Draw(t, "next period") == 0 {
		o.period++
	}
	var batch []byte
	for i := range series * slots {
		number, slot := i%series, uint64(i/series)
		if perSeries {
			number, slot = i/slots, uint64(i%slots)
		}
		if mixed {
			number = rapid.IntRange(0, 11).Draw(t, "number")
		}
		key := fmt.Appendf(nil, "\x05key%02d", number)
		*word++
		v := replication.Value{Word: point.FromInt(*word)}
		if o.hpts {
			v.Time = uint64(*word)
		}
		id := metric.ValuesOf(o.bucket, key, o.hpts)
		want[id] += pointText(slot, v)
		if batched {
			batch = wire.AppendBatchPoint(batch, key, v.Word)
			if perSeries || number == series-1 || mixed {
				takeBatch(o, g, slot, batch, room)
				batch = batch[:0]
			}
			continue
		}
		_, place := o.series(key)
		if rapid.IntRange(0, 40).Draw(t, "none") == 0 {
			place = -1
		}
		g.add(o, id, place, slot, v)
	}
}

// takeBatch takes the points of a batch of the wire, as its parser brings them.
func takeBatch(o *order, g *rowBatch, slot uint64, batch []byte, room int) {
	for len(batch) > 0 {
		if n, _ := g.match(o, slot, batch, room, kernel.MatchBatch); n > 0 {
			batch = batch[n:]
			continue
		}
		end := 2 + int(binary.BigEndian.Uint16(batch))
		id, place := o.series(batch[2:end])
		g.add(o, id, place, slot, replication.Value{Word: binary.BigEndian.Uint64(batch[end:])})
		batch = batch[end+point.Size:]
	}
}

// TestABatchIsTakenAtOnce: of a sender that keeps its order, nothing is taken point by point but
// what comes for the first time in a period.
func TestABatchIsTakenAtOnce(t *testing.T) {
	var all atomic.Int64
	nothing := func(metric.SeriesID) (uint64, []byte, bool) { return 0, nil, false }
	o := &order{names: names.New(nothing, 1, func() int64 { return 0 }), all: &all, bucket: 7}
	var g rowBatch
	var batch []byte
	for i := range 300 {
		batch = wire.AppendBatchPoint(batch, fmt.Appendf(nil, "\x06key%03d", i), point.FromInt(int64(i)))
	}
	for slot, want := range []int{0, len(batch), len(batch), 0, len(batch)} {
		if slot == 3 {
			o.period++
		}
		took := 0
		for took < len(batch) {
			n, _ := g.match(o, uint64(slot), batch[took:], 1<<20, kernel.MatchBatch)
			if n == 0 {
				break
			}
			took += n
		}
		if took != want {
			t.Errorf("slot %d: %d bytes of %d were taken at once, want %d", slot, took, len(batch), want)
		}
		takeBatch(o, &g, uint64(slot), batch[took:], 1<<20)
	}
	if n, names := g.match(o, 4, batch, 100, kernel.MatchBatch); n == 0 || names == 0 || names > 100 {
		t.Errorf("%d bytes were taken with names of %d bytes, want some of at most 100", n, names)
	}
	o.period++
	one := 2 + 7 + point.Size
	takeBatch(o, &g, 5, batch[:one], 1<<20)
	if n, _ := g.match(o, 5, batch[one:], 1<<20, kernel.MatchBatch); n > 0 {
		t.Errorf("%d bytes were taken at once before their names were noted", n)
	}
	o.at = 0
	if n, _ := g.match(o, 6, batch, 1<<20, kernel.MatchBatch); n != one {
		t.Errorf("%d bytes were taken at once, want the %d of the name that was noted", n, one)
	}
	columns, rows := g.take(o)
	if len(columns) != 8 || len(rows) != 0 || len(columns[4].Words) != 300 {
		t.Errorf("%d columns and %d rows, want 8 and none", len(columns), len(rows))
	}
}

// TestSendersInOrderSendColumns: points in the order of the sender go as columns, again after a
// batch that was not.
func TestSendersInOrderSendColumns(t *testing.T) {
	var all atomic.Int64
	nothing := func(metric.SeriesID) (uint64, []byte, bool) { return 0, nil, false }
	o := &order{names: names.New(nothing, 1, func() int64 { return 0 }), all: &all, bucket: 7}
	var g rowBatch
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
	for i, want := range []struct{ step, columns, rows int }{{1, 3, 0}, {1, 3, 0}, {7, 8, 292},
		{1, 0, 300}, {1, 3, 0}} {
		if columns, rows := batch(3, 100, want.step); columns != want.columns || rows != want.rows {
			t.Errorf("batch %d: %d columns and %d rows, want %d and %d", i, columns, rows, want.columns,
				want.rows)
		}
	}
}
