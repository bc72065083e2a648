package flush

import (
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/series"
	"testing"
	"time"
)

// A flush is due before its size is reached where the last one is long ago, and
// for series without a name in any case; not at once, and not in another one.
func TestDue(t *testing.T) {
	addSeries := func(table *columns.Table, n int) {
		for i := range n {
			table.AddUnflushed(columns.NewBucket(buckets.Info{}, 1, nil), series.RefAt(0, i),
				metric.SeriesID{},
				nil, 0, nil)
		}
	}
	one, table := columns.New(columns.Options{}), columns.New(columns.Options{})
	addSeries(one, 1)
	limit, pressure := 100*one.Unflushed.FlushMemory(), backpressure.New(backpressure.Options{})
	f := New(Options{
		Sizes: Sizes{FlushBytes: limit}, Pressure: pressure, Columns: table,
		Clock: clock.New(func() time.Time { return time.Unix(0, 0) }),
	})
	after := func(calls int) (due bool) {
		for range calls {
			due = f.Due()
		}
		return due
	}
	pressure.AddSealed(limit - pressure.SealedBytes())
	if after(2 * dueDelay) {
		t.Error("due right behind another flush")
	}
	f.last.Store(-int64(trimAfter) - 1)
	if !after(1) {
		t.Error("not due where the last flush is long ago")
	}
	f.Gate().Lock()
	if after(1) {
		t.Error("due in a flush")
	}
	f.Gate().Unlock()
	pressure.AddSealed(limit/4*3 - pressure.SealedBytes())
	if after(2 * dueDelay) {
		t.Error("due at three quarters")
	}
	addSeries(table, 1)
	if after(dueDelay) {
		t.Error("due at once")
	}
	if !after(1) {
		t.Error("not due with a series more")
	}
	f.last.Store(0)
	pressure.AddSealed(-pressure.SealedBytes())
	addSeries(table, 100)
	if !after(1) {
		t.Error("not due with many series that have no name")
	}
}
